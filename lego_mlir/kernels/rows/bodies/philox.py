"""Random numbers of a counter: Philox 4×32 with 10 rounds, on tiles.

The numbers of an element depend on the seed, its row and its column alone: not on tiles, threads,
or the order in which they run (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
"""

from __future__ import annotations

from typing import Any

from lego_mlir import frontend as lg

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_NUMBERS = 4
"""Numbers of 32 bits that one counter gives."""


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, ...]:
    """Return the four random u32 of each counter.

    Args:
        counter: four tiles of u32, or scalars.
        key: two of them.
    """
    a, b, c, d = counter
    first, second = key
    for _ in range(_ROUNDS):
        high, low = _product(a, _MULTIPLIERS[0])
        other_high, other_low = _product(c, _MULTIPLIERS[1])
        a, b, c, d = other_high ^ b ^ first, other_low, high ^ d ^ second, low
        first, second = first + _WEYL[0], second + _WEYL[1]
    return a, b, c, d


def uniform(seed: Any, shape: tuple[int, int], row: Any, number: Any) -> Any:
    """Return random numbers from 0 to 1, exclusive, of 24 bits.

    Args:
        seed: a scalar of u64.
        shape: of the tile; columns are a multiple of four, and a power of two.
        row: the number of the tile along the rows.
        number: that along the columns.
    """
    rows, columns = shape
    counters = rows, columns // _NUMBERS
    column = (lg.iota(counters, 1) + number * counters[1]).to("u32")
    line = (lg.iota(counters, 0) + row * rows).to("u32")
    key = seed.to("u32"), (seed >> 32).to("u32")
    zero = lg.zeros(counters, "u32")
    found = lg.join(*philox((column, line, zero, zero), key)).reshape(*shape)
    return (found >> 8).to("f32") * 2.0**-24


def _product(x: Any, factor: int) -> tuple[Any, Any]:
    """Return the high and the low half of a product."""
    whole = x.to("u64") * factor
    return (whole >> 32).to("u32"), whole.to("u32")
