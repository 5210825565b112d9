"""Loads and stores. Source: PTX ISA 9.7.9.8–11."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lego_mlir.sim.instructions.memory.addresses import SPACE, address_of, check_hint, space_at
from lego_mlir.sim.machine.memory import Memory, MemoryAccess
from lego_mlir.sim.machine.used_bytes import load_used
from lego_mlir.sim.ptx.decoded import Handler, Reader
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Operand, Register, Sink, Vector
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave


_SCOPE = "cta|cluster|gpu|sys"
_CACHE = "[ca|cg|cs|lu|cv]"
_HINTS = (
    "[L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate] "
    "[L2::evict_normal|L2::evict_first|L2::evict_last] [L2::cache_hint] [L2::64B|L2::128B|L2::256B]"
)
_TYPE = "b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"
_VECTOR = "[v2|v4|v8]"


def _elements(form: Form, operand: Operand) -> tuple[Operand, ...]:
    """The registers of a load or store: one, or those of a vector."""
    word = form.one_of("v2", "v4", "v8")
    count = int(word[1:]) if word else 1
    if not word:
        return operand.elements if isinstance(operand, Vector) else (operand,)
    if not isinstance(operand, Vector) or len(operand.elements) != count:
        form.fail(f"the operand {operand} where a vector of {count} should stand", operand)
    return operand.elements


def _access(form: Form, kind: Type, count: int, space: str, writes: bool) -> MemoryAccess:
    if count * kind.bytes > 32 or (count == 8 and kind.bits != 32):
        form.fail(f"a vector of {count} elements of {kind}")
    strong = bool(form.one_of("volatile", "relaxed", "acquire", "release"))
    return MemoryAccess(form.instruction, space, kind.bytes, count, writes, sync=strong)


@instruction(
    "9.7.9.8",
    f"ld [weak] [{SPACE}] {_CACHE} {_HINTS} {_VECTOR} {_TYPE}",
    f"ld volatile [{SPACE}] {_VECTOR} {_TYPE}",
    f"ld relaxed|acquire {_SCOPE} [{SPACE}] {_HINTS} {_VECTOR} {_TYPE}",
    f"ld mmio relaxed sys [global] {_TYPE}",
)
def ld(form: Form) -> Handler:
    """Load a value or a vector. A register wider than the type gets it extended.

    Cache operators and hints, `.volatile`, memory order and scope change nothing: execution is
    sequentially consistent.
    """
    return _load(form)


@instruction(
    "9.7.9.9",
    f"ld global {_CACHE} nc {_HINTS} {_VECTOR} {_TYPE}",
    f"ld global nc {_CACHE} {_HINTS} {_VECTOR} {_TYPE}",
)
@instruction("9.7.9.10", f"ldu [global] {_VECTOR} {_TYPE}")
def ld_global_nc(form: Form) -> Handler:
    """Load through the non-coherent cache. That nobody writes the data meanwhile is not checked."""
    return _load(form)


def _load(form: Form) -> Handler:
    check_hint(form, 2)
    kind = form.types[0]
    elements = _elements(form, form.operands[0])
    access = _access(form, kind, len(elements), space_at(form, form.operands[1]), False)
    address = address_of(form, form.operands[1], access.space)
    writes = [form.write(element, kind, wider=True) for element in elements]
    dtype = kind.dtype
    plain = dtype == kind.storage
    load = partial(load_used, used) if (used := form.instruction.used_bytes) else Memory.load
    if len(writes) == 1:
        write = writes[0]

        def single(w: Wave) -> None:
            bits = load(w.memory, access, address(w), w.mask, w.lanes)[0]
            write(w, bits if plain else bits.view(dtype))

        return single

    def execute(w: Wave) -> None:
        loaded = load(w.memory, access, address(w), w.mask, w.lanes)
        for write, bits in zip(writes, loaded, strict=True):
            write(w, bits if plain else bits.view(dtype))

    return execute


@instruction(
    "9.7.9.11",
    f"st [weak] [{SPACE}] [wb|cg|cs|wt] {_HINTS} {_VECTOR} {_TYPE}",
    f"st volatile [{SPACE}] {_VECTOR} {_TYPE}",
    f"st relaxed|release {_SCOPE} [{SPACE}] {_HINTS} {_VECTOR} {_TYPE}",
    f"st mmio relaxed sys [global] {_TYPE}",
)
def st(form: Form) -> Handler:
    """Store a value or a vector; of a register wider than the type the low bits.

    Where several threads write one address, the last of the active lanes wins (a GPU promises
    none). Cache operators, memory order and scope change nothing.
    """
    check_hint(form, 2)
    kind = form.types[0]
    elements = _elements(form, form.operands[1])
    access = _access(form, kind, len(elements), space_at(form, form.operands[0]), True)
    if access.space in ("const", "param"):
        form.fail(f"a store to {access.space} memory")
    address = address_of(form, form.operands[0], access.space)
    bits = TYPES[f"b{kind.bits}"]
    sources = [None if isinstance(e, Sink) else _stored(form, e, kind, bits) for e in elements]
    reads = [read for read in sources if read is not None]
    if len(reads) != len(sources):
        form.fail("a store of `_`", form.operands[1])

    def execute(w: Wave) -> None:
        w.memory.store(access, address(w), [read(w) for read in reads], w.mask)

    return execute


def _stored(form: Form, operand: Operand, kind: Type, bits: Type) -> Reader:
    """The bits that a store writes. Constants have the instruction's type, registers any."""
    if isinstance(operand, Register) or not kind.is_float:
        return form.read(operand, bits, wider=True)
    read = form.read(operand, kind)
    storage = kind.storage
    return lambda w: read(w).view(storage)
