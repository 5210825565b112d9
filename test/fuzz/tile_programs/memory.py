"""Loads and stores of tiles, at origins and at indices."""

from __future__ import annotations

from math import prod

from tile_modules import memref

from fuzz.tile_programs.program import (
    FLOATS,
    INDENT,
    INTEGERS,
    Program,
    Tile,
    drawn_shape,
    tile_type,
)


def load(p: Program) -> None:
    r = p.random
    shape = drawn_shape(r)
    element = r.choice((*FLOATS, *INTEGERS))
    name = f"X{len(p.tensors)}"
    tensor, origins = [], []
    for dim, n in enumerate(shape):
        tiles = p.grid if dim == 0 else 1
        short = r.choice((0, 0, 0, r.randrange(n)))
        tensor.append(max(1, tiles * n - short))
        if tiles > 1:
            origin = p.name()
            size = p.name()
            p.lines.append(f"{INDENT}%{size} = arith.constant {n} : index")
            p.lines.append(f"{INDENT}%{origin} = arith.muli %b, %{size} : index")
            origins.append(f"%{origin}")
        else:
            origins.append("%c0")
    p.tensors[name] = element, tuple(tensor)
    draw_order(p, name)
    dims = ", ".join(map(str, range(len(shape))))
    kinds = ", ".join([memref(element, tuple(tensor)), *["index"] * len(shape)])
    p.add(
        shape,
        element,
        f'"lego.load"(%{name}, {", ".join(origins)}) {{layout = #{name}, '
        f"slice = array<i64: {dims}>}} : ({kinds}) -> {tile_type(shape, element)}",
    )


def draw_order(p: Program, tensor: str) -> None:
    """Give a tensor another order of dimensions than row-major, or not."""
    if p.random.random() < 0.3:
        p.layouts[tensor] = f"OrderBy(Col({', '.join(map(str, p.tensors[tensor][1]))}))"


def _positions(p: Program, shape: tuple[int, ...], factor: int, size: int) -> Tile:
    """Add a tile of the row-major numbers of elements, times a factor, modulo a size."""
    kind = tile_type(shape, "i32")
    total = p.constant(shape, "i32", 0)
    for dim in range(len(shape)):
        step = p.add(shape, "i32", f'"lego.iota"() {{dim = {dim} : i64}} : () -> {kind}')
        stride = p.constant(shape, "i32", prod(shape[dim + 1 :]) * factor)
        part = p.add(shape, "i32", f"arith.muli %{step.name}, %{stride.name} : {kind}")
        total = p.add(shape, "i32", f"arith.addi %{total.name}, %{part.name} : {kind}")
    most = p.constant(shape, "i32", size)
    return p.add(shape, "i32", f"arith.remui %{total.name}, %{most.name} : {kind}")


def gather(p: Program) -> None:
    """Load a tile at indices, of which some may be invalid."""
    r = p.random
    shape, element, size = drawn_shape(r), r.choice((*FLOATS, *INTEGERS)), r.randrange(3, 300)
    name = f"X{len(p.tensors)}"
    p.tensors[name] = element, (size,)
    index = _positions(p, shape, r.randrange(1, 8), size)
    mask = p.pick(shape=shape, element="i1", is_exact=True)
    if mask is not None and r.random() < 0.5:
        index = p.add(shape, "i32", p.op("restrict", index, mask) + index.type)
    kinds = f"{memref(element, (size,))}, {index.type}"
    p.add(
        shape,
        element,
        f'"lego.gather"(%{name}, %{index.name}) {{layout = #{name}, '
        f"operandSegmentSizes = array<i32: 1, 1, 0>}} : ({kinds}) -> " + tile_type(shape, element),
    )


def scatter(p: Program) -> None:
    """Store a tile at indices that differ, or add integers at any."""
    r = p.random
    a = p.pick(is_exact=True)
    if a is None or a.element == "i1" or p.grid > 1:
        return
    adds = a.element == "i32" and r.random() < 0.6
    total = prod(a.shape)
    size = r.randrange(2, 40) if adds else total
    index = _positions(p, a.shape, 1, size)
    name = f"Y{len(p.tensors)}"
    p.tensors[name] = a.element, (size,)
    kind = ', kind = "add"' if adds else ""
    p.lines.append(
        f'{INDENT}"lego.scatter"(%{a.name}, %{name}, %{index.name}) {{layout = #{name}{kind}, '
        f"operandSegmentSizes = array<i32: 1, 1, 1, 0>}} : "
        f"({a.type}, {memref(a.element, (size,))}, {index.type}) -> ()"
    )


def store(p: Program, tile: Tile) -> None:
    """Store a tile of each CTA into a tensor of its own, which may be smaller."""
    name = f"Y{len(p.tensors)}"
    shape = tile.shape
    tensor = (p.grid, *(max(1, n - p.random.choice((0, 0, p.random.randrange(n)))) for n in shape))
    element = tile.element
    if element == "i1":
        wide = tile_type(shape, "i8")
        tile = p.add(shape, "i8", f"arith.extui %{tile.name} : {tile.type} to {wide}")
        element = "i8"
    p.tensors[name] = element, tensor
    draw_order(p, name)
    origin = ", ".join(["%b", *["%c0"] * len(shape)])
    dims = ", ".join(str(k + 1) for k in range(len(shape)))
    kinds = ", ".join([tile.type, memref(element, tensor), *["index"] * (len(shape) + 1)])
    p.lines.append(
        f'{INDENT}"lego.store"(%{tile.name}, %{name}, {origin}) {{layout = #{name}, '
        f"slice = array<i64: {dims}>}} : ({kinds}) -> ()"
    )
