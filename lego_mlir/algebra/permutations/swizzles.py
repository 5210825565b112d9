"""XOR swizzles: tiles in shared memory, laid out so that a column meets no bank twice.

All of them XOR bits of a position with higher bits of the same position, which stay as they are:
each undoes itself.
"""

from __future__ import annotations

from math import prod
from typing import Any

from lego_mlir.algebra.permutations.permutation import (
    Index,
    Permutation,
    flatten,
    is_power_of_two,
    unflatten,
)
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int


def swizzle(vec: int = 1, per_phase: int = 1, max_phase: int | None = None) -> Permutation:
    """Return the XOR swizzle of a two-dimensional tile in shared memory.

    Row i stays in position; within it, chunks of `vec` elements are permuted by XOR with the row's
    phase: chunk c of row i goes to `c ^ ((i // per_phase) % max_phase)` (papers/linear_layouts,
    Definition 4.11). Reading a column then touches `max_phase` different chunk positions, where
    a plain row-major tile touches one.

    Args:
        vec: elements a chunk; chunks stay contiguous.
        per_phase: rows that share a phase.
        max_phase: number of phases; by default as many as a row has chunks, at most one a row.

    Raises:
        LegoError: on use, if the tile is not two-dimensional or anything is no power of two.
    """
    parameters = (vec, per_phase) if max_phase is None else (vec, per_phase, max_phase)
    for n in parameters:
        if not is_power_of_two(n):
            raise LegoError(f"swizzle: vec, per_phase and max_phase are powers of two, not {n}")

    def phases(dims: tuple[Int, ...]) -> int:
        rows, columns = dims
        assert isinstance(rows, int)
        assert isinstance(columns, int)
        return max_phase or max(1, min(rows // per_phase, columns // vec))

    def check(dims: tuple[Int, ...]) -> None:
        if len(dims) != 2 or not all(is_power_of_two(n) for n in dims):
            raise LegoError(
                f"swizzle permutes a tile of two dimensions that are powers of two, "
                f"not {list(dims)}"
            )
        columns = dims[1]
        assert isinstance(columns, int)
        if phases(dims) * vec > columns:
            raise LegoError(
                f"swizzle: {phases(dims)} phases of {vec} elements do not fit a row of {columns}"
            )

    def swapped(dims: tuple[Int, ...], i: Any, j: Any) -> Any:
        rows = dims[0]
        assert isinstance(rows, int)
        # All rows share a phase if there are fewer; `per_phase` itself may not fit an array.
        return j ^ (i // min(per_phase, rows) % phases(dims) * vec)

    def forward(dims: tuple[Int, ...], index: Index) -> Any:
        i, j = index
        return i * dims[1] + swapped(dims, i, j)

    def inverse(dims: tuple[Int, ...], flat: Any) -> Index:
        i, j = unflatten(dims, flat)
        return i, swapped(dims, i, j)

    plain = max_phase is None and vec == 1 and per_phase == 1
    text = "swizzle" if plain else f"swizzle({', '.join(str(n) for n in parameters)})"
    return Permutation(text, forward, inverse, check, is_involution=True)


_CHUNK = 16
"""Bytes that TMA moves as one."""

_LINE = 128
"""Bytes of shared memory that have one phase: the 32 banks once."""


def tma_swizzle(mode: int, element: int) -> Permutation:
    """Return the order in which TMA writes a tile to shared memory, and wgmma reads it.

    It acts on the tile's flat byte offset, whatever the tile's rank: 16-byte chunks within each
    `mode` bytes are permuted by XOR with the number of the 128-byte line,

        32 bytes:   bit  4      ^= bit  7
        64 bytes:   bits 4 to 5 ^= bits 7 to 8
        128 bytes:  bits 4 to 6 ^= bits 7 to 9

    (CUtensorMapSwizzle of the CUDA driver API; PTX ISA, "Swizzling modes"). The hardware takes
    the bits of the shared address: the tile has to begin where the pattern does, at a multiple of
    256, 512 or 1024 bytes. A box that TMA loads has an innermost dimension of at most `mode`
    bytes.

    Args:
        mode: 32, 64 or 128 bytes.
        element: bytes an element: 1, 2, 4, 8 or 16.

    Raises:
        LegoError: a parameter is none of these; on use, if the sizes of the tile that are numbers
            make no multiple of `mode` bytes.
    """
    if type(mode) is not int or mode not in (32, 64, 128):
        raise LegoError(f"tma_swizzle: the mode is 32, 64 or 128 bytes, not {mode!r}")
    if type(element) is not int or element not in (1, 2, 4, 8, 16):
        raise LegoError(f"tma_swizzle: an element has 1, 2, 4, 8 or 16 bytes, not {element!r}")
    chunk, row = _CHUNK // element, mode // element
    rows_a_line, phases = _LINE // mode, mode // _CHUNK

    def check(dims: tuple[Int, ...]) -> None:
        if prod(n for n in dims if isinstance(n, int)) % row:
            raise LegoError(
                f"tma_swizzle({mode}, {element}) permutes whole rows of {row} elements, "
                f"not {sizes_text(dims)}",
                hint="the sizes that are numbers have to make whole rows",
            )

    def swapped(flat: Any) -> Any:
        number, column = flat // row, flat % row
        return number * row + (column ^ (number // rows_a_line % phases * chunk))

    return Permutation(
        f"tma_swizzle({mode}, {element})",
        lambda dims, index: swapped(flatten(dims, index)),
        lambda dims, flat: unflatten(dims, swapped(flat)),
        check,
        is_involution=True,
    )
