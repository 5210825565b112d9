"""Which programs of a grid each persistent CTA runs, where programs take differently long.

What a program costs is how often its loops run, which its numbers in the grid determine, and one
iteration for what is around the loops. Programs are dealt in their order: each to the CTA that has
the least to do so far, which is the one that a launch of all programs would give it.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

import numpy as np

from lego_mlir.index import Int, Sym, construct, evaluate, symbols
from lego_mlir.mlir import dialect
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_steps.kernels import operations_of

_LOOP, _AROUND = "scf.for", 1
_POSITIONS = (dialect.APPLY, dialect.INV)


def program_costs(kernel: TileKernel, ids: Sequence[Int], count: int) -> list[int] | None:
    """Return what each program costs, in iterations; `None` if that is the same or not known.

    Args:
        kernel: the kernel, before its programs are in a loop.
        ids: a program's numbers along x, y and z, of the symbol `program`, its number in order.
        count: of the programs.
    """
    reader = IndexReader()
    for k, number in enumerate(ids):
        reader.define(kernel.body.arguments[k], number)
    for op in operations_in(kernel.launch):
        if op.name == "gpu.block_id":
            axis = "xyz".index(str(op.attributes["dimension"]).rstrip(">").split()[-1])
            reader.define(op.results[0], ids[axis])
        elif op.name in _POSITIONS and not (layout := kernel.layouts.of(op)).symbols:
            at = [reader.read(x) for x in op.operands]
            found = layout.inv(*at) if op.name == dialect.INV else [layout.apply(*at)]
            for result, x in zip(op.results, found, strict=True):
                reader.define(result, x)
    trips: Int = _AROUND
    for loop in (op for op in operations_of(kernel.body) if op.name == _LOOP):
        low, high, stride = (reader.read(x) for x in list(loop.operands)[:3])
        span = construct.sub(high, low)
        trips = construct.add(trips, construct.floordiv(construct.add(span, stride - 1), stride))
    if {symbol.name for symbol in symbols(trips)} != {PROGRAM.name}:
        return None
    costs = np.broadcast_to(evaluate(trips, {PROGRAM.name: np.arange(count)}), count)
    return None if (costs == costs[0]).all() else [max(int(n), _AROUND) for n in costs]


PROGRAM = Sym("program", 0)
"""The number of a program in the order in which programs begin."""


def shares(costs: Sequence[int], ctas: int) -> list[list[int]]:
    """Return the programs of each CTA.

    Args:
        costs: of the programs, in the order in which they begin.
        ctas: at most as many as programs.
    """
    found: list[list[int]] = [[] for _ in range(ctas)]
    busy = [(0, cta) for cta in range(ctas)]
    heapify(busy)
    for program, cost in enumerate(costs):
        until, cta = busy[0]
        found[cta].append(program)
        heapreplace(busy, (until + cost, cta))
    return found
