"""The report of GEMMs: rates, ratios, and figures that must not be printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from bench_command import bench

from bench.gemm.cases import CASES, CUBLAS, CUBLAS_FAST, case_name
from bench.gemm.plot import plotted, rate_figure
from bench.gemm.references import GemmReference
from bench.gemm.report import code_table, other_runs, summary_table
from bench.report.command import write_report
from bench.report.results import rate


def gemm_result(
    n: int = 1000, dtype: str = "f16", variant: str = "", **changes: Any
) -> dict[str, Any]:
    """Return a result at 500 TFLOP/s, at n = 1000 of 4 µs; cuBLAS takes 3 and 5 µs."""
    reference = GemmReference(n, n, n, dtype, "f16", "row", "col")
    us = 4e-9 * n**3
    verdict = {"elements": 8, "differing": 0, "outside": 0, "deviation": 2e-4, "allowed": 3e-4}
    result = {
        "case": case_name(reference, variant),
        "commit": "c",
        "device": "d",
        "dtype": dtype,
        "variant": variant,
        "reference": {x: getattr(reference, x) for x in reference.__dataclass_fields__},
        "verified": {"ours": True, CUBLAS: True},
        "verdicts": {"ours": verdict},
        "bytes": 6_000_000,
        "sets": 40,
        "us": {"ours": [us] * 3, CUBLAS: [us * 3 / 4, us * 5 / 4, us * 5 / 4]},
    }
    return result | changes


def result_file(folder: Path, *results: dict[str, Any]) -> Path:
    file = folder / "gemm.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in results))
    return file


def test_the_table_contains_rates_and_ratios(tmp_path: Path) -> None:
    assert rate(gemm_result()) == pytest.approx(500)
    text = write_report(result_file(tmp_path, gemm_result(), gemm_result(2000)))
    row = next(x for x in text.splitlines() if x.startswith("| gemm_f16_1000_nt |"))
    assert row.split(" | ")[1:] == [
        "yes",
        "2.0e-04",
        "4.00",
        "500.0",
        "400.0",
        "1.25 (1.00–1.25) |",
    ]
    assert "| f16, squares | cuBLAS | 2 of 2 | 2 | 1.250 | 1.25 (gemm_f16_1000_nt) |" in text
    assert "QuACK" not in text
    assert (tmp_path / "gemm.svg").exists()


def test_peers_of_other_runs_are_marked(tmp_path: Path) -> None:
    nn = gemm_result(1024)
    nn["reference"] |= {"b": "row"}
    text = write_report(result_file(tmp_path, nn | {"case": "gemm_f16_1024_nn"}))
    assert "In parentheses, from another run: QuACK" in text
    row = next(x for x in text.splitlines() if x.startswith("| gemm_f16_1024_nn | yes"))
    assert "| (QuACK vs cuBLAS) |" in text
    assert "| 0.78 |" in row
    known = {case.name for case in CASES}
    assert all(run["cases"].keys() <= known for run in other_runs().values())


def test_fast_accumulation_is_a_separate_peer(tmp_path: Path) -> None:
    eight = gemm_result(dtype="f8E4M3FN")
    eight["verified"] = {**eight["verified"], CUBLAS_FAST: True}
    eight["us"] = {**eight["us"], CUBLAS_FAST: [2.0] * 3}
    text = write_report(result_file(tmp_path, eight))
    assert "| gemm_e4m3_1000_nt | yes |" in text
    assert "| 1000.0 | 0.50 (0.50–0.50) |" in text
    assert f"| f8E4M3FN, squares | {CUBLAS_FAST} | 1 of 1 | 0 | 0.500 |" in text


def test_wrong_outputs_have_no_figures(tmp_path: Path) -> None:
    bad = gemm_result(2000, verified={"ours": False, CUBLAS: True})
    bad["verdicts"] = {"ours": {"elements": 8, "differing": 3, "outside": 0, "deviation": 1.0}}
    peer = gemm_result(3000, verified={"ours": True, CUBLAS: False})
    text = write_report(result_file(tmp_path, gemm_result(), bad, peer))
    assert "| gemm_f16_2000_nt | **no** |  |  |  | " in text
    assert "- **gemm_f16_2000_nt**: 3 of 8 elements differ" in text
    assert "| gemm_f16_3000_nt | yes | 2.0e-04 | 108.00 | 500.0 |  | **wrong** |" in text
    assert "1 of 3 | 1 | 1.250" in text
    lines = plotted([gemm_result(), gemm_result(4000), bad, peer])["f16"]["NT"]
    assert [r["reference"]["m"] for r in lines] == [1000, 3000, 4000]


def test_failed_cases_are_in_the_remarks(tmp_path: Path) -> None:
    failed = {k: v for k, v in gemm_result(2000).items() if k not in ("us", "verdicts", "device")}
    failed |= {"verified": {"ours": False}, "error": "stopped after 3 s"}
    text = write_report(result_file(tmp_path, gemm_result(), failed))
    assert "- **gemm_f16_2000_nt**: stopped after 3 s" in text
    assert "| f16, squares | cuBLAS | 1 of 2 |" in text


def test_gemms_and_data_movements_do_not_mix(tmp_path: Path) -> None:
    move = gemm_result(2000) | {"reference": {"shape": [2, 2], "axes": [1, 0]}}
    done = bench("report", result_file(tmp_path, gemm_result(), move))
    assert done.returncode == 2
    assert "these results are of GEMMs and of data movements" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_code_table_contains_what_is_known() -> None:
    assert code_table([gemm_result()]) == ""
    resources = {"gemm": {"registers": 168, "local": 0, "static": 1024, "dynamic": 195584}}
    loop = {"HGMMA": 8, "SYNCS": 6, "MOV": 3, "BRA": 7}
    copies = {"UTMALDG": 2, "SYNCS": 1}
    sass = {"gemm": {"loop": loop, "copies": copies, "kernel": {"STL": 2, "LDL": 1}}}
    text = code_table(
        [gemm_result(resources=resources, sass=sass), gemm_result(2000, resources=resources)]
    )
    head, _, first, second = text.splitlines()
    assert head == (
        "| case | registers | local | shared | HGMMA | UTMALDG | SYNCS | other | local accesses |"
    )
    assert first == "| gemm_f16_1000_nt | 168 | 0 | 192.0 | 8 | 2 | 6 | 10 | 3 |"
    assert second == "| gemm_f16_2000_nt | 168 | 0 | 192.0 |  |  |  |  |  |"


def test_the_summary_separates_schedules_and_shapes() -> None:
    thin = gemm_result(1000, variant="cp_async")
    thin["reference"] |= {"m": 16}
    text = summary_table([gemm_result(), gemm_result(variant="cp_async"), thin])
    rows = [line.split(" | ")[0][2:] for line in text.splitlines()[2:]]
    assert rows == ["f16, squares", "f16, squares, cp_async", "f16, other shapes, cp_async"]


def test_the_figure_is_reproducible_svg() -> None:
    results = [gemm_result(n) for n in (512, 1024)] + [
        gemm_result(n, variant="cp_async") for n in (512, 1024)
    ]
    figure = rate_figure(results)
    assert figure is not None
    assert figure == rate_figure(results)
    words = {e.text for e in ET.fromstring(figure).iter("{http://www.w3.org/2000/svg}text")}
    assert words >= {"512", "1024", "f16", "f16, cp_async", "NT", CUBLAS, "TFLOP/s"}
    assert rate_figure([gemm_result()]) is None  # one size does not make a line
