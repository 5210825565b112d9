"""Random tiled layouts, whole and partial, and where their elements lie by definition.

Written with NumPy's own index arithmetic, and sharing no code with the product.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import lego_mlir as lg

KINDS = ("Row", "Col", "swizzle")


@dataclass(frozen=True)
class Tiled:
    """A layout with what it is of: orders of blocks, each a kind and its sizes, and tiles."""

    orders: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
    tiles: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return joined([dims for _, dims in self.orders[-1]])

    def layout(self) -> lg.Layout:
        made = None
        for order in self.orders:
            blocks = [block(kind, dims) for kind, dims in order]
            made = lg.OrderBy(*blocks) if made is None else made.OrderBy(*blocks)
        assert made is not None
        return made.TileBy(*self.tiles)

    def offsets(self) -> Any:
        """The offset of every element of the tensor."""
        flat = np.arange(prod(self.shape)).reshape(self.shape)
        for order in reversed(self.orders):
            flat = order_offsets(order).reshape(-1)[flat]
        return flat

    def coordinates(self) -> tuple[Any, Any]:
        """Every index of the padded space, and its coordinates in the tensor."""
        index = np.indices([n for level in self.tiles for n in level])
        rank = len(self.shape)
        coordinates = np.zeros((rank, *index.shape[1:]), int)
        for level, sizes in enumerate(self.tiles):
            for k in range(rank):
                coordinates[k] = coordinates[k] * sizes[k] + index[level * rank + k]
        return index, coordinates


def joined(levels: Any) -> tuple[int, ...]:
    return tuple(prod(sizes) for sizes in zip(*levels, strict=True))


def block(kind: str, dims: tuple[int, ...]) -> Any:
    if kind == "swizzle":
        return lg.GenP(dims, lg.swizzle(1, 1, dims[-1]))
    return lg.Row(*dims) if kind == "Row" else lg.Col(*dims)


def position(kind: str, dims: tuple[int, ...], index: Any) -> Any:
    if kind == "swizzle":
        index = [*index[:-1], index[-1] ^ (index[-2] % dims[-1])]
    order = "F" if kind == "Col" else "C"
    return np.ravel_multi_index(tuple(index), dims, order=order)


def order_offsets(order: Any) -> Any:
    rest = np.indices(joined([dims for _, dims in order]))
    flat: Any = 0
    sizes = [dims for _, dims in order]
    for level, (kind, dims) in enumerate(order):
        inner = np.array(joined([(1,) * len(dims), *sizes[level + 1 :]]))
        inner = inner.reshape(-1, *(1,) * (rest.ndim - 1))
        flat = flat * prod(dims) + position(kind, dims, list(rest // inner))
        rest = rest % inner
    return flat


@st.composite
def tiled(draw: st.DrawFn) -> Tiled:
    """Tensors of one to three dimensions under two or three levels of tiles."""
    rank = draw(st.integers(1, 3))
    most = (40, 9, 5)[rank - 1]
    dims = st.tuples(*[st.integers(1, most)] * rank)

    def kind(of: tuple[int, ...]) -> str:
        powers = rank == 2 and all(n & (n - 1) == 0 for n in of)
        return draw(st.sampled_from(KINDS if powers else KINDS[:2]))

    outer, inner = draw(dims), draw(st.tuples(*[st.integers(1, 4)] * rank))
    order = ((kind(outer), outer), (kind(inner), inner))
    shape = joined([outer, inner])
    orders = [order[: draw(st.integers(1, 2))]]
    if len(orders[0]) == 1:
        orders = [((kind(shape), shape),)]
    if draw(st.booleans()):
        orders.insert(0, ((draw(st.sampled_from(KINDS[:2])), shape),))
    levels = draw(st.lists(st.tuples(*[st.integers(1, 5)] * rank), min_size=1, max_size=2))
    tile = joined(levels)
    cover = tuple(-(-n // t) for n, t in zip(shape, tile, strict=True))
    assume(prod(cover) * prod(tile) < 20_000)
    return Tiled(tuple(orders), (cover, *levels))
