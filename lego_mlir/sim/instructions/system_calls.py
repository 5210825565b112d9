"""The functions that CUDA's device runtime gives every kernel: printf, assert, malloc, free.

Source: CUDA C++ Programming Guide, formatted output (`vprintf`), assertion (`__assertfail`),
dynamic global memory allocation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.diagnostics import printable
from lego_mlir.limits import current, how_to_raise
from lego_mlir.sim.machine.memory import (
    POISON,
    WINDOW_BITS,
    Buffer,
    Fault,
    Memory,
    MemoryAccess,
    base_of,
)
from lego_mlir.sim.ptx.syntax import Instruction
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_SPEC = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?"
    r"(?P<size>hh|h|ll|l|z|j|t)?(?P<kind>[%a-zA-Z])"
)
_LONGEST = 4096
"""Characters of a string at most."""

_HEAP = 1 << 24
"""The first window of what `malloc` returns."""

_CALL = Instruction("call", (), None, 0, 0)
_BYTE = MemoryAccess(_CALL, "generic", 1, 1, False)


def _vprintf(w: Wave, arguments: list[Array]) -> Array:
    """Write what `printf` prints to standard output, lane by lane; return how many arguments."""
    formats, values = arguments
    count = np.zeros(w.lanes, np.uint64)
    for lane in np.flatnonzero(w.active()):
        pieces = _Pieces(w, int(lane), int(values[lane]))
        text = _SPEC.sub(pieces.next, _text(w, int(formats[lane]), int(lane)))
        sys.stdout.write(printable(text, "\n\t"))
        count[lane] = pieces.count
    return count


class _Pieces:
    """The values that follow a format, from an address on, each aligned to its size."""

    def __init__(self, w: Wave, lane: int, address: int) -> None:
        self.w = w
        self.lane = lane
        self.address = address
        self.count = 0

    def take(self, size: int, *, signed: bool) -> int:
        self.address = -(-self.address // size) * size
        addresses = np.arange(self.address, self.address + size, dtype=np.uint64)
        data = self.w.memory.read(_BYTE, addresses, np.full(size, self.lane))
        self.address += size
        self.count += 1
        return int.from_bytes(data.tobytes(), "little", signed=signed)

    def next(self, found: re.Match[str]) -> str:
        kind = found["kind"]
        if kind == "%":
            return "%"
        width, precision = (
            str(self.take(4, signed=True)) if found[name] == "*" else found[name]
            for name in ("width", "precision")
        )
        shape = f"%{found['flags']}{width}" + (f".{precision}" if precision is not None else "")
        wide = 8 if found["size"] in ("l", "ll", "z", "j", "t") else 4
        if kind in "di":
            return (shape + "d") % self.take(wide, signed=True)
        if kind in "uxXo":
            return (shape + ("d" if kind == "u" else kind)) % self.take(wide, signed=False)
        if kind == "c":
            return (shape + "c") % (self.take(4, signed=False) & 0xFF)
        if kind in "eEfFgG":
            bits = self.take(8, signed=False)
            return (shape + kind) % float(np.array(bits, np.uint64).view(np.float64))
        if kind == "s":
            return (shape + "s") % _text(self.w, self.take(8, signed=False), self.lane)
        if kind == "p":
            return (shape + "s") % f"{self.take(8, signed=False):#x}"
        if kind in "aA":
            return float(np.array(self.take(8, signed=False), np.uint64).view(np.float64)).hex()
        return found[0]


def _text(w: Wave, address: int, lane: int) -> str:
    """Return the string at a generic address."""
    return bytes(_characters(w, address, lane)).decode(errors="replace")


def _characters(w: Wave, address: int, lane: int) -> Iterator[int]:
    for at in range(address, address + _LONGEST):
        (byte,) = w.memory.read(_BYTE, np.array([at], np.uint64), np.array([lane]))
        if byte == 0:
            return
        yield int(byte)


def _assertfail(w: Wave, arguments: list[Array]) -> Array:
    """Raise the error of a failed assertion: its condition, file, line and function.

    Raises:
        Fault: always.
    """
    lane = w.first(w.mask)
    message, file, function = (
        printable(_text(w, int(arguments[k][lane]), lane)) if arguments[k][lane] else "?"
        for k in (0, 1, 3)
    )
    line = int(arguments[2][lane])
    raise Fault(f"the assertion '{message}' failed ({file}:{line}, in {function})", lane)


def _malloc(w: Wave, arguments: list[Array]) -> Array:
    """Return new memory for each active lane; null for no bytes."""
    result = np.zeros(w.lanes, np.uint64)
    for lane in np.flatnonzero(w.active()):
        size = int(arguments[0][lane])
        if size:
            result[lane] = _allocate(w.memory, size, int(lane))
    return result


def _allocate(memory: Memory, size: int, lane: int) -> int:
    """Return the address of a new buffer.

    Raises:
        Fault: more memory than the limit.
    """
    memory.allocated += size
    if memory.allocated > current().memory_bytes:
        raise Fault(
            f"malloc gives out {memory.allocated} bytes, more than the limit memory_bytes",
            lane,
            how_to_raise("memory_bytes"),
        )
    window = max(_HEAP, max(memory.buffers) + 1)
    data = np.full(size, POISON, np.uint8)
    memory.buffers[window] = Buffer("the memory of a malloc", data, size)
    return base_of(window)


def _free(w: Wave, arguments: list[Array]) -> Array:
    """Give memory back; null is none."""
    for lane in np.flatnonzero(w.active() & (arguments[0] != 0)):
        address = int(arguments[0][lane])
        window = address >> WINDOW_BITS
        if window < _HEAP or window not in w.memory.buffers or address != base_of(window):
            raise Fault(f"free of address {address:#x}, which no malloc returned", int(lane))
        w.memory.allocated -= w.memory.buffers.pop(window).size
    return np.zeros(w.lanes, np.uint64)


SYSTEM_CALLS: dict[str, Callable[[Wave, list[Array]], Array]] = {
    "vprintf": _vprintf,
    "__assertfail": _assertfail,
    "malloc": _malloc,
    "free": _free,
}
"""Name → what it does in the active lanes with its arguments, one integer a lane; the result."""
