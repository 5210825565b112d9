"""Reductions and scans: by a kind, and by a function, ignoring invalid elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from lego_mlir.analysis.distributed.sort import masks
from lego_mlir.hardware.limits import MMA_K_BYTES
from lego_mlir.mlir.tile_ir.interpreter.pointwise import as_type, signed, unsigned
from lego_mlir.mlir.tile_ir.interpreter.values import Array, Value, cast, is_float

Function: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], Sequence[Array]]
"""Combines elements of up to four tiles with others of each, element by element."""

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "umax": np.maximum,
    "umin": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def identity_of(kind: str, dtype: np.dtype[Any]) -> Any:
    """Return the number that combined with another one by a kind leaves it as it is."""
    if is_float(dtype):
        return {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[kind]
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    numbers = {"add": 0, "mul": 1, "max": least, "min": most, "umax": 0, "umin": -1}
    return {**numbers, "and": -1, "or": 0, "xor": 0}[kind]


def _wide(data: Array, kind: str) -> Array:
    """Return elements as they are combined: floats in f64, integers by their signedness."""
    if is_float(data.dtype):
        return data.astype(np.float64)
    return signed(data) if kind in ("max", "min") else unsigned(data)


def _narrow(data: Array, dtype: np.dtype[Any]) -> Array:
    return cast(data, dtype) if is_float(dtype) else as_type(data, dtype)


def _filled(tile: Value, kind: str) -> Array:
    """Return the elements to combine, with the identity in place of invalid ones."""
    wide = _wide(tile.data, kind)
    if is_float(tile.data.dtype):
        identity: Any = identity_of(kind, tile.data.dtype)
    else:
        identity = np.asarray(identity_of(kind, tile.data.dtype)).astype(wide.dtype)
    return np.where(tile.valid, wide, identity).astype(wide.dtype)


def combined(a: Array, b: Array, kind: str) -> Array:
    """Return the combinations of the elements of two arrays by a kind, each rounded."""
    return _narrow(_UFUNCS[kind](_wide(a, kind), _wide(b, kind)), a.dtype)


def reduced(tile: Value, kind: str, dim: int) -> Value:
    """Return the combination of the elements along a dimension, which stays, with size 1.

    The result is valid where one of the elements is; elsewhere it is the identity.
    """
    wide = _filled(tile, kind)
    data = _UFUNCS[kind].reduce(wide, axis=dim, keepdims=True, dtype=wide.dtype)
    valid = np.asarray(tile.valid.any(axis=dim, keepdims=True))
    return Value(_narrow(data, tile.data.dtype), valid)


def scanned(tile: Value, kind: str, dim: int, *, reverse: bool) -> Value:
    """Return for each element the combination of those up to it, or, in reverse, from it on."""
    wide = _filled(tile, kind)
    wide = np.flip(wide, dim) if reverse else wide
    data = _UFUNCS[kind].accumulate(wide, axis=dim, dtype=wide.dtype)
    data = np.flip(data, dim) if reverse else data
    return Value(_narrow(data, tile.data.dtype), tile.valid)


def _combined(first: Sequence[Value], second: Sequence[Value], function: Function) -> list[Value]:
    """Combine tiles element by element; an invalid element leaves the other one as it is.

    The elements of all tiles that belong together are valid together.
    """
    made = function([t.data for t in first], [t.data for t in second])
    found = []
    for a, b, both in zip(first, second, made, strict=True):
        data = np.where(a.valid & b.valid, both, np.where(a.valid, a.data, b.data))
        found.append(Value(data, a.valid | b.valid))
    return found


def _part(tiles: Sequence[Value], dim: int, start: int | None, stop: int | None) -> list[Value]:
    """Return the elements of tiles in a range of a dimension."""
    index = (slice(None),) * dim + (slice(start, stop),)
    return [Value(t.data[index], t.valid[index]) for t in tiles]


def _joined(first: Sequence[Value], second: Sequence[Value], dim: int) -> list[Value]:
    return [
        Value(
            np.concatenate([a.data, b.data], dim),
            np.concatenate([a.valid, b.valid], dim),
        )
        for a, b in zip(first, second, strict=True)
    ]


def _valid_together(tiles: Sequence[Value]) -> list[Value]:
    valid = np.logical_and.reduce([t.valid for t in tiles])
    return [Value(t.data, valid) for t in tiles]


def reduced_with(
    tiles: Sequence[Value], function: Function, dim: int, identity: Sequence[Array] | None
) -> list[Value]:
    """Return the combination of elements along a dimension by a function: halves, then halves.

    Where no element is valid the result is invalid, and the identity, if there is one.
    """
    found = _valid_together(tiles)
    while (size := found[0].data.shape[dim]) > 1:
        half = size // 2
        rest = _part(found, dim, 2 * half, None)
        first, second = _part(found, dim, 0, half), _part(found, dim, half, 2 * half)
        found = _joined(_combined(first, second, function), rest, dim)
    if identity is None:
        return found
    return [
        Value(np.where(t.valid, t.data, cast(e, t.data.dtype)), t.valid)
        for t, e in zip(found, identity, strict=True)
    ]


def scanned_with(
    tiles: Sequence[Value], function: Function, dim: int, *, reverse: bool
) -> list[Value]:
    """Return the combinations up to each element, or from it on, by a function.

    Distances double (Hillis and Steele, 1986): what comes first is the function's first argument.
    """
    ones = _valid_together(tiles)
    found, size, distance = ones, tiles[0].data.shape[dim], 1
    while distance < size:
        low, high = _part(found, dim, None, -distance), _part(found, dim, distance, None)
        if reverse:
            done = _combined(low, high, function)
            found = _joined(done, _part(found, dim, size - distance, None), dim)
        else:
            done = _combined(low, high, function)
            found = _joined(_part(found, dim, 0, distance), done, dim)
        distance *= 2
    return [Value(t.data, one.valid) for t, one in zip(found, ones, strict=True)]


def sorted_with(
    tiles: Sequence[Value], function: Function, dim: int, identity: Sequence[Array] | None
) -> list[Value]:
    """Return tiles sorted along a dimension, by the network of `analysis.distributed.sort`.

    Args:
        tiles: their elements are sorted together.
        function: whether an element of each comes before another one of each.
        dim: the dimension.
        identity: what stands for invalid elements.
    """
    ones = _valid_together(tiles)
    size = ones[0].data.shape[dim]
    held = [np.moveaxis(t.data, dim, -1) for t in ones]
    if identity is not None:
        valid = np.moveaxis(ones[0].valid, dim, -1)
        held = [np.where(valid, x, cast(e, x.dtype)) for x, e in zip(held, identity, strict=True)]
    index = np.arange(size)
    for mask in masks(size):
        partner = index ^ mask
        others = [x[..., np.minimum(partner, size - 1)] for x in held]
        is_lower = index & (1 << (mask.bit_length() - 1)) == 0
        (comes,), (goes,) = function(others, held), function(held, others)
        takes = np.where(is_lower, comes, goes) & (partner < size)
        held = [np.where(takes, y, x) for x, y in zip(held, others, strict=True)]
    some = np.broadcast_to(ones[0].valid.any(axis=dim, keepdims=True), ones[0].valid.shape)
    return [Value(np.moveaxis(x, -1, dim), some) for x in held]


def multiplied(a: Value, b: Value, accumulator: Value) -> Value:
    """Return `a @ b + accumulator`; invalid elements of the operands count as 0.

    An element is invalid where the accumulator's is, and where none of those that it adds up is
    valid: in a row of `a`, or a column of `b`. Floats are added up in f64 and rounded once for each
    instruction's elements of k, so that it does not matter how a dot is divided along k.
    """
    dtype = accumulator.data.dtype
    wide = np.float64 if is_float(dtype) else np.int64
    x, y = (np.where(t.valid, t.data.astype(wide), 0) for t in (a, b))
    total, depth = accumulator.data, MMA_K_BYTES // a.data.dtype.itemsize
    for k in range(0, x.shape[1], depth):
        total = _narrow(x[:, k : k + depth] @ y[k : k + depth] + total.astype(wide), dtype)
    valid = a.valid.any(axis=1, keepdims=True) & b.valid.any(axis=0, keepdims=True)
    return Value(total, accumulator.valid & valid)
