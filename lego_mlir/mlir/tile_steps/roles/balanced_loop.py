"""The loop of a persistent CTA over programs that are dealt by what their loops cost.

    %from = "lego.table"(%b) {values = ...}
    %trips = "lego.table"(%b) {values = ...} - %from
    scf.for %k = 0 to %trips {
      %x = "lego.table"(%from + %k) {values = ...}
      ...
    }

Where programs lie in the grid is in tables, for what is divided is in no uniform register, in which
descriptors and the numbers of stages belong. Programs that take equally long need no table:

    %trips = 3 + (%b < 512 - 3 * 132)
    scf.for %k = 0 to %trips { %n = min(%k * 132 + %b, 511) ... }

Where only the launch knows how many programs there are, a CTA runs two neighbours at a time, and
those that are left over alone if there are CTAs for all of them:

    %pairs = %count / 264 * 2
    scf.for %k = 0 to %trips {
      %n = %k / 2 * 264 + (%k >= %pairs && %count % 264 <= 132 ? %b : %b * 2 + %k % 2)
      ...
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.index import Expr, Int, evaluate
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.roles.program_shares import PROGRAM, program_costs, shares

_MOST_LISTED = 8192
"""So many programs are listed in tables at most."""


def balanced_loop(
    kernel: TileKernel, order: Layout, grid: Sequence[int], own: Any, ctas: int
) -> tuple[list[Any], Any]:
    """Build the loop over the programs of a CTA; return a program's ids, and the loop's yield.

    Args:
        kernel: the kernel.
        order: from (z, y, x), without sizes of 1, to the order in which programs begin.
        grid: of programs, along x first.
        own: the number of the CTA.
        ctas: fewer than programs.
    """
    count = prod(grid)
    dims = iter(reversed(order.inv(PROGRAM)))
    ids = [next(dims) if n > 1 else 0 for n in grid]
    costs = program_costs(kernel, ids, count) if count <= _MOST_LISTED else None
    if costs is None:
        return _every(order, grid, own, ctas)
    return _listed(ids, shares(costs, ctas), own)


def neighbours_loop(count: Any, own: Any, ctas: int) -> tuple[Any, Any]:
    """Build the loop over programs where only the launch knows how many there are.

    Args:
        count: the programs; if they are fewer than `ctas`, so are the CTAs.
        own: the number of the CTA.
        ctas: at most so many CTAs run.

    Returns:
        A program's number in order, and the loop's yield.
    """
    one, two, each = (build.index(n) for n in (1, 2, 2 * ctas))
    rest = build.binary("remui", count, each)
    paired = build.binary("muli", build.binary("divui", count, each), two)
    pair = build.binary("muli", own, two)
    is_few = build.compare("ult", rest, build.index(ctas + 1))
    alone = build.select(build.compare("ult", own, rest), one, build.index(0))
    left = build.binary("maxsi", build.binary("subi", rest, pair), build.index(0))
    left = build.select(is_few, alone, build.binary("minsi", left, two))
    iteration, before = _loop(build.binary("addi", paired, left))
    with ir.InsertionPoint(before):
        start = build.binary("muli", build.binary("divui", iteration, two), each)
        place = build.binary("addi", pair, build.binary("remui", iteration, two))
        is_left = build.compare("ult", paired, build.binary("addi", iteration, one))
        place = build.select(build.binary("andi", is_few, is_left), own, place)
        # The number has this bound already; now that is known of it.
        last = build.binary("subi", count, one)
        return build.binary("minui", build.binary("addi", start, place), last), before


def _every(order: Layout, grid: Sequence[int], own: Any, ctas: int) -> tuple[list[Any], Any]:
    """Build the loop over every `ctas`-th program."""
    count = prod(grid)
    every, rest = divmod(count, ctas)
    has_more = build.compare("ult", own, build.index(rest))
    more = build.select(has_more, build.index(1), build.index(0))
    iteration, before = _loop(build.binary("addi", build.index(every), more))
    with ir.InsertionPoint(before):
        number = build.binary("addi", build.binary("muli", iteration, build.index(ctas)), own)
        # The number has this bound already; now that is known of it.
        number = build.binary("minui", number, build.index(count - 1))
        bounds = [int(n) for n in order.dims]
        found = dialect.inv(layout_attribute(order), order.rank, [number], bounds)
        numbers = reversed(found)
        return [next(numbers) if n > 1 else build.index(0) for n in grid], before


def _listed(ids: Sequence[Int], dealt: Sequence[Sequence[int]], own: Any) -> tuple[list[Any], Any]:
    """Build the loop over programs that tables list.

    Args:
        ids: of a program, of the symbol `PROGRAM`.
        dealt: the programs of each CTA.
        own: the number of the CTA.
    """
    starts = [0, *accumulate(map(len, dealt))]
    first, end = (dialect.table(values, own) for values in (starts[:-1], starts[1:]))
    iteration, before = _loop(build.binary("subi", end, first))
    programs = np.concatenate([np.asarray(share) for share in dealt])
    with ir.InsertionPoint(before):
        at = build.binary("addi", first, iteration)
        at = build.binary("minui", at, build.index(len(programs) - 1))
        return [_entry(x, programs, at) for x in ids], before


def _entry(x: Int, programs: Any, at: Any) -> Any:
    """Build what an expression of the program is for the `at`-th one."""
    if not isinstance(x, Expr):
        return build.index(x)
    return dialect.table([*map(int, evaluate(x, {PROGRAM.name: programs}))], at)


def _loop(trips: Any) -> tuple[Any, Any]:
    """Build a loop; return the number of an iteration, and the yield."""
    bounds = [build.index(0), trips, build.index(1)]
    loop = ir.Operation.create("scf.for", operands=bounds, regions=1)
    inside = loop.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[loop.location])
    with ir.InsertionPoint(inside), loop.location:
        return inside.arguments[0], ir.Operation.create("scf.yield")
