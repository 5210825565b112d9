"""The parts of a layout: its reorderings, its view, and the plain OrderBy's they desugar to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lego_mlir.algebra.blocks import Block, RegP, Row, Sizes, inverse_permutation, permuted
from lego_mlir.algebra.permutations import Index
from lego_mlir.algebra.sizes import as_sizes, product, sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int

OrderKind: TypeAlias = Literal["OrderBy", "TileOrderBy"]
ViewKind: TypeAlias = Literal["GroupBy", "TileBy"]


@dataclass(frozen=True, slots=True)
class Order:
    """One reordering of the chain: `OrderBy(blocks)` or `TileOrderBy(blocks)`."""

    kind: OrderKind
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The notation of this part of a layout."""
        return f"{self.kind}({', '.join(b.text for b in self.blocks)})"

    @property
    def dims(self) -> Sizes:
        """The sizes of all blocks, one after another."""
        return tuple(n for b in self.blocks for n in b.dims)

    @property
    def size(self) -> Int:
        """The number of elements."""
        return product(self.dims)


@dataclass(frozen=True, slots=True)
class Skew:
    """Tiles that begin earlier in some rows than in others: `skew(dim, [f0, f1, ...], span)`.

    Along dimension `dim`, what is element c of all tiles together has the coordinate c - s, with
    s the sum of every other coordinate times its factor, modulo the span. With a row's size as the
    factor, tiles of any row begin in memory at multiples of the span.

    Attributes:
        dim: the dimension that is shifted.
        factors: of the coordinates, one a dimension; 0 for `dim`.
        span: the shift is less.
    """

    dim: int
    factors: tuple[int, ...]
    span: int

    @property
    def text(self) -> str:
        """The notation of this part of a layout."""
        return f"skew({self.dim}, {sizes_text(self.factors)}, {self.span})"

    def shift(self, coordinates: Index) -> Any:
        """Return by how much tiles begin earlier at these coordinates."""
        # The remainder of a factor does as well, and keeps to the span what arrays are times.
        terms = zip((f % self.span for f in self.factors), coordinates, strict=True)
        return sum((f * x for f, x in terms if f), start=0) % self.span

    def coordinates(self, tiled: Index) -> Index:
        """Return the coordinates of what tiles without a skew would have at these."""
        return self._moved(tiled, -self.shift(tiled))

    def tiled(self, coordinates: Index) -> Index:
        """Return the inverse of `coordinates`."""
        return self._moved(coordinates, self.shift(coordinates))

    def _moved(self, index: Index, by: Any) -> Index:
        return (*index[: self.dim], index[self.dim] + by, *index[self.dim + 1 :])


@dataclass(frozen=True, slots=True)
class View:
    """The logical index space on top: `GroupBy(tiles)` or `TileBy(tiles)`, these also skewed."""

    kind: ViewKind
    tiles: tuple[Sizes, ...]
    skew: Skew | None = None

    @property
    def text(self) -> str:
        """The notation of this part of a layout."""
        parts = [sizes_text(t) for t in self.tiles] + ([self.skew.text] if self.skew else [])
        return f"{self.kind}({', '.join(parts)})"

    @property
    def dims(self) -> Sizes:
        """The sizes of all levels, outermost first."""
        return tuple(n for t in self.tiles for n in t)


Stage: TypeAlias = tuple[Block, ...]
"""A plain OrderBy of the desugared chain."""


def gather(d: int, q: int) -> tuple[int, ...]:
    """Return σ(d, q), 0-based: from q levels of d dimensions to d dimensions of q levels."""
    return tuple(k + d * h for k in range(d) for h in range(q))


def make_order(kind: OrderKind, blocks: tuple[Any, ...]) -> Order:
    """Return a reordering of these blocks.

    Raises:
        LegoError: there is none, one is no block, or a TileOrderBy's differ in rank.
    """
    if not blocks:
        raise LegoError(f"{kind} needs at least one block")
    for b in blocks:
        if not isinstance(b, Block):
            raise LegoError(
                f"{kind}: expected blocks, not {b!r}", hint="blocks are RegP, GenP, Row and Col"
            )
    order = Order(kind, blocks)
    if kind == "TileOrderBy":
        check_equal_ranks(order, "TileOrderBy")
    return order


def make_view(kind: ViewKind, tiles: tuple[Any, ...], skew: Skew | None = None) -> View:
    """Return a view of these levels.

    Raises:
        LegoError: there is none, a size is wrong, a TileBy's levels differ in rank, or the skew
            does not fit them.
    """
    if not tiles:
        raise LegoError(f"{kind} needs at least one list of sizes")
    view = View(kind, tuple(as_sizes(t, kind) for t in tiles), skew)
    if kind == "TileBy" and len({len(t) for t in view.tiles}) > 1:
        ranks = ", ".join(str(len(t)) for t in view.tiles)
        raise LegoError(
            f"{view.text}: every level needs the same number of dimensions, here {ranks}",
            hint="a level that does not tile a dimension has size 1 there",
        )
    if skew is not None:
        _check_skew(view, skew)
    return view


def _check_skew(view: View, skew: Skew) -> None:
    rank = len(view.tiles[0])
    if view.kind != "TileBy":
        raise LegoError(f"{view.text}: only TileBy can be skewed")
    fits = 0 <= skew.dim < rank == len(skew.factors) and skew.factors[skew.dim] == 0
    if not fits or skew.span < 1 or any(f < 0 for f in skew.factors):
        raise LegoError(
            f"{skew.text} does not fit {rank} dimensions",
            hint="skew(dim, [one factor a dimension, 0 for dim], span), the span at least 1",
        )


def check_equal_ranks(order: Order, owner: str) -> None:
    """Raise LegoError if the blocks of `order` differ in their number of dimensions."""
    if len({b.rank for b in order.blocks}) > 1:
        ranks = ", ".join(str(b.rank) for b in order.blocks)
        raise LegoError(
            f"{owner}: the blocks of {order.text} need the same rank, here {ranks}",
            hint="use GroupBy for the view, or blocks of one rank",
        )


def reshuffle(order: Order) -> RegP:
    """Return the RegP that TileOrderBy adds: from dimensions of levels to levels of dimensions."""
    sigma = gather(order.blocks[0].rank, len(order.blocks))
    return RegP(permuted(order.dims, sigma), inverse_permutation(sigma))


def stages_of(
    orders: tuple[Order, ...], view: View | None, padded: Sizes | None
) -> tuple[Stage, ...]:
    """Return the plain OrderBy's that reorderings and a view desugar to, in the order of the dots.

    Args:
        orders: the reorderings.
        view: the view.
        padded: the tensor's shape, if the view's tiles pad it: then the last stage takes its
            coordinates.
    """
    tiled = view is not None and view.kind == "TileBy"
    stages: list[Stage] = []
    for order in orders:
        stages.append(order.blocks)
        if (tiled or order.kind == "TileOrderBy") and len(order.blocks) > 1:
            stages.append((reshuffle(order),))
    if view is not None and tiled:
        sigma = gather(len(view.tiles[0]), len(view.tiles))
        stages.append((RegP(view.dims, sigma) if padded is None else Row(*padded),))
    return tuple(stages)


def stage_apply(stage: Stage, index: Index) -> Any:
    """Apply a stage (papers/lego, Figure 6): flatten from the outermost block inwards."""
    flat: Any = None
    start = 0
    for block in stage:
        inner = block.apply(index[start : start + block.rank])
        flat = inner if flat is None else flat * block.size + inner
        start += block.rank
    return flat


def stage_inv(stage: Stage, flat: Any) -> Index:
    """Invert a stage: peel from the innermost block outwards."""
    index: Index = ()
    for block in reversed(stage[1:]):
        index = (*block.inv(flat % block.size), *index)
        flat = flat // block.size
    return (*stage[0].inv(flat), *index)
