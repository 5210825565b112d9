"""Matrix multiply-accumulate by a warp with fragments it loads: `wmma`. Source: PTX ISA 9.7.14.4.

The ISA leaves open which element each register of a lane holds, as long as it is the same for all
instructions of a shape and type. Here the elements follow each other in memory order along k (for
accumulators along rows), lane by lane; where a fragment has room for more elements than its matrix,
it repeats them, as the fragments of f16 do. Numerics are those of `mma`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.sim.instructions.matrix.mma import differing_bits, shape_of
from lego_mlir.sim.instructions.matrix.warpwide import everyone, source, target, whole_warps
from lego_mlir.sim.instructions.memory.addresses import address_of, space_of
from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.numerics.elements import ELEMENTS, Element, accumulated, multiplied, pack
from lego_mlir.sim.numerics.fragments import Fragment
from lego_mlir.sim.ptx.decoded import Reader, WarpCollective
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Integer, Operand
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, U32, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_LONG = "m16n16k16|m8n32k16|m32n8k16"
_HEAD = "sync aligned row|col"
_SPACE = "[global|shared|shared::cta]"
_MMA = f"wmma mma sync aligned row|col row|col {_LONG}"


@dataclass(frozen=True, slots=True)
class Part:
    """The fragment of an operand.

    Attributes:
        element: its type.
        fragment: which element of the matrix each register holds, in the matrix's own order.
        along_rows: whether the fragment's order is by rows.
    """

    element: Element
    fragment: Fragment
    along_rows: bool


@lru_cache
def _fragment(rows: int, columns: int, registers: int, packed: int, along_rows: bool) -> Fragment:
    position = np.arange(WARP_THREADS * registers * packed) % (rows * columns)
    if not along_rows:
        position = position % rows * columns + position // rows
    # Of the copies of an element, the first counts.
    _, first = np.unique(position, return_index=True)
    return Fragment(rows, columns, registers, first, position)


def _part(form: Form, which: str, word: str) -> Part:
    """Return the fragment of operand `a`, `b`, `c` or `d` with elements of a type."""
    m, n, k = shape_of(form)
    element = ELEMENTS[word]
    rows, columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    registers = max(rows * columns // (WARP_THREADS * element.packed), 1)
    if word == "f16" and which in "ab":
        registers = 8
    along_rows = which != "b"
    return Part(
        element, _fragment(rows, columns, registers, element.packed, along_rows), along_rows
    )


@instruction(
    "9.7.14.4.3",
    f"wmma load a|b {_HEAD} {_LONG} {_SPACE} f16|bf16|s8|u8",
    f"wmma load c {_HEAD} {_LONG} {_SPACE} f16|f32|s32",
    f"wmma load a|b {_HEAD} m16n16k8 {_SPACE} tf32",
    f"wmma load c {_HEAD} m16n16k8 {_SPACE} f32",
    f"wmma load a|b|c {_HEAD} m8n8k4 {_SPACE} f64",
    f"wmma load a|b {_HEAD} m8n8k32 {_SPACE} s4|u4",
    f"wmma load a|b {_HEAD} m8n8k128 {_SPACE} b1",
    f"wmma load c {_HEAD} m8n8k32|m8n8k128 {_SPACE} s32",
)
def load(form: Form) -> WarpCollective:
    """Load a matrix from memory, with `stride` elements from one row (column) to the next."""
    form.expect(2, 3)
    part = _part(form, form.modifiers[1], form.modifiers[-1])
    access = _access(form, part, writes=False)
    offsets = _Offsets(form, part, form.operands[1], form.operands[2:])
    opcode, fragment = form.instruction.opcode, part.fragment
    held = _units(part)
    registers = TYPES[f"b{part.element.register.bits}"]
    write = target(form, form.operands[0], fragment.registers, registers)

    def execute(w: Wave) -> None:
        lanes = whole_warps(w, opcode)
        address, who = offsets.of(w, lanes)
        values = w.memory.read(access, address.reshape(-1), who.reshape(-1)).reshape(address.shape)
        words = np.ascontiguousarray(values[:, held]).view(registers.storage)
        write(w, lanes, words.reshape(len(values), WARP_THREADS, -1))

    return WarpCollective(everyone, execute)


@instruction(
    "9.7.14.4.4",
    f"wmma store d {_HEAD} {_LONG} {_SPACE} f16|f32|s32",
    f"wmma store d {_HEAD} m16n16k8 {_SPACE} f32",
    f"wmma store d {_HEAD} m8n8k4 {_SPACE} f64",
    f"wmma store d {_HEAD} m8n8k32|m8n8k128 {_SPACE} s32",
)
def store(form: Form) -> WarpCollective:
    """Store a matrix, as `load` loads it."""
    form.expect(2, 3)
    part = _part(form, "d", form.modifiers[-1])
    access = _access(form, part, writes=True)
    offsets = _Offsets(form, part, form.operands[0], form.operands[2:])
    opcode, fragment = form.instruction.opcode, part.fragment
    registers = TYPES[f"b{part.element.register.bits}"]
    read = source(form, form.operands[1], fragment.registers, registers)

    def execute(w: Wave) -> None:
        lanes = whole_warps(w, opcode)
        words = np.ascontiguousarray(read(w, lanes)).reshape(-1, WARP_THREADS * fragment.registers)
        values = words.view(TYPES[f"b{part.element.bits}"].storage)[:, offsets.first]
        address, who = offsets.of(w, lanes)
        w.memory.write(access, address.reshape(-1), values.reshape(-1), who.reshape(-1))

    return WarpCollective(everyone, execute)


@instruction(
    "9.7.14.4.5",
    f"{_MMA} f16|f32 f16|f32",
    f"{_MMA} f32 bf16 bf16 f32",
    f"{_MMA} [satfinite] s32 s8|u8 s8|u8 s32",
    "wmma mma sync aligned row|col row|col m16n16k8 f32 tf32 tf32 f32",
    "wmma mma sync aligned row|col row|col m8n8k4 [rn] f64 f64 f64 f64",
    "wmma mma sync aligned row col m8n8k32 [satfinite] s32 s4|u4 s4|u4 s32",
    "wmma mma xor|and popc sync aligned row col m8n8k128 s32 b1 b1 s32",
)
def multiply(form: Form) -> WarpCollective:
    """Compute D = A·B + C of fragments. How A and B lay in memory changes nothing here."""
    form.expect(4)
    words = [word for word in form.modifiers if word in ELEMENTS]
    kinds = words if len(words) == 4 else [words[0], "f16", "f16", words[1]]
    d, a, b, c = (_part(form, which, word) for which, word in zip("dabc", kinds, strict=True))
    d_operand, *given = form.operands
    write = target(form, d_operand, d.fragment.registers, d.element.register)
    reads = [
        source(form, operand, part.fragment.registers, part.element.register)
        for operand, part in zip(given, (a, b, c), strict=True)
    ]
    product = differing_bits if form.has("xor") else multiplied
    saturate, opcode = form.has("satfinite"), form.instruction.opcode

    def execute(w: Wave) -> None:
        lanes = whole_warps(w, opcode)
        x, y, z = (
            part.fragment.gather(part.element.unpack(np.ascontiguousarray(read(w, lanes))))
            for part, read in zip((a, b, c), reads, strict=True)
        )
        new = accumulated(product(x, y), z, d.element, saturate)
        write(w, lanes, pack(d.fragment.scatter(new), d.element))

    return WarpCollective(everyone, execute)


class _Offsets:
    """The addresses of a matrix in memory, in units: elements, or words of smaller ones.

    Attributes:
        first: for each unit its first position among those of the fragment.
    """

    def __init__(
        self, form: Form, part: Part, operand: Operand, strides: tuple[Operand, ...]
    ) -> None:
        fragment, width = part.fragment, max(part.element.bits // 8, 4 if _is_small(part) else 0)
        per = max(32 // part.element.bits, 1) if _is_small(part) else 1
        self.address: Reader = address_of(form, operand, space_of(form))
        by_rows = form.has("row")
        length = fragment.columns if by_rows else fragment.rows
        self.stride = form.read(strides[0] if strides else Integer(length), U32)
        position = fragment.target.reshape(-1, per)[:, 0]
        _, self.first = np.unique(position, return_index=True)
        unit = position[self.first]
        row, column = unit // fragment.columns, unit % fragment.columns
        if _is_small(part) and by_rows != part.along_rows:
            form.fail("a matrix of these elements lies along k")
        self.outer, inner = (row, column) if by_rows else (column, row)
        self.inner = (inner // per * width).astype(np.uint64)
        self.scale = np.uint64(width)
        self.per = np.uint64(per)
        self.lane = self.first * per // (fragment.registers * part.element.packed)

    def of(self, w: Wave, lanes: Array | None) -> tuple[Array, Array]:
        """Return the address of each unit of each warp, and the lane that accesses it."""
        everybody = np.arange(w.lanes) if lanes is None else lanes
        who = everybody.reshape(-1, WARP_THREADS)[:, self.lane]
        base = np.broadcast_to(self.address(w), w.lanes)[who]
        stride = np.broadcast_to(self.stride(w), w.lanes)[who].astype(np.uint64) // self.per
        return base + self.outer.astype(np.uint64) * stride * self.scale + self.inner, who


def _is_small(part: Part) -> bool:
    """Return whether elements are smaller than a byte, so that words of them are accessed."""
    return part.element.bits < 8


def _units(part: Part) -> Array:
    """Return for each position in the registers, by units, the unit in the order of `_Offsets`."""
    per = 32 // part.element.bits if _is_small(part) else 1
    position = part.fragment.target.reshape(-1, per)[:, 0]
    _, inverse = np.unique(position, return_inverse=True)
    return np.asarray(inverse)


def _access(form: Form, part: Part, *, writes: bool) -> MemoryAccess:
    width = 4 if _is_small(part) else part.element.bits // 8
    return MemoryAccess(form.instruction, space_of(form), width, 1, writes)
