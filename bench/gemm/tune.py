"""The search for configurations: many kernels for one product, measured side by side.

    python -m bench tune build DIR --shapes 4096 64x4096x4096 --transposes NN,NT --schedule hmma
    python -m bench run DIR -o FILE.jsonl                  on the machine with the GPU
    python -m bench tune write FILE.jsonl                  the best into the library's table

The candidates come from the library, best by its cost model first. `ours` in the results is what
the library chooses without a search; a configuration enters the table where it is faster than that
by more than the figures of one kernel differ from run to run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.build import FORMAT, MANIFEST, commit, entry_of, make_folder
from bench.cases import Case
from bench.gemm.cases import OUTPUTS, TRANSPOSES, make, multiplied
from bench.gemm.product import Product
from bench.results import OURS, Result, fastest, ratio, read
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.files import write_whole

if TYPE_CHECKING:
    from lego_mlir.kernels.gemm.config import GemmConfig
    from lego_mlir.kernels.gemm.problem import Problem

MOST = 24
"""Candidates a product."""

_ORDERED, _GROUPS = 6, (4, 16, 32)
"""Divisions whose blocks are also taken in other orders: by groups so many tiles high."""

GAIN = 1.01
"""By how much a configuration is faster that replaces another: two runs of one kernel differ by
up to 0.3 % in the median."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for.

    Attributes:
        shapes: m, n and k of each product.
        dtype: element type of A and B.
        transposes: such as `NN` and `NT`; all shapes with all of them.
        schedule: the schedule's name; empty for the library's choice.
        most: candidates a product.
        target: to compile for.
    """

    shapes: tuple[tuple[int, int, int], ...]
    dtype: str = "f16"
    transposes: tuple[str, ...] = TRANSPOSES
    schedule: str = ""
    most: int = MOST
    target: str = "sm_90a"

    def cases(self) -> Iterator[Case]:
        """The products, as cases of the bench."""
        for m, n, k in self.shapes:
            for transposes in self.transposes:
                yield multiplied(m, n, k, self.dtype, transposes, variant=self.schedule)


def build(folder: Path, search: Search) -> int:
    """Compile the candidates of every product; the number of those that do not compile.

    Raises:
        LegoError: the folder cannot be written, or what the library chooses does not compile.
    """
    make_folder(folder)
    cases, entries, failures = list(search.cases()), {}, 0
    for number, case in enumerate(cases, 1):
        product = case.reference
        assert isinstance(product, Product)
        kernel = make(product, search.schedule, search.target)
        chosen = kernel.compile(search.target)
        chosen.save(folder / f"{case.name}.lego")
        found: list[dict[str, Any]] = []
        for config in candidates(product, search):
            name = str(config)
            print(f"[{number}/{len(cases)}] {case.name}: {name}", flush=True)
            try:
                kernel = make(product, search.schedule, search.target, config)
                artifact = kernel.compile(search.target)
            except LegoError as e:
                failures += 1
                print(e.render(), flush=True)
                continue
            file = f"{case.name}.{len(found)}.lego"
            artifact.save(folder / file)
            found.append({"name": name, "file": file, "config": asdict(config)})
        entries[case.name] = {**entry_of(case, chosen), "candidates": found}
    manifest = {"format": FORMAT, "commit": commit(), "target": search.target, "cases": entries}
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    print(f"{len(entries)} products are in {folder}")
    return failures


def candidates(product: Product, search: Search) -> list[GemmConfig]:
    """What may be worth measuring: the model's best, and other orders of blocks of a few."""
    from lego_mlir.hardware.targets import Target
    from lego_mlir.kernels.gemm.planner import HMMA, ranked_configs

    schedule = make(product, search.schedule, search.target).schedule or HMMA
    found = ranked_configs(_problem(product), Target.parse(search.target), schedule)
    others = [
        replace(c, raster_group=raster_group) for c in found[:_ORDERED] for raster_group in _GROUPS
    ]
    others = others[: search.most * 3 // 4]
    return [*found[: search.most - len(others)], *others]


def _problem(product: Product) -> Problem:
    from lego_mlir.kernels.gemm.problem import Problem

    p = product
    return Problem(p.m, p.n, p.k, p.dtype, p.out, p.a, p.b, p.c)


# --------------------------------------------------------------------------------------- table
def write(files: Sequence[Path], folder: Path | None = None) -> list[str]:
    """Enter the best configurations of results into the library's tables; what has changed.

    Args:
        files: results of `run` on bundles of `build`.
        folder: of other tables.

    Raises:
        LegoError: a file holds no results of a search, or a table cannot be written.
    """
    from lego_mlir.kernels.gemm import tuned_table

    changes = []
    for file in files:
        for result in read(file):
            if "candidates" not in result:
                raise LegoError(
                    f"{result['case']}: this is no result of a search",
                    location=Location(str(file)),
                    hint="make the bundle with python -m bench tune build DIR",
                )
            best = winner(result)
            if best is None:
                continue
            told = next(c["config"] for c in result["candidates"] if c["name"] == best)
            config = tuned_table.config_from(told)
            problem = _problem(Product.from_json(result["reference"]))
            place = () if folder is None else (folder,)
            tuned_table.record(result["device"], problem, config, *place)
            gain = ratio(result, OURS, ours=best).median
            changes.append(f"{result['case']}: {best}; {gain:.2f} times as fast as the choice")
    return changes


def winner(result: Result) -> str | None:
    """The fastest candidate that was found right, if it gains enough over `ours`."""
    best = fastest(result, [candidate["name"] for candidate in result["candidates"]])
    enough = best is not None and ratio(result, OURS, ours=best).median >= GAIN
    return best if enough else None


# -------------------------------------------------------------------------------- command line
def add_options(parser: argparse.ArgumentParser) -> None:
    """What `bench tune` takes."""
    steps = parser.add_subparsers(dest="what", required=True, metavar="build | write")
    step = steps.add_parser("build", help="compile the candidates; `run` measures them")
    step.add_argument("folder", type=Path)
    step.add_argument(
        "--shapes",
        type=_shape,
        nargs="+",
        required=True,
        metavar="MxNxK",
        help="m, n and k of the products; one size where all are the same",
    )
    step.add_argument("--dtype", default="f16", choices=OUTPUTS)
    step.add_argument("--transposes", type=_transposes, default="NN", metavar="NN,NT,TN,TT")
    step.add_argument("--schedule", default="", help="the library's choice without it")
    step.add_argument("--most", type=int, default=MOST, help="candidates a product (%(default)s)")
    step.add_argument("--target", default="sm_90a")
    step = steps.add_parser("write", help="enter the best of results into the library's tables")
    step.add_argument("files", type=Path, nargs="+", metavar="FILE")
    step.add_argument("--tables", type=Path, metavar="DIR", help="instead of the library's own")


def run(options: argparse.Namespace) -> int:
    """Do what the command line says; the number of failures."""
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
        raise argparse.ArgumentTypeError(f"'{text}' is no m, n and k such as 64x4096x128")
    m, n, k = map(int, sizes)
    return m, n, k


def _transposes(text: str) -> tuple[str, ...]:
    found = tuple(text.upper().split(","))
    if not set(found) <= set(TRANSPOSES):
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(TRANSPOSES)}")
    return found
