"""Registers of 4 bytes that hold narrow elements: shifted, and squares of them transposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.hardware.limits import WARP_THREADS

REGISTER = 4
"""Bytes of a register."""

_PERMUTE = "prmt.b32 $0, $1, $2, $3;"
"""Each nibble of the last operand is the number of a byte of the two others (PTX ISA 9.7.9.7)."""

_SHIFT = "shf.r.wrap.b32 $0, $1, $2, $3;"
"""The low word of two, shifted right by some bits, modulo 32 (PTX ISA 9.7.8.7)."""

_LOW, _HIGH = 0x5410, 0x7632
"""What takes the lower or the upper halves of two registers."""


def register(word: Any) -> Any:
    """Return a vector of 4 bytes as one register, i32."""
    return word.bitcast("i32")[0]


def elements(registers: Sequence[Any], dtype: str) -> Any:
    """Return the elements that registers hold, as one vector."""
    return lg.concatenate(registers).bitcast(dtype)


def shifted(near: Any, far: Any, bits: Any) -> Any:
    """Return the register that begins so many bits, below 32, inside of the first of two."""
    return lg.inline_ptx(_SHIFT, near, far, bits, result="i32")


def of_next_lane(register: Any) -> Any:
    """Return a register of the warp's next lane; all lanes come. The last one has its own back."""
    whole, one, last = (lg.zeros((1,), "i32")[0] + n for n in (-1, 1, WARP_THREADS - 1))
    return lg.op(
        "nvvm.shfl.sync", whole, register, one, last, result="i32", kind="#nvvm<shfl_kind down>"
    )


def transposed(rows: Sequence[Any], first: Any) -> list[Any]:
    """Return the columns of a square of elements, from one of them on and round to it again.

    Args:
        rows: registers, each of as many elements as there are rows: 1, 2 or 4.
        first: the number of the first column, i32.
    """
    match rows:
        case [row]:
            return [row]
        case [one, other]:
            turn = first * (_HIGH - _LOW)
            choices = [turn + _LOW, _HIGH - turn]
            return [_permuted(one, other, choice) for choice in choices]
        case [_, _, _, _]:
            pairs: list[list[Any]] = []
            for k in (0, 2):
                near, far = (first + k) & 3, (first + (k + 1)) & 3
                choice = near * 0x11 + far * 0x1100 + 0x4040
                pairs.append([_permuted(rows[n], rows[n + 1], choice) for n in (0, 2)])
            return [_permuted(one, other, half) for one, other in pairs for half in (_LOW, _HIGH)]
        case _:
            raise AssertionError(f"no square of {len(rows)} rows")


def _permuted(one: Any, other: Any, choice: Any) -> Any:
    """Return four bytes of two registers."""
    if isinstance(choice, int):
        choice = lg.zeros((1,), "i32")[0] + choice
    return lg.inline_ptx(_PERMUTE, one, other, choice, result="i32")
