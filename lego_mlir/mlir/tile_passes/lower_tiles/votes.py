"""Votes: whether a lane of a warp holds a true element.

    %any = "lego.vote"(%c) : (tensor<128x1xi1, #D>) -> i1

becomes

    %own = arith.ori %c0, %c1 : i1
    %any = nvvm.vote.sync any %mask, %own

Where the elements say whether others exceed a bound of their row, as in

    %wide = "lego.broadcast"(%bound) : ... -> tensor<128x128xf32, #D>
    %c = arith.cmpf ogt, %x, %wide

not each element is compared. Floats that are not negative have the order of the integers with their
bits, and a negative float is a negative integer. So the greatest integer of a row and its bound is
the bound, if that is not negative, or one exceeds it. An integer maximum of three numbers is one
instruction. Where a bound is negative the vote is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.tile_ir.types import element_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    coordinates,
    registers_at,
)

_ALL_LANES = -1
_GREATER = 2
"""The predicate `ogt` of arith.cmpf."""

_MAXIMUM = "max.s32 $0, $1, $2; max.s32 $0, $0, $3;"

_CHAINS = 2
"""Maxima of a row that do not wait for one another."""


def lower_vote(op: Any, fragments: Mapping[Any, Fragment]) -> Any:
    """Build a vote; return an i1.

    Args:
        op: a lego.vote.
        fragments: of the tiles so far.
    """
    (tile,) = op.operands
    found = _exceeding(tile, fragments)
    if found is None:
        elements = list(dict.fromkeys(fragments[tile].elements()))
        found = reduce(lambda a, b: build.binary("ori", a, b), elements)
    return nvvm.vote_any(build.constant(build.i32(), _ALL_LANES), found)


def _exceeding(tile: Any, fragments: Mapping[Any, Fragment]) -> Any | None:
    """Build whether elements exceed the bounds of their rows; `None` if they vote on another."""
    if not dialect.made_by(tile, "arith.cmpf"):
        return None
    compared = tile.owner.operation
    values, wide = compared.operands
    is_greater = ir.IntegerAttr(compared.attributes["predicate"]).value == _GREATER
    is_single = element_of(values) == ir.F32Type.get()
    if not (is_greater and is_single and dialect.made_by(wide, tiles.BROADCAST)):
        return None
    bounds = fragments[wide.owner.operands[0]]
    at = zip(coordinates(fragments[wide].layout), bounds.layout.shape, strict=True)
    rows = registers_at(bounds.layout, [x if n > 1 else (0,) * len(x) for x, n in at])
    by_row: dict[int, list[Any]] = {}
    for row, value in zip(rows, fragments[values].elements(), strict=True):
        by_row.setdefault(row, []).append(_bits(value))
    limits = bounds.elements()
    return reduce(
        lambda a, b: build.binary("ori", a, b),
        [_any_above(_bits(limits[row]), found) for row, found in by_row.items()],
    )


def _any_above(bound: Any, values: list[Any]) -> Any:
    """Build whether one of some integers, or 0, is greater than another integer."""
    most = reduce(_greatest, [_greatest(bound, *values[k::_CHAINS]) for k in range(_CHAINS)])
    exceeds = build.compare("ne", most, bound)
    is_negative = build.compare("slt", bound, build.constant(build.i32(), 0))
    return build.binary("ori", exceeds, is_negative)


def _greatest(first: Any, *others: Any) -> Any:
    """Build the greatest of some i32, two by two.

    The assembler makes one instruction of two maxima, if nothing has put them into another order.
    """
    for a, b in zip(others[::2], others[1::2], strict=False):
        first = build.make(
            "llvm.inline_asm",
            build.i32(),
            first,
            a,
            b,
            asm_string=ir.StringAttr.get(_MAXIMUM),
            constraints=ir.StringAttr.get("=&r,r,r,r"),
        )
    return build.binary("maxsi", first, others[-1]) if len(others) % 2 else first


def _bits(value: Any) -> Any:
    return build.make("arith.bitcast", build.i32(), value)
