"""How long the compiler takes to derive index expressions, and how short they come out.

    python -m bench.index [--json FILE.jsonl]      needs no GPU; also `python -m bench index`

Every expression is derived in this process with all caches empty, from the layout's text on; what
is imported on the way counts. It is checked at random points against the layout on plain arrays,
and has no figures if it is wrong. Its operations are counted twice: as the cost model does, common
parts once, and as `arith` operations after MLIR's canonicalization, constants not among them.
With --json the results are written as JSON lines, and beside them, as .md, the table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.build import commit
from bench.expressions import OURS, TABLE, Row
from lego_mlir.algebra import Layout, parse_layout
from lego_mlir.files import write_whole
from lego_mlir.index import Int, Sym, evaluate, nodes
from lego_mlir.index.cost import count

POINTS = 1000
REPEATS = 5
FASTER = 20
"""How many times faster than the reference we mean to be, all expressions together."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the command line takes."""
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write JSON lines, and the table beside them as .md",
    )
    parser.add_argument("--only", default="", help="expressions whose name contains this")


def run(only: str = "", output: Path | None = None) -> int:
    """Derive, check, count, print; how many expressions are wrong."""
    rows = [row for row in (*TABLE, *OURS) if only in row.name]
    checkout = commit()
    results = [{**measured(row), "commit": checkout} for row in rows]
    table = report(results)
    print(table, end="")
    if output is not None:
        write_whole(output, "".join(json.dumps(r) + "\n" for r in results).encode())
        write_whole(output.with_suffix(".md"), table.encode())
    return sum(not r["correct"] for r in results)


# ------------------------------------------------------------------------------- one expression
def measured(row: Row) -> dict[str, Any]:
    """All that is measured of a row; only that it is wrong, if it is."""
    times = []
    for _ in range(1 + REPEATS):
        forget()
        before = set(sys.modules)
        start = perf_counter()
        layout, symbols, expressions = derived(row)
        times.append(perf_counter() - start)
        if len(times) == 1:
            loaded = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
    reference = {"operations": row.operations, "seconds": row.seconds}
    result = {"name": row.name, "layout": row.layout, "ask": row.ask, "reference": reference}
    if not is_right(row, layout, expressions):
        return {**result, "correct": False}
    return {
        **result,
        "correct": True,
        "seconds": times[0],
        "seconds_again": statistics.median(times[1:]),
        "imports": [name for name in loaded if name != "lego_mlir"],
        "operations": count(expressions),
        "arith": arith_operations(symbols, expressions),
        "expressions": [repr(x) for x in expressions],
        "note": row.note,
    }


def forget() -> None:
    """Empty every cache of the compiler: the next derivation is the first."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "lego_mlir":
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    nodes._interned.clear()


def derived(row: Row) -> tuple[Layout, list[Sym], list[Int]]:
    """The layout of a row, the symbols of what is asked of it, and the answer."""
    layout = parse_layout(row.layout)
    if row.ask == "inv":
        offset = Sym("p", 0, layout.size - 1)
        return layout, [offset], list(layout.inv(offset))
    index = [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)]
    ask = layout.apply if row.ask == "apply" else layout.mask
    return layout, index, [ask(*index)]


def is_right(row: Row, layout: Layout, expressions: list[Int]) -> bool:
    """Whether the expressions are the layout's own values on arrays, at random points."""
    import numpy as np

    draw = np.random.default_rng(0)
    for sizes in row.sizes:
        numbers = layout.bind(**sizes)
        index = [draw.integers(0, n, POINTS) for n in numbers.dims]
        if numbers.is_partial and row.ask == "apply":  # beyond the edge there is no offset
            inside = np.broadcast_to(numbers.mask(*index), (POINTS,)) != 0
            index = [i[inside] for i in index]
        if row.ask == "inv":
            offset = draw.integers(0, numbers.size, POINTS)
            values: Mapping[str, Any] = {"p": offset} | dict(sizes)
            truth = numbers.inv(offset)
        else:
            values = {f"i{k}": i for k, i in enumerate(index)} | dict(sizes)
            truth = ((numbers.apply if row.ask == "apply" else numbers.mask)(*index),)
        got = [evaluate(x, values) for x in expressions]
        if not all(
            np.array_equal(*np.broadcast_arrays(g, t)) for g, t in zip(got, truth, strict=True)
        ):
            return False
    return True


def arith_operations(symbols: list[Sym], expressions: list[Int]) -> int:
    """How many operations run: of `arith` alone, after MLIR has simplified what it can."""
    from lego_mlir.compiler.pipelines import pipeline
    from lego_mlir.mlir.bindings import func, ir
    from lego_mlir.mlir.context import Source, new_context, run_pipeline
    from lego_mlir.mlir.emit.arith import Printer
    from lego_mlir.mlir.modules import operations_in

    sizes = {s for x in expressions for s in nodes.symbols(x)} - set(symbols)
    arguments = [*symbols, *sorted(sizes, key=nodes.order)]
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        index = ir.IndexType.get()
        kind = ir.FunctionType.get([index] * len(arguments), [index] * len(expressions))
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", kind)
        entry = function.add_entry_block()
        with ir.InsertionPoint(entry):
            printer = Printer(dict(zip(arguments, entry.arguments, strict=True)))
            func.ReturnOp([printer.print(x) for x in expressions])
        source = Source("bench", "")
        run_pipeline(module, pipeline("index", {}), source, "index")
        run_pipeline(module, "builtin.module(lower-affine,canonicalize,cse)", source, "bench")
        names = Counter(op.name for op in operations_in(module.operation))
    return names.total() - sum(names[x] for x in ("func.func", "func.return", "arith.constant"))


# --------------------------------------------------------------------------------- all of them
def report(results: list[dict[str, Any]]) -> str:
    """The Markdown table of the results, with the totals."""
    head = ["expression", "ops", "reference", "arith", "ms", "again", "reference", "faster"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for r in results:
        if not r["correct"]:
            rows.append([r["name"], "**wrong**", *[""] * (len(head) - 2)])
            continue
        ops, seconds = r["reference"]["operations"], r["reference"]["seconds"]
        rows.append(
            [
                r["name"],
                str(r["operations"]),
                "" if ops is None else str(ops),
                str(r["arith"]),
                f"{r['seconds'] * 1e3:.2f}",
                f"{r['seconds_again'] * 1e3:.2f}",
                "" if seconds is None else f"{seconds * 1e3:.0f}",
                "" if seconds is None else f"{seconds / r['seconds']:.0f}×",
            ]
        )
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    commits = ", ".join(sorted({r["commit"] for r in results}))
    return (
        f"Commit {commits}. ops: operations of the derived expression; arith: operations of the "
        "code in MLIR, constants apart; ms: the first derivation, all caches empty, from the "
        f"layout's text on; again: the median of {REPEATS} more with empty caches.\n\n"
        f"{table}\n\n{totals(results)}\n"
    )


def totals(results: list[dict[str, Any]]) -> str:
    """Whether we are as short everywhere, and as fast altogether, as we mean to be."""
    compared = [r for r in results if r["correct"] and r["reference"]["seconds"] is not None]
    if not compared:
        return "There is nothing to compare with."
    ours = sum(r["seconds"] for r in compared)
    theirs = sum(r["reference"]["seconds"] for r in compared)
    longer = [
        f"{r['name']} ({r['operations']} to {r['reference']['operations']})"
        for r in compared
        if r["operations"] > r["reference"]["operations"]
    ]
    wrong = [r["name"] for r in results if not r["correct"]]
    loaded = "; ".join(f"{r['name']}: {', '.join(r['imports'])}" for r in compared if r["imports"])
    lines = [
        f"{len(compared)} expressions of the reference in {ours * 1e3:.1f} ms, by it in "
        f"{theirs:.2f} s: {theirs / ours:.0f} times faster "
        f"({'at least' if theirs >= FASTER * ours else '**less than**'} {FASTER}).",
        f"Imported within these times: {loaded or 'nothing'}.",
        f"Every count at most the reference's: {'no, ' + ', '.join(longer) if longer else 'yes'}.",
        *([f"**Wrong**: {', '.join(wrong)}."] if wrong else []),
    ]
    return "\n".join(lines)


def main() -> int:
    """The command line; status 1 says that an expression is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.index", allow_abbrev=False)
    add_options(parser)
    options = parser.parse_args()
    return 1 if run(options.only, options.json) else 0


if __name__ == "__main__":
    sys.exit(main())
