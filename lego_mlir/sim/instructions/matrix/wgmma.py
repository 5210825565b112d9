"""Asynchronous matrix multiply-accumulate of a warpgroup: `wgmma`. Source: PTX ISA 9.7.15.

D = A·B + D has 64 rows. Each warp of the warpgroup computes 16 of them and reads all of B. The
operation is in the wave's queue of matrix operations (see `asynchronous`), which reads shared
memory and writes D when it performs it. Descriptors and scale-d are read at issue. Numerics are
those of `elements`, and for 8-bit floats those of `fp8_accumulation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import WARP_THREADS, WARPGROUP_WARPS
from lego_mlir.sim.checks.warpgroup import WgmmaOperation, registers_of
from lego_mlir.sim.instructions.matrix.mma import shape_of
from lego_mlir.sim.instructions.matrix.warpwide import everyone, source, target, whole_warps
from lego_mlir.sim.machine.matrix_descriptors import chunks, problem
from lego_mlir.sim.machine.memory import Fault, MemoryAccess
from lego_mlir.sim.numerics import fp8_accumulation, fragments
from lego_mlir.sim.numerics.elements import ELEMENTS, Element, accumulated, multiplied, pack
from lego_mlir.sim.ptx.decoded import WarpCollective
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Operand, Vector
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B64, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_ROWS, _WARP_ROWS = 64, 16
_FLOATS = ("f16", "bf16", "tf32", "e4m3", "e5m2")
_EVERY_N = range(8, 257, 8)
_INTEGER_N = (8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256)

Fetch = Callable[["Wave"], Array]
"""Gives an operand of the active warps as matrices (warps, rows, k), when it is performed."""

Bind = Callable[["Wave"], tuple[Array, Fetch]]
"""Reads what describes an operand, one word for each active warp, at issue."""


def _shapes(depth: int, columns: range | tuple[int, ...]) -> str:
    return "|".join(f"m64n{n}k{depth}" for n in columns)


_K8, _K16, _K32 = (_shapes(k, _EVERY_N) for k in (8, 16, 32))
_INTEGER, _BITS = _shapes(32, _INTEGER_N), _shapes(256, _INTEGER_N)


@instruction(
    "9.7.15.5.2",
    f"wgmma mma_async sync aligned {_K16} f32|f16 f16 f16",
    f"wgmma mma_async sync aligned {_K16} f32 bf16 bf16",
    f"wgmma mma_async sync aligned {_K8} f32 tf32 tf32",
    f"wgmma mma_async sync aligned {_K32} f32|f16 e4m3|e5m2 e4m3|e5m2",
    f"wgmma mma_async sync aligned {_INTEGER} [satfinite] s32 s8|u8 s8|u8",
    f"wgmma mma_async sync aligned {_BITS} s32 b1 b1 and popc",
)
def mma_async(form: Form) -> WarpCollective:
    """Issue D = ±A·±B + D, without `+ D` where scale-d does not hold.

    A comes from registers, in the fragments of `mma`, or as B from shared memory (see
    `descriptors`).
    """
    _, columns, depth = shape_of(form)
    d_type, a_type, b_type = (ELEMENTS[word] for word in form.modifiers if word in ELEMENTS)
    sign, a_transposed, b_transposed = _immediates(form, a_type)
    d_operand, a_operand, b_operand, scale_operand = form.operands[:4]
    d_fragment = fragments.accumulator(16, columns, d_type.packed)
    write = target(form, d_operand, d_fragment.registers, d_type.register)
    read = source(form, d_operand, d_fragment.registers, d_type.register)
    inputs: list[int] = []
    if isinstance(a_operand, Vector):
        a = _in_registers(form, a_operand, a_type, depth)
        inputs = _indices(form, a_operand)
    else:
        a = _in_shared(form, a_operand, a_type, _ROWS, a_transposed, split=True)
    b = _in_shared(form, b_operand, b_type, columns, b_transposed)
    scale = form.predicate(scale_operand)
    registers = np.array(_indices(form, d_operand)), np.array(inputs, np.int64)
    saturate, opcode = form.has("satfinite"), form.instruction.opcode

    def execute(w: Wave) -> None:
        a_word, a_fetch = a(w)
        b_word, b_fetch = b(w)
        adds = _of_warps(w, scale(w), opcode)
        adds_of_warp = np.zeros(w.warps, np.bool_)
        adds_of_warp[_warps(w)] = adds

        def compute(w: Wave) -> None:
            lanes = whole_warps(w, opcode)
            a_values, b_values = a_fetch(w), b_fetch(w).swapaxes(1, 2)
            adds = adds_of_warp[_warps(w)]
            shape = (len(adds), _WARP_ROWS, columns)
            old = np.zeros(shape, np.float16 if d_type.name == "f16" else d_type.register.dtype)
            if adds.any():
                old = d_fragment.gather(d_type.unpack(read(w, lanes)))
                if not adds.all():
                    old = np.where(adds[:, None, None], old, old.dtype.type(0))
            if a_type.name in fp8_accumulation.FORMATS:
                new = fp8_accumulation.multiply_accumulate(
                    sign * a_values, b_values, old, (a_type.name, b_type.name)
                )
            else:
                new = accumulated(sign * multiplied(a_values, b_values), old, d_type, saturate)
            write(w, lanes, pack(d_fragment.scatter(new), d_type))

        operation = WgmmaOperation(form.modifiers[3], *registers, compute)
        words = np.stack([a_word, b_word, adds.astype(np.uint64)], axis=1)
        w.warpgroups.issued(form.instruction, operation, words)
        w.queues.matrix.issue(form.instruction, operation)

    return WarpCollective(everyone, execute, warpgroup=True)


def _immediates(form: Form, element: Element) -> tuple[int, bool, bool]:
    """Return the sign of A·B, and whether A and B are MN-major."""
    immediates = form.operands[4:]
    if element.name not in _FLOATS:
        form.expect(4)
        return 1, False, False
    transposes = element.bits == 16
    in_registers = isinstance(form.operands[1], Vector)
    form.expect(6 + transposes * (1 if in_registers else 2))
    a_scale, b_scale = (_sign(form, operand) for operand in immediates[:2])
    major = [bool(form.constant(operand, 0, 1)) for operand in immediates[2:]]
    a_major, b_major = [False, *major][-2:] if transposes else (False, False)
    return a_scale * b_scale, a_major, b_major


def _sign(form: Form, operand: Operand) -> int:
    value = form.constant(operand, -1, 1)
    if value == 0:
        form.fail("a scale of 0 where 1 or -1 should stand", operand)
    return value


def _indices(form: Form, operand: Operand) -> list[int]:
    """Return the indices of an operand's registers in the wave's register file."""
    return [form.symbols.registers[name][0] for name in registers_of(operand)]


def _in_registers(form: Form, operand: Operand, element: Element, depth: int) -> Bind:
    """Return the reader of operand A in the registers of its warp: 16 rows."""
    fragment = fragments.operand_a(16, depth, element.packed)
    read = source(form, operand, fragment.registers, element.register)
    opcode = form.instruction.opcode

    def fetch(w: Wave) -> Array:
        return fragment.gather(element.unpack(read(w, whole_warps(w, opcode))))

    return lambda w: (np.zeros(len(_warps(w)), np.uint64), fetch)


def _in_shared(
    form: Form,
    operand: Operand,
    element: Element,
    extent: int,
    transposed: bool,
    split: bool = False,
) -> Bind:
    """Return the reader of an operand in shared memory; `split`: each warp reads a quarter."""
    descriptor = form.read(operand, B64)
    opcode = form.instruction.opcode
    access = MemoryAccess(form.instruction, "shared", 8, 1, False, proxy="async")

    def bind(w: Wave) -> tuple[Array, Fetch]:
        words = _of_warps(w, descriptor(w), opcode)
        known, which = np.unique(words, return_inverse=True)
        for word in known:
            if wrong := problem(int(word)):
                raise Fault(f"{wrong}, in {opcode}", w.first(w.mask))
        table = np.stack([chunks(int(word), extent, transposed).reshape(-1) for word in known])
        address = np.zeros(
            (w.warps, table.shape[1] // (WARPGROUP_WARPS if split else 1)), np.uint64
        )
        warps = _warps(w)
        if split:
            quarter = warps % (w.warps // len(w.ctas)) % WARPGROUP_WARPS
            address[warps] = table.reshape(len(known), WARPGROUP_WARPS, -1)[which, quarter]
        else:
            address[warps] = table[which]

        def fetch(w: Wave) -> Array:
            octets = _read_chunks(w, access, address[_warps(w)])
            return _matrices(octets, element, transposed)

        return words, fetch

    return bind


def _read_chunks(w: Wave, access: MemoryAccess, address: Array) -> Array:
    """Read 16-byte chunks of the active warps: from (warps, chunks) to (warps, chunks · 16).

    The reads are distributed over the lanes of a warp.
    """
    lanes = np.arange(w.lanes) if w.mask is None else np.flatnonzero(w.mask)
    reader = lanes.reshape(-1, WARP_THREADS)[:, np.arange(address.shape[1]) % WARP_THREADS]
    halves = address[..., None] + np.array([0, 8], np.uint64)
    words = w.memory.read(access, halves.reshape(-1), np.repeat(reader.reshape(-1), 2))
    return words.view(np.uint8).reshape(len(address), -1)


def _matrices(octets: Array, element: Element, transposed: bool) -> Array:
    """Convert the bytes of chunks to matrices (warps, rows, k)."""
    if not transposed:
        return element.unpack(octets.reshape(len(octets), -1, 32).view(np.uint32))
    # Chunks of 8 rows, of 16 along k.
    tiles = element.unpack(octets.reshape(len(octets), -1, 16, 16).view(np.uint32))
    matrices: Array = tiles.swapaxes(2, 3).reshape(len(octets), -1, 16)
    return matrices


def _warps(w: Wave) -> Array:
    """Return the warps of the active lanes, which are complete."""
    if w.mask is None:
        return np.arange(w.warps)
    first = np.flatnonzero(w.mask)[::WARP_THREADS]
    warps: Array = w.warp_of_lane[first]
    return warps


def _of_warps(w: Wave, value: Array, opcode: str) -> Array:
    """Return the value of a warp-uniform operand in the active warps, as uint64."""
    lanes = whole_warps(w, opcode)
    everywhere = np.broadcast_to(value, w.lanes)
    held = (everywhere if lanes is None else everywhere[lanes]).reshape(-1, WARP_THREADS)
    apart = (held != held[:, :1]).any(axis=1)
    if apart.any():
        lane = int(np.argmax(w.warp_of_lane == _warps(w)[np.argmax(apart)]))
        raise Fault(f"{opcode} with operands that differ between the lanes of a warp", lane)
    return held[:, 0].astype(np.uint64)


@instruction("9.7.15.7.1", "wgmma fence sync aligned")
def fence(form: Form) -> WarpCollective:
    """Order the warp's register accesses before those of its `wgmma`."""
    form.expect(0)
    return WarpCollective(everyone, lambda w: w.warpgroups.fence())


@instruction("9.7.15.7.2", "wgmma commit_group sync aligned")
def commit_group(form: Form) -> WarpCollective:
    """Close a group of the `wgmma` issued since the last group."""
    form.expect(0)
    return WarpCollective(everyone, lambda w: w.queues.matrix.commit())


@instruction("9.7.15.7.3", "wgmma wait_group sync aligned")
def wait_group(form: Form) -> WarpCollective:
    """Wait until at most N of the newest groups are pending."""
    form.expect(1)
    most = form.constant(form.operands[0], 0, (1 << 31) - 1)
    return WarpCollective(everyone, lambda w: w.queues.matrix.wait(most))
