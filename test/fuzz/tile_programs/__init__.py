"""Random programs on tiles: operations of all kinds, sizes, types, padding, and numbers of warps.

Floats stay near 1, and what depends on them by comparison is compared where it is exact, so that
the program's results are the same, within rounding, however it is compiled.
"""

from __future__ import annotations

from random import Random

from tile_modules import tile_module

from fuzz.tile_programs.combining import argmax, dot, item, reduce, scan
from fuzz.tile_programs.control import branch, loop
from fuzz.tile_programs.elementwise import cast, compare, fill, iota, pointwise, restrict, unary
from fuzz.tile_programs.memory import gather, load, scatter, store
from fuzz.tile_programs.open_sizes import with_open_sizes
from fuzz.tile_programs.program import Program
from fuzz.tile_programs.views import (
    broadcast,
    given,
    join,
    reshape,
    split,
    take,
    transpose,
)

_STEPS = (
    *(pointwise,) * 6,
    *(unary, unary, compare, compare, cast, cast),
    *(reduce,) * 4,
    *(scan, iota, restrict, restrict, argmax, transpose, transpose, reshape, reshape),
    *(join, split, take, dot, given, item, loop, branch, broadcast, load, gather, scatter, fill),
)


def drawn_program(random: Random, *, open_sizes: bool = True) -> str:
    """Return the text of a random module with one kernel on tiles.

    Args:
        random: draws.
        open_sizes: some modules leave sizes to the launch.
    """
    grid, warps = random.choice((1, 1, 2, 3)), random.choice((1, 1, 2, 3, 4, 8))
    p = Program(random, grid=grid, warps=warps)
    for _ in range(random.randrange(1, 4)):
        load(p)
    for _ in range(random.randrange(1, 12)):
        random.choice(_STEPS)(p)
    last = p.tiles[-6:]
    for tile in random.sample(last, min(len(last), random.randrange(1, 4))):
        store(p, tile)
    body = "\n".join(p.lines)
    text = tile_module(p.tensors, body, grid=grid, warps=warps, layouts=p.layouts)
    is_open = open_sizes and random.random() < 0.4
    return with_open_sizes(random, text, p.tensors) if is_open else text
