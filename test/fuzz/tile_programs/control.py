"""Loops and branches."""

from __future__ import annotations

from fuzz.tile_programs.combining import scan
from fuzz.tile_programs.elementwise import pointwise
from fuzz.tile_programs.program import (
    INDENT,
    Program,
    Tile,
)


def loop(p: Program) -> None:
    """Carry a tile round a loop, in which operations on elements change it."""
    a = p.pick()
    if a is None or a.element == "i1":
        return
    b = p.pick(shape=a.shape, element=a.element) or a
    turns, result, inside = p.name(), p.name(), p.name()
    p.lines.append(f"{INDENT}%{turns} = arith.constant {p.random.randrange(0, 4)} : index")
    p.lines.append(
        f"{INDENT}%{result} = scf.for %i{result} = %c0 to %{turns} step %c1 "
        f"iter_args(%{inside} = %{a.name}) -> ({a.type}) {{"
    )
    outside = list(p.tiles)
    p.tiles = [Tile(inside, a.shape, a.element, a.is_exact), b]
    for _ in range(p.random.randrange(1, 4)):
        p.random.choice((pointwise, pointwise, scan))(p)
    last = p.pick(shape=a.shape, element=a.element) or b
    p.lines += [f"{INDENT}scf.yield %{last.name} : {a.type}", f"{INDENT}}}"]
    p.tiles = [*outside, Tile(result, a.shape, a.element, False if a.is_float else a.is_exact)]


def branch(p: Program) -> None:
    """Choose between tiles by the number of the CTA."""
    a = p.pick()
    if a is None:
        return
    b = p.pick(shape=a.shape, element=a.element) or a
    condition, result = p.name(), p.name()
    p.lines += [
        f"{INDENT}%{condition} = arith.cmpi eq, %b, %c0 : index",
        f"{INDENT}%{result} = scf.if %{condition} -> ({a.type}) {{",
        f"{INDENT}scf.yield %{a.name} : {a.type}",
        f"{INDENT}}} else {{",
        f"{INDENT}scf.yield %{b.name} : {b.type}",
        f"{INDENT}}}",
    ]
    p.tiles.append(Tile(result, a.shape, a.element, a.is_exact and b.is_exact))
