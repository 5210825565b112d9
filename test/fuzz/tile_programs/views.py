"""Tiles of other shapes, orders and layouts."""

from __future__ import annotations

from math import prod

from fuzz.tile_programs.program import (
    INDENT,
    MOST_ELEMENTS,
    WIDTHS,
    Program,
    Tile,
    tile_type,
)
from lego_mlir.analysis.distributed import coalesced


def repeated(p: Program, tile: Tile, shape: tuple[int, ...]) -> Tile:
    if tile.shape == shape:
        return tile
    kind = tile_type(shape, tile.element)
    return p.add(shape, tile.element, p.op("broadcast", tile) + kind, tile.is_exact)


def broadcast(p: Program) -> None:
    a = p.pick()
    if a is None or 1 not in a.shape:
        return
    shape = tuple(p.random.choice((1, 2, 4, 8)) if n == 1 else n for n in a.shape)
    if prod(shape) <= MOST_ELEMENTS:
        repeated(p, a, shape)


def transpose(p: Program) -> None:
    a = p.pick()
    if a is None or len(a.shape) < 2:
        return
    order = list(range(len(a.shape)))
    p.random.shuffle(order)
    shape = tuple(a.shape[d] for d in order)
    text = p.op("transpose", a, attributes=f"order = array<i64: {', '.join(map(str, order))}>")
    p.add(shape, a.element, text + tile_type(shape, a.element), a.is_exact)


def reshape(p: Program) -> None:
    r = p.random
    a = p.pick()
    if a is None:
        return
    total = prod(a.shape)
    first = r.choice([n for n in range(1, total + 1) if total % n == 0])
    shape = r.choice(((total,), (first, total // first), (1, *a.shape), (*a.shape, 1)))
    if len(shape) <= 3:
        text = p.op("reshape", a) + tile_type(shape, a.element)
        p.add(shape, a.element, text, a.is_exact)


def join(p: Program) -> None:
    a = p.pick()
    b = a and p.pick(shape=a.shape, element=a.element)
    if a is None or b is None or len(a.shape) > 2 or 2 * prod(a.shape) > MOST_ELEMENTS:
        return
    shape = (*a.shape, 2)
    exact = a.is_exact and b.is_exact
    p.add(shape, a.element, p.op("join", a, b) + tile_type(shape, a.element), exact)


def split(p: Program) -> None:
    a = p.pick()
    if a is None or len(a.shape) < 2 or a.shape[-1] not in (2, 4):
        return
    shape = a.shape[:-1]
    parts = [Tile(p.name(), shape, a.element, a.is_exact) for _ in range(a.shape[-1])]
    names = ", ".join(f"%{t.name}" for t in parts)
    kinds = ", ".join(t.type for t in parts)
    p.lines.append(f"{INDENT}{names} = {p.op('split', a)}({kinds})")
    p.tiles += parts


def take(p: Program) -> None:
    a = p.pick()
    if a is None:
        return
    dim = p.random.randrange(len(a.shape))
    kind = tile_type(a.shape, "i32")
    step = p.add(a.shape, "i32", f'"lego.iota"() {{dim = {dim} : i64}} : () -> {kind}')
    factor = p.constant(a.shape, "i32", p.random.randrange(1, 6))
    size = p.constant(a.shape, "i32", a.shape[dim])
    times = p.add(a.shape, "i32", f"arith.muli %{step.name}, %{factor.name} : {kind}")
    index = p.add(a.shape, "i32", f"arith.remui %{times.name}, %{size.name} : {kind}")
    text = p.op("take", a, index, attributes=f"dim = {dim} : i64")
    p.add(a.shape, a.element, text + a.type, a.is_exact)


def given(p: Program) -> None:
    """Convert a tile to a layout and back."""
    a = p.pick()
    if a is None:
        return
    order = p.random.sample(range(len(a.shape)), len(a.shape))
    layout = coalesced(a.shape, max(1, WIDTHS.get(a.element, 32) // 8), p.warps, order=order)
    there = f'{a.type[:-1]}, #lego.layout<"{layout.text}">>'
    name = p.name()
    p.lines.append(f"{INDENT}%{name} = {p.op('convert', a)}{there}")
    text = f'"lego.convert"(%{name}) : ({there}) -> {a.type}'
    p.add(a.shape, a.element, text, a.is_exact)
