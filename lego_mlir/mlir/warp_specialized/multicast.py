"""Multicast in a cluster: which CTAs need the same tile of an operand, and load it together.

The layout from CTA ids to tiles decides. In a cluster of 2×2 tiles of C, the CTAs 0 and 1 have a
tile of A in common, and so do 2 and 3; 0 and 2 have one of B, and so do 1 and 3. Each loads half of
the tile for both. A tile's CTAs are a dimension of the rank in the cluster:

    A: rank = Row(2, 2, 1), the second index varies     B: rank = Row(1, 2, 2)

A stage of a CTA is filled by all CTAs that have a tile in common with it, so it releases the stage
to these.

Source: PTX ISA 9.7.9.27 (cp.async.bulk.tensor, .multicast::cluster).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.index import Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import apply, inv
from lego_mlir.mlir.tiles.main_loop import LoadedOperand, MainLoop
from lego_mlir.mlir.tiles.pointers import i32_constant
from lego_mlir.mlir.tiles.structure import body_of, depends_on, known_divisor, known_size

MULTICAST = "multicast"
"""The attribute of a store to the shared memory of several CTAs of a cluster: `TileSharing.sizes`
as an array."""


@dataclass(frozen=True, slots=True)
class TileSharing:
    """Which CTAs of a cluster have a tile in common: those whose ranks differ in one dimension.

    Attributes:
        sizes: the dimensions of the rank, row-major: before that one, that one, behind it.
    """

    sizes: tuple[int, int, int]

    @property
    def layout(self) -> Layout:
        """The layout from the three indices to the rank."""
        return OrderBy(Row(*self.sizes))

    @property
    def ctas(self) -> int:
        """The number of CTAs that have a tile in common."""
        return self.sizes[1]

    @property
    def is_by_all(self) -> bool:
        """Whether all CTAs of the cluster have the tile in common."""
        before, _, behind = self.sizes
        return before == behind == 1

    def peers(self, rank: int) -> frozenset[int]:
        """Return the ranks of the CTAs that have a tile in common with one, and its own."""
        before, _, behind = self.layout.inv(rank)
        return frozenset(int(self.layout.apply(before, k, behind)) for k in range(self.ctas))

    def place(self, rank: Any, bits: int) -> tuple[Any, Any]:
        """Compute which of its peers a CTA is, an i32, and the mask of their ranks.

        Args:
            rank: the rank of the CTA in its cluster, an i32.
            bits: the size of the mask.
        """
        kind = ir.IntegerType.get_signless(bits)
        mask = arith.ConstantOp(kind, sum(1 << peer for peer in self.peers(0))).result
        if self.is_by_all:
            return rank, mask
        index, i32 = ir.IndexType.get(), ir.IntegerType.get_signless(32)
        before, which, behind = inv(self.layout, arith.IndexCastOp(index, rank).result)
        distance = arith.IndexCastOp(kind, apply(self.layout, [before, 0, behind])).result
        return arith.IndexCastOp(i32, which).result, arith.ShLIOp(mask, distance).result


@dataclass(frozen=True, slots=True)
class ClusterSharing:
    """The sharing of the operands of a main loop in a cluster.

    Attributes:
        cluster: the CTAs of a cluster.
        operands: the sharing of A and of B.
    """

    cluster: int
    operands: tuple[TileSharing, ...]

    @property
    def ctas(self) -> int:
        """The number of CTAs that fill a stage of one of them."""
        counts = {len(self._peers(rank)) for rank in range(self.cluster)}
        (count,) = counts
        return count

    def _peers(self, rank: int) -> frozenset[int]:
        return frozenset[int]().union(*(operand.peers(rank) for operand in self.operands))

    def signals(self, lane: Any) -> Any:
        """Compute whether the CTA whose rank is `lane`, an i32, fills this CTA's stages."""
        if self.ctas == self.cluster:
            less = arith.CmpIPredicate.ult
            return arith.CmpIOp(less, lane, i32_constant(self.cluster)).result
        rank = nvvm.rank_in_cluster()
        masks = [operand.place(rank, 32)[1] for operand in self.operands]
        mask = masks[0]
        for other in masks[1:]:
            mask = arith.OrIOp(mask, other).result
        bit = arith.ShRUIOp(mask, lane).result
        return arith.TruncIOp(ir.IntegerType.get_signless(1), bit).result


def cluster_sharing(
    step: TransformStep, launch: Any, main_loop: MainLoop, cluster: int
) -> ClusterSharing:
    """Return which CTAs of a cluster have tiles of A and of B in common.

    Args:
        step: the transform step, for errors.
        launch: the kernel.
        main_loop: its main loop.
        cluster: the CTAs of a cluster.

    Raises:
        LegoError: the clusters do not divide the CTAs or the tiles.
    """
    if cluster > 1:
        _check_divisible(step, launch, main_loop, cluster)
    operands = (main_loop.a, main_loop.b)
    found = [_tile_sharing(step, launch, main_loop, operand, cluster) for operand in operands]
    return ClusterSharing(cluster, tuple(found))


def _check_divisible(step: TransformStep, launch: Any, main_loop: MainLoop, cluster: int) -> None:
    """Check that every CTA of a cluster has a tile when one has: the others would wait forever."""
    counts = (launch_sizes(launch)[0], "CTAs"), (_count(launch, main_loop), "tiles")
    for count, what in counts:
        if known_divisor(count, step.pass_context) % cluster:
            number = known_size(count, step.pass_context)
            raise step.error(
                f"{number} {what} are no multiple of a cluster's {cluster} CTAs"
                if number is not None
                else f"the number of {what} is not known to be a multiple of a cluster's {cluster}",
                launch,
                hint="a cluster size that divides CTAs and tiles, or " + step.option("cluster", 1),
            )


def _tile_sharing(
    step: TransformStep, launch: Any, main_loop: MainLoop, operand: LoadedOperand, cluster: int
) -> TileSharing:
    """Return which CTAs load the same tile in every iteration: as many as possible."""
    outer = main_loop.outer
    number = body_of(launch).arguments[0]
    if outer is not None:
        number = outer.regions[0].blocks[0].arguments[0]
    alone = TileSharing((cluster, 1, 1))
    if cluster == 1 or operand.is_switch or depends_on(operand.tiles[0].buffer, number):
        return alone
    numbers = _numbers(known_size(_count(launch, main_loop), step.pass_context), cluster)
    indices = []
    for index in operand.tiles[0].index:
        if index is None or not depends_on(index, number):
            continue
        values = _by_number(step, index, number, numbers)
        if values is None:
            return alone
        indices.append(values.reshape(-1, cluster))
    return widest_sharing(indices, cluster)


def _count(launch: Any, main_loop: MainLoop) -> Any:
    """Return the number of tiles, or of CTAs with one tile each, as a value."""
    outer = main_loop.outer
    return launch_sizes(launch)[0] if outer is None else outer.operands[1]


def _numbers(count: int | None, cluster: int) -> Any:
    """Return the numbers of all CTAs as an array.

    If only the launch knows how many there are, they are expressions for the CTAs of any cluster.
    """
    if count is not None:
        return np.arange(count)
    first = cluster * Sym("cluster", 0)
    return np.array([first + rank for rank in range(cluster)], dtype=object)


def _by_number(step: TransformStep, value: Any, number: Any, numbers: Any) -> Any:
    """Return an index by the number of a CTA or tile, `None` if it is not known.

    Args:
        step: the transform step.
        value: the index. What it depends on besides counts as 0: it is the same in all CTAs.
        number: the value of that number.
        numbers: an array of numbers, or of expressions.
    """
    if value == number:
        return numbers
    if not depends_on(value, number):
        return np.zeros_like(numbers)
    op = None if hasattr(value, "arg_number") else value.owner.operation
    if op is None or op.name not in (dialect.INV, dialect.APPLY):
        return None
    layout = step.pass_context.layouts.of(op)
    if layout.symbols and numbers.dtype != object:
        return None
    # The values of the layout's symbols come last, and are the same in all CTAs.
    operands = list(op.operands)[: len(op.operands) - len(layout.symbols)]
    known = [_by_number(step, operand, number, numbers) for operand in operands]
    if any(operand is None for operand in known):
        return None
    if op.name == dialect.APPLY:
        return _each(layout.apply, known)[0]
    return _each(layout.inv, known)[list(op.results).index(value)]


def _each(function: Callable[..., Any], operands: Sequence[Any]) -> list[Any]:
    """Return the arrays of a function's results on arrays, of numbers at once."""
    if operands[0].dtype != object:
        found = function(*operands)
        return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]
    rows = [function(*each) for each in zip(*operands, strict=True)]
    columns = zip(*(row if isinstance(row, tuple) else (row,) for row in rows), strict=True)
    return [np.array(column, dtype=object) for column in columns]


def widest_sharing(indices: Sequence[Any], cluster: int) -> TileSharing:
    """Return the sharing by most CTAs in which none of the indices varies.

    Args:
        indices: tile indices, for each cluster and rank.
        cluster: the CTAs of a cluster.
    """
    for ctas in (n for n in range(cluster, 1, -1) if cluster % n == 0):
        rest = cluster // ctas
        for before in (n for n in range(1, rest + 1) if rest % n == 0):
            found = TileSharing((before, ctas, rest // before))
            by_peer = (values.reshape(-1, *found.sizes) for values in indices)
            if not any((values != values[:, :, :1]).any() for values in by_peer):
                return found
    return TileSharing((cluster, 1, 1))
