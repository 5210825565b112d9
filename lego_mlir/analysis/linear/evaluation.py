"""A linear map as arithmetic: from its columns to `//`, `%`, `*`, `+` and as few `^` as it takes.

The same code runs on integers, NumPy arrays, index expressions and kernel values. Bits that move
together move in one piece, `x // 2^a % 2^n * 2^b`; pieces that do not overlap add up, and only
those that do are XORed. A bit permutation thus has no XOR and a swizzle has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import groupby
from operator import add, xor
from typing import Any, NamedTuple

from lego_mlir.analysis.linear.f2 import Matrix
from lego_mlir.diagnostics import LegoError
from lego_mlir.index.functions import is_array


class Piece(NamedTuple):
    """`bits` bits of input number `source`, from bit `start`, that land at output bit `target`.

    `masked` if the input has bits above them.
    """

    source: int
    start: int
    bits: int
    target: int
    masked: bool


def checked(value: Any, name: str, size: int) -> Any:
    """Return `value`, if it may stand for a number in [0, size); arrays come back as int64.

    Raises:
        LegoError: a number out of range or no integer.
    """
    if is_array(value):
        import numpy as np

        value = np.asarray(value)
        if value.dtype.kind not in "iu":
            raise LegoError(f"{name}: coordinates are integers, not {value.dtype}")
        outside = value[(value < 0) | (value >= size)]
        if outside.size:
            raise LegoError(f"{name} is {outside[0]}, not in [0, {size})")
        return value.astype(np.int64)
    if isinstance(value, bool | float | str):
        raise LegoError(f"{name}: coordinates are integers, not {value!r}")
    if isinstance(value, int) and not 0 <= value < size:
        raise LegoError(f"{name} is {value}, not in [0, {size})")
    return value


def combine(
    columns: Matrix, inputs: Sequence[tuple[Any, int]], output_bits: Sequence[int]
) -> tuple[Any, ...]:
    """Return the image of a vector, one value for each output.

    Args:
        columns: the images of the input bits, flattened over the outputs.
        inputs: values with their numbers of bits, least significant first.
        output_bits: how many bits each output has, least significant first.
    """
    values = [value for value, _ in inputs]
    results = []
    for layers in _plan(columns, tuple(bits for _, bits in inputs), tuple(output_bits)):
        sums = [_sum([_term(piece, values[piece.source]) for piece in layer]) for layer in layers]
        results.append(reduce(xor, sums) if sums else _sum([value * 0 for value in values]))
    return tuple(results)


def _term(piece: Piece, value: Any) -> Any:
    if piece.start:
        value = value // (1 << piece.start)
    if piece.masked:
        value = value % (1 << piece.bits)
    return value * (1 << piece.target) if piece.target else value


def _sum(terms: Sequence[Any]) -> Any:
    return reduce(add, terms) if terms else 0


@lru_cache(maxsize=1024)
def _plan(
    columns: Matrix, input_bits: tuple[int, ...], output_bits: tuple[int, ...]
) -> tuple[tuple[tuple[Piece, ...], ...], ...]:
    """Return for each output the layers to XOR, and of each layer the pieces to add."""
    plan = []
    for bits in output_bits:
        low = tuple(column % (1 << bits) for column in columns)
        columns = tuple(column >> bits for column in columns)
        plan.append(_layers(_pieces(low, input_bits)))
    return tuple(plan)


def _layers(pieces: Iterable[Piece]) -> tuple[tuple[Piece, ...], ...]:
    """Return the pieces, longest first, each in the first layer that does not use its bits."""
    layers: list[tuple[int, list[Piece]]] = []
    for piece in sorted(pieces, key=lambda p: (-p.bits, p.source, p.start)):
        mask = ((1 << piece.bits) - 1) << piece.target
        for k, (used, layer) in enumerate(layers):
            if not used & mask:
                layers[k] = used | mask, [*layer, piece]
                break
        else:
            layers.append((mask, [piece]))
    return tuple(tuple(layer) for _, layer in layers)


def _pieces(columns: Matrix, input_bits: tuple[int, ...]) -> Iterator[Piece]:
    """Return the matrix diagonal by diagonal, in the longest runs of ones within one input."""
    first = 0
    for source, bits in enumerate(input_bits):
        mine = columns[first : first + bits]
        first += bits
        rows = max((column.bit_length() for column in mine), default=0)
        for shift in range(1 - bits, rows):
            ones = [k + shift >= 0 and mine[k] >> (k + shift) & 1 for k in range(bits)]
            start = 0
            for one, run in groupby(ones, key=bool):
                length = len(list(run))
                if one:
                    masked = start + length < bits
                    yield Piece(source, start, length, start + shift, masked)
                start += length
