"""Derivation of one index expression: time, check against arrays, operation counts."""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from bench.index.expressions import Expression
from lego_mlir.algebra import Layout, parse_layout
from lego_mlir.index import Int, Sym, evaluate, nodes, structure
from lego_mlir.index.extraction.cost import count

POINTS = 1000
REPEATS = 5


def measure(row: Expression) -> dict[str, Any]:
    """Derive, check and count an expression; a wrong one has no figures."""
    times = []
    for _ in range(1 + REPEATS):
        clear_caches()
        before = set(sys.modules)
        start = perf_counter()
        layout, symbols, expressions = derive(row)
        times.append(perf_counter() - start)
        if len(times) == 1:
            loaded = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
    reference = {"operations": row.operations, "seconds": row.seconds}
    result = {
        "name": row.name,
        "layout": row.layout,
        "function": row.function,
        "reference": reference,
    }
    if not is_correct(row, layout, expressions):
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


def clear_caches() -> None:
    """Clear every cache of the compiler, so that the next derivation is like the first."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "lego_mlir":
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    nodes._interned.clear()


def derive(row: Expression) -> tuple[Layout, list[Sym], list[Int]]:
    """Return the layout, the symbols of its index or offset, and the derived expressions."""
    layout = parse_layout(row.layout)
    if row.function == "inv":
        offset = Sym("p", 0, layout.size - 1)
        return layout, [offset], list(layout.inv(offset))
    index = [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)]
    function = layout.apply if row.function == "apply" else layout.mask
    return layout, index, [function(*index)]


def is_correct(row: Expression, layout: Layout, expressions: list[Int]) -> bool:
    """Return whether the expressions equal the layout's own values on arrays, at random points."""
    import numpy as np

    draw = np.random.default_rng(0)
    for sizes in row.sizes:
        bound = layout.bind(**sizes)
        index = [draw.integers(0, n, POINTS) for n in bound.dims]
        if bound.is_partial and row.function == "apply":  # beyond the edge there is no offset
            inside = np.broadcast_to(bound.mask(*index), (POINTS,)) != 0
            index = [i[inside] for i in index]
        if row.function == "inv":
            offset = draw.integers(0, bound.size, POINTS)
            values: Mapping[str, Any] = {"p": offset} | dict(sizes)
            expected = bound.inv(offset)
        else:
            values = {f"i{k}": i for k, i in enumerate(index)} | dict(sizes)
            expected = ((bound.apply if row.function == "apply" else bound.mask)(*index),)
        found = [evaluate(x, values) for x in expressions]
        if not all(
            np.array_equal(*np.broadcast_arrays(f, e)) for f, e in zip(found, expected, strict=True)
        ):
            return False
    return True


def arith_operations(symbols: list[Sym], expressions: list[Int]) -> int:
    """Return the number of `arith` operations, without constants, after MLIR's canonicalization."""
    from lego_mlir.compiler.pipelines import pipeline
    from lego_mlir.mlir.bindings import func, ir
    from lego_mlir.mlir.context import Source, new_context, run_pipeline
    from lego_mlir.mlir.emit.arith import Printer
    from lego_mlir.mlir.modules import operations_in

    sizes = {s for x in expressions for s in structure.symbols(x)} - set(symbols)
    arguments = [*symbols, *sorted(sizes, key=structure.order)]
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
