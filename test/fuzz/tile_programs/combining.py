"""Reductions, scans and dots."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fuzz.tile_programs.program import (
    INDENT,
    WIDTHS,
    Program,
    Tile,
    drawn_shape,
    tile_type,
)
from fuzz.tile_programs.views import repeated


def reduce(p: Program) -> None:
    r = p.random
    a = p.pick()
    if a is None:
        return
    dim = r.randrange(len(a.shape))
    kinds: Sequence[str] = ("add", "mul", "max", "min", "umax", "umin", "and", "or", "xor")
    if a.is_float:
        kinds = ("add", "max", "min")
    elif a.element == "i1":
        kinds = ("and", "or", "xor")
    kind = r.choice(kinds)
    shape = (*a.shape[:dim], 1, *a.shape[dim + 1 :])
    exact = a.is_exact and (not a.is_float or kind != "add")
    text = p.op("reduce", a, attributes=f'kind = "{kind}", dim = {dim} : i64')
    made = p.tamed(p.add(shape, a.element, text + tile_type(shape, a.element), exact))
    if r.random() < 0.7:
        repeated(p, made, a.shape)


def scan(p: Program) -> None:
    a = p.pick()
    if a is None or a.element == "i1":
        return
    dim = p.random.randrange(len(a.shape))
    kind = p.random.choice(("add", "max", "min"))
    reverse = ", reverse" if p.random.random() < 0.3 else ""
    exact = a.is_exact and (not a.is_float or kind != "add")
    text = p.op("scan", a, attributes=f'kind = "{kind}", dim = {dim} : i64{reverse}')
    p.tamed(p.add(a.shape, a.element, text + a.type, exact))


def argmax(p: Program) -> None:
    """Reduce pairs of a number and its index: the greatest, and of equal ones the first."""
    a = p.pick(is_exact=True)
    if a is None or a.element == "i1":
        return
    dim = p.random.randrange(len(a.shape))
    index = p.add(
        a.shape,
        "i32",
        f'"lego.iota"() {{dim = {dim} : i64}} : () -> {tile_type(a.shape, "i32")}',
    )
    shape = (*a.shape[:dim], 1, *a.shape[dim + 1 :])
    kinds = [tile_type(shape, a.element), tile_type(shape, "i32")]
    value, at = Tile(p.name(), shape, a.element), Tile(p.name(), shape, "i32")
    compared = "arith.cmpf {}, %p, %r" if a.is_float else "arith.cmpi {}, %p, %r"
    greater = compared.format("ogt" if a.is_float else "sgt")
    equal = compared.format("oeq" if a.is_float else "eq")
    e = a.element
    if a.is_float:
        bits = {"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}[e]
        lowest = f"{bits} : {e}"
    else:
        lowest = f"{-(1 << WIDTHS[e] - 1)} : {e}"
    p.lines.append(
        f"""{INDENT}%{value.name}, %{at.name} = "lego.reduce_with"(%{a.name}, %{index.name}) ({{
        ^bb0(%p: {e}, %q: i32, %r: {e}, %s: i32):
          %gt = {greater} : {e}
          %eq = {equal} : {e}
          %lt = arith.cmpi slt, %q, %s : i32
          %first = arith.andi %eq, %lt : i1
          %take = arith.ori %gt, %first : i1
          %u = arith.select %take, %p, %r : {e}
          %w = arith.select %take, %q, %s : i32
          gpu.yield %u, %w : {e}, i32
        }}) {{dim = {dim} : i64, identity = [{lowest}, 2147483647 : i32],
            operandSegmentSizes = array<i32: 1, 1, 0, 0>,
            resultSegmentSizes = array<i32: 1, 1, 0, 0>}}
          : ({a.type}, {index.type}) -> ({", ".join(kinds)})"""
    )
    p.tiles += [value, at]


def dot(p: Program) -> None:
    r = p.random
    element = r.choice(("f16", "bf16", "f32", "f16"))
    m, n, k = (r.choice(sizes) for sizes in ((16, 32, 64), (16, 32), (16, 32)))
    operands = []
    for shape in ((m, k), (k, n)):
        found = p.pick(element=element)
        if found is None:
            return
        if prod(found.shape) == prod(shape):
            text = p.op("reshape", found) + tile_type(shape, element)
            operands.append(p.add(shape, element, text, found.is_exact))
        elif len(found.shape) == 2 and all(map(_is_repeated, found.shape, shape)):
            operands.append(repeated(p, found, shape))
        else:
            return
    zero = p.constant((m, n), "f32", 0.0)
    made = p.add((m, n), "f32", p.op("dot", *operands, zero) + zero.type, False)
    scale = p.constant((m, n), "f32", 1 / k)
    p.tiles.remove(made)
    p.tamed(p.add((m, n), "f32", f"arith.mulf %{made.name}, %{scale.name} : {made.type}", False))


def _is_repeated(n: int, m: int) -> bool:
    return n in (1, m)


def item(p: Program) -> None:
    a = p.pick(shape=(1, 1)) or p.pick(shape=(1,))
    if a is None:
        return
    number, shape = p.name(), drawn_shape(p.random)
    p.lines.append(f"{INDENT}%{number} = {p.op('item', a)}{a.element}")
    kind = tile_type(shape, a.element)
    p.add(shape, a.element, f'"lego.full"(%{number}) : ({a.element}) -> {kind}', a.is_exact)
