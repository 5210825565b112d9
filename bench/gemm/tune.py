"""The config search: many kernels for one GEMM, measured side by side.

    python -m bench tune build DIR --shapes 4096 64x4096x4096 --transposes NN,NT --schedule cp_async
    python -m bench run DIR -o FILE.jsonl                  on the machine with the GPU
    python -m bench tune write FILE.jsonl                  enter the best into the library's table

The library enumerates the candidates, ranked by its cost model. `ours` in the results is the config
that it chooses without a search. A candidate enters the table if it is faster than that by more
than the times of one kernel vary from run to run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.build import make_folder, manifest_entry, write_manifest
from bench.case import Case
from bench.gemm.cases import OUTPUT_TYPES, TRANSPOSES, gemm_case, make_kernel
from bench.gemm.references import GemmReference
from bench.report.results import OURS, Result, fastest, ratio, read
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.progress import track

if TYPE_CHECKING:
    from lego_mlir.kernels.gemm.config import GemmConfig
    from lego_mlir.kernels.gemm.problem import Problem

MAX_CANDIDATES = 24
"""Candidates for each GEMM."""

_REGROUPED, _RASTER_GROUPS = 6, (4, 16, 32)
"""How many of the best configs are also tried with other raster groups, and with which."""

GAIN = 1.01
"""The speed-up that a candidate needs: the medians of two runs of one kernel differ by up to 0.3 %.
"""


@dataclass(frozen=True, slots=True)
class Search:
    """The GEMMs to search configs for, and how many candidates to try.

    Attributes:
        shapes: m, n and k of each GEMM.
        dtype: element type of A and B.
        transposes: such as `NN` and `NT`; each shape is combined with each of them.
        schedule: the schedule's name; empty for the library's choice.
        max_candidates: for each GEMM.
        target: the GPU architecture to compile for.
    """

    shapes: tuple[tuple[int, int, int], ...]
    dtype: str = "f16"
    transposes: tuple[str, ...] = TRANSPOSES
    schedule: str = ""
    max_candidates: int = MAX_CANDIDATES
    target: str = "sm_90a"

    def cases(self) -> Iterator[Case]:
        """Yield the GEMMs as benchmark cases."""
        for m, n, k in self.shapes:
            for transposes in self.transposes:
                yield gemm_case(m, n, k, self.dtype, transposes, variant=self.schedule)


def build(folder: Path, search: Search) -> int:
    """Compile the candidates of every GEMM; return the number of those that do not compile.

    Raises:
        LegoError: the folder cannot be written, or the library's choice does not compile.
    """
    make_folder(folder)
    cases, entries, failures = list(search.cases()), {}, 0
    for number, case in enumerate(track("compiling GEMMs", cases), 1):
        reference = case.reference
        assert isinstance(reference, GemmReference)
        kernel = make_kernel(reference, search.schedule, search.target)
        chosen = kernel.compile(search.target)
        chosen.save(folder / f"{case.name}.lego")
        found: list[dict[str, Any]] = []
        for config in candidates(reference, search):
            name = str(config)
            print(f"[{number}/{len(cases)}] {case.name}: {name}", flush=True)
            try:
                kernel = make_kernel(reference, search.schedule, search.target, config)
                artifact = kernel.compile(search.target)
            except LegoError as e:
                failures += 1
                print(e.render(), flush=True)
                continue
            file = f"{case.name}.{len(found)}.lego"
            artifact.save(folder / file)
            found.append({"name": name, "file": file, "config": asdict(config)})
        entries[case.name] = {**manifest_entry(case, chosen), "candidates": found}
    write_manifest(folder, search.target, entries)
    print(f"{len(entries)} GEMMs are in {folder}")
    return failures


def candidates(reference: GemmReference, search: Search) -> list[GemmConfig]:
    """Return the cost model's best configs, and other raster groups of the first few."""
    from bench.sample.families import problem_of
    from lego_mlir.hardware.targets import Target
    from lego_mlir.kernels.gemm.planner import plan, ranked_configs

    (problem, layouts), target = problem_of(reference), Target.parse(search.target)
    schedule = search.schedule or plan(problem, layouts, target).config.schedule
    found = ranked_configs(problem, target, schedule)
    others = [replace(c, raster_group=n) for c in found[:_REGROUPED] for n in _RASTER_GROUPS]
    others = others[: search.max_candidates * 3 // 4]
    return [*found[: search.max_candidates - len(others)], *others]


def _problem(reference: GemmReference) -> Problem:
    from lego_mlir.kernels.gemm.problem import Problem

    r = reference
    return Problem(r.m, r.n, r.k, r.dtype, r.out, r.a, r.b, r.c)


# --------------------------------------------------------------------------------------- table
def write(files: Sequence[Path], folder: Path | None = None) -> list[str]:
    """Enter the best configs of results into the library's tables; return a line for each change.

    Args:
        files: results of `run` on bundles of `build`.
        folder: where other tables are kept; the library's own if `None`.

    Raises:
        LegoError: a file holds no results of a config search, or a table cannot be written.
    """
    from lego_mlir.kernels.gemm import tuned_table

    changes = []
    for file in files:
        for result in read(file):
            if "candidates" not in result:
                raise LegoError(
                    f"{result['case']}: this is not the result of a config search",
                    location=Location(str(file)),
                    hint="make the bundle with python -m bench tune build DIR",
                )
            best = winner(result)
            if best is None:
                continue
            fields = next(c["config"] for c in result["candidates"] if c["name"] == best)
            config = tuned_table.config_from(fields)
            problem = _problem(GemmReference.from_json(result["reference"]))
            tables = () if folder is None else (folder,)
            tuned_table.record(result["device"], problem, config, *tables)
            gain = ratio(result, OURS, ours=best).median
            changes.append(
                f"{result['case']}: {best}; {gain:.2f} times as fast as the library's choice"
            )
    return changes


def winner(result: Result) -> str | None:
    """Return the fastest correct candidate if it gains enough over `ours`, else `None`."""
    best = fastest(result, [candidate["name"] for candidate in result["candidates"]])
    gains = best is not None and ratio(result, OURS, ours=best).median >= GAIN
    return best if gains else None


# -------------------------------------------------------------------------------- command line
def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench tune`."""
    steps = parser.add_subparsers(dest="what", required=True, metavar="build | write")
    step = steps.add_parser("build", help="compile the candidates; `run` measures them")
    step.add_argument("folder", type=Path)
    step.add_argument(
        "--shapes",
        type=_shape,
        nargs="+",
        required=True,
        metavar="MxNxK",
        help="m, n and k of the GEMMs, or one size for all three",
    )
    step.add_argument("--dtype", default="f16", choices=OUTPUT_TYPES)
    step.add_argument("--transposes", type=_transposes, default="NN", metavar="NN,NT,TN,TT")
    step.add_argument("--schedule", default="", help="default: the library's choice")
    step.add_argument(
        "--most", type=int, default=MAX_CANDIDATES, help="candidates per GEMM (%(default)s)"
    )
    step.add_argument("--target", default="sm_90a")
    step = steps.add_parser("write", help="enter the best configs into the library's tables")
    step.add_argument("files", type=Path, nargs="+", metavar="FILE")
    step.add_argument("--tables", type=Path, metavar="DIR", help="default: the library's own")


def run(options: argparse.Namespace) -> int:
    """Run the command line's `build` or `write`; return the number of failures."""
    if options.what == "write":
        for change in write(options.files, options.tables):
            print(change)
        return 0
    search = Search(
        tuple(options.shapes),
        options.dtype,
        options.transposes,
        options.schedule,
        options.most,
        options.target,
    )
    return build(options.folder, search)


def _shape(text: str) -> tuple[int, int, int]:
    sizes = text.split("x")
    sizes = sizes * 3 if len(sizes) == 1 else sizes
    if len(sizes) != 3 or not all(x.isdecimal() and int(x) for x in sizes):
        raise argparse.ArgumentTypeError(f"'{text}' is not a shape MxNxK such as 64x4096x128")
    m, n, k = map(int, sizes)
    return m, n, k


def _transposes(text: str) -> tuple[str, ...]:
    found = tuple(text.upper().split(","))
    if not set(found) <= set(TRANSPOSES):
        raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(TRANSPOSES)}")
    return found
