"""`python -m bench report`: write tables and a figure of what was measured.

A ratio is printed only if both outputs were verified. Results of several commits, or of several
devices, are not put side by side unless the user asks for it.
"""

from __future__ import annotations

from pathlib import Path

from bench.gemm import report as gemm_report
from bench.gemm import variants_report
from bench.gemm.plot import rate_figure
from bench.permute import report as permute_report
from bench.permute.plot import bandwidth_figure
from bench.profile import counters
from bench.report.results import is_gemm, read
from bench.report.tables import distinct
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.files import write_whole


def write_report(file: Path, *, mixed: bool = False) -> str:
    """Write `.md` and `.svg` beside a file of JSON lines; return the Markdown.

    Args:
        file: the results.
        mixed: accept results of several commits or devices.

    Raises:
        LegoError: the file holds no results, or results that do not belong in one report.
    """
    results = read(file)
    if len({is_gemm(r) for r in results}) > 1:
        raise LegoError(
            "these results are of GEMMs and of data movements",
            location=Location(str(file)),
            hint="run them apart: --only gemm, --only transpose --only permute",
        )
    for key in ("commit", "device"):
        found = distinct(results, key)
        if len(found) > 1 and not mixed:
            raise LegoError(
                f"these results are of several {key}s: {', '.join(found)}",
                location=Location(str(file)),
                hint="measure again, or say --mixed",
            )
    figure, title = None, ""
    if "counters" in results[0]:
        text = counters.report(results)
    elif variants_report.has_variants(results):
        text = variants_report.report(results)
    elif is_gemm(results[0]):
        text, figure = gemm_report.report(results), rate_figure(results)
        title = "Rate of each case, and the ratio to cuBLAS"
    else:
        text, figure = permute_report.report(results), bandwidth_figure(results)
        title = "Bandwidth of each case"
    if figure is not None:
        write_whole(file.with_suffix(".svg"), figure.encode())
        text += f"\n![{title}]({file.with_suffix('.svg').name})\n"
    write_whole(file.with_suffix(".md"), text.encode())
    return text
