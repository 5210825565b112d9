"""Moves, loads, stores and addresses. Source: PTX ISA 9.7.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.machine.memory import (
    LOCAL,
    PARAM,
    RANK_SHIFT,
    SHARED,
    WINDOW_BITS,
    MemoryAccess,
    base_of,
)
from lego_mlir.sim.ptx.form import Form, Handler, Reader
from lego_mlir.sim.ptx.syntax import Address, Integer, Operand, Register, Sink, Symbol, Vector
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B64, TYPES, Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_SCOPE = "cta|cluster|gpu|sys"
_SPACE = "const|global|local|param|param::entry|shared|shared::cta|shared::cluster"
_CACHE = "[ca|cg|cs|lu|cv]"
_HINTS = (
    "[L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate] "
    "[L2::evict_normal|L2::evict_first|L2::evict_last] [L2::64B|L2::128B|L2::256B]"
)
_TYPE = "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"
_VECTOR = "[v2|v4|v8]"


@instruction("9.7.9.3", "mov b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|pred")
def mov(form: Form) -> Handler:
    """Copy; take the address of a variable; pack a vector into a register, or unpack one."""
    form.expect(2)
    kind = form.types[0]
    target, source = form.operands
    if isinstance(target, Vector):
        return _unpack(form, target, source, kind)
    if isinstance(source, Vector):
        return _pack(form, target, source, kind)
    read, write = form.read(source, kind), form.write(target, kind)
    return lambda w: write(w, read(w))


def _part(form: Form, vector: Vector, kind: Type) -> Type:
    """The type of one of a vector's elements that fill a register of `kind`."""
    bits, rest = divmod(kind.bits, len(vector.elements))
    if rest or bits not in (8, 16, 32) or kind.kind != "b":
        form.fail(f"a {kind} has no {len(vector.elements)} fields", vector)
    return TYPES[f"b{bits}"]


def _unpack(form: Form, target: Vector, source: Operand, kind: Type) -> Handler:
    part = _part(form, target, kind)
    read = form.read(source, kind)
    writes = [form.write(element, part) for element in target.elements]

    def execute(w: Wave) -> None:
        value = read(w)
        for k, write in enumerate(writes):
            write(w, (value >> value.dtype.type(k * part.bits)).astype(part.storage))

    return execute


def _pack(form: Form, target: Operand, source: Vector, kind: Type) -> Handler:
    part = _part(form, source, kind)
    reads = [form.read(element, part) for element in source.elements]
    write = form.write(target, kind)

    def execute(w: Wave) -> None:
        value = reads[0](w).astype(kind.storage)
        for k, read in enumerate(reads[1:], 1):
            value = value | read(w).astype(kind.storage) << kind.dtype.type(k * part.bits)
        write(w, value)

    return execute


def space_of(form: Form) -> str:
    """The state space that the instruction names, or `generic`."""
    return space_named(form.one_of(*_SPACE.split("|")))


def space_named(word: str) -> str:
    """The state space of a modifier: `shared` for `shared::cta`, `generic` where there is none."""
    return word if word == "shared::cluster" else word.split("::")[0] or "generic"


def address_of(form: Form, operand: Operand, space: str) -> Reader:
    """The address in bytes of a memory operand, as uint64."""
    if not isinstance(operand, Address):
        form.fail(f"the operand {operand} where an address should stand", operand)
    match operand.base:
        case Symbol(name):
            home, start = form.address(operand.base, name)
            if home != space and (space, home) not in _CONTAINED:
                form.fail(f"{name} lies in {home} memory, not {space}", operand)
            return _fixed(start + operand.offset)
        case Integer(value):
            return _fixed(value + operand.offset)
        case Register() as register:
            return _dynamic(form, register, operand.offset, space)


_CONTAINED = {("generic", "global"), ("generic", "const"), ("shared::cluster", "shared")}
"""A space, and one whose addresses are valid in it as they are."""

_SHORT = ("shared", "shared::cluster", "local", "const", "param")
"""The spaces whose addresses may have 32 bits."""


def _fixed(address: int) -> Reader:
    value = np.array([address % (1 << 64)], np.uint64)
    return lambda w: value


def _dynamic(form: Form, register: Register, offset: int, space: str) -> Reader:
    declared = form.symbols.registers.get(register.name, (0, B64))[1]
    bits = declared.bits
    if bits != 64 and not (bits == 32 and space in _SHORT):
        form.fail(f"the register {register} is {declared} where an address should stand", register)
    read = form.read(register, TYPES[f"u{bits}"])
    if bits == 64:
        if offset == 0:
            return read
        step = np.uint64(offset % (1 << 64))
        return lambda w: read(w) + step
    signed = np.int64(offset)
    return lambda w: (read(w).astype(np.int64) + signed).view(np.uint64)


def vector_operands(form: Form, operand: Operand) -> tuple[Operand, ...]:
    """The registers of a load or store: one, or those of a vector."""
    word = form.one_of("v2", "v4", "v8")
    count = int(word[1:]) if word else 1
    if not word:
        return (operand,)
    if not isinstance(operand, Vector) or len(operand.elements) != count:
        form.fail(f"the operand {operand} where a vector of {count} should stand", operand)
    return operand.elements


def _access(form: Form, kind: Type, count: int, writes: bool) -> MemoryAccess:
    if count * kind.bytes > 32 or (count == 8 and kind.bits != 32):
        form.fail(f"a vector of {count} elements of {kind}")
    strong = bool(form.one_of("volatile", "relaxed", "acquire", "release"))
    return MemoryAccess(form.instruction, space_of(form), kind.bytes, count, writes, sync=strong)


@instruction(
    "9.7.9.8",
    f"ld [weak] [{_SPACE}] {_CACHE} {_HINTS} {_VECTOR} {_TYPE}",
    f"ld volatile [{_SPACE}] {_VECTOR} {_TYPE}",
    f"ld relaxed|acquire {_SCOPE} [{_SPACE}] {_HINTS} {_VECTOR} {_TYPE}",
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
def ld_global_nc(form: Form) -> Handler:
    """Load through the non-coherent cache. That nobody writes the data meanwhile is not checked."""
    return _load(form)


def _load(form: Form) -> Handler:
    form.expect(2)
    kind = form.types[0]
    elements = vector_operands(form, form.operands[0])
    access = _access(form, kind, len(elements), False)
    address = address_of(form, form.operands[1], access.space)
    writes = [form.write(element, kind, wider=True) for element in elements]
    dtype = kind.dtype
    plain = dtype == kind.storage
    if len(writes) == 1:
        write = writes[0]

        def single(w: Wave) -> None:
            bits = w.memory.load(access, address(w), w.mask, w.lanes)[0]
            write(w, bits if plain else bits.view(dtype))

        return single

    def execute(w: Wave) -> None:
        loaded = w.memory.load(access, address(w), w.mask, w.lanes)
        for write, bits in zip(writes, loaded, strict=True):
            write(w, bits if plain else bits.view(dtype))

    return execute


@instruction(
    "9.7.9.11",
    f"st [weak] [{_SPACE}] [wb|cg|cs|wt] {_HINTS} {_VECTOR} {_TYPE}",
    f"st volatile [{_SPACE}] {_VECTOR} {_TYPE}",
    f"st relaxed|release {_SCOPE} [{_SPACE}] {_HINTS} {_VECTOR} {_TYPE}",
    f"st mmio relaxed sys [global] {_TYPE}",
)
def st(form: Form) -> Handler:
    """Store a value or a vector; of a register wider than the type the low bits.

    Where several threads write one address, the last of the active lanes wins (a GPU promises
    none). Cache operators, memory order and scope change nothing.
    """
    form.expect(2)
    kind = form.types[0]
    elements = vector_operands(form, form.operands[1])
    access = _access(form, kind, len(elements), True)
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


_WINDOWS = {"shared": SHARED, "shared::cluster": SHARED, "local": LOCAL, "param": PARAM}


@instruction(
    "9.7.9.20",
    f"cvta {_SPACE} u32|u64",
    f"cvta to {_SPACE} u32|u64",
)
def cvta(form: Form) -> Handler:
    """A generic address from one in a state space, or back (`.to`).

    Addresses of global and constant memory are generic already.
    """
    kind = form.types[0]
    space = space_of(form)
    if kind.bits == 32:
        form.fail("a 32-bit generic address")
    if space not in _WINDOWS:
        return form.compute(lambda a: a, [kind], kind)
    base = np.uint64(base_of(_WINDOWS[space]))
    if form.has("to"):
        return form.compute(lambda a: a - base, [kind], kind)
    return form.compute(lambda a: a + base, [kind], kind)


@instruction("9.7.9.19", f"isspacep {_SPACE}")
def isspacep(form: Form) -> Handler:
    """Whether a generic address lies in a state space."""
    form.expect(2)
    space = space_of(form)
    if space == "const":
        form.fail("a query for constant memory")
    read = form.read(form.operands[1], B64)
    write = form.write(form.operands[0], TYPES["pred"])

    def inside(w: Wave) -> Array:
        address = read(w)
        window: Array = address >> np.uint64(WINDOW_BITS)
        if space == "global":
            return window > np.uint64(PARAM)
        found = window == np.uint64(_WINDOWS[space])
        if space == "shared":
            found = found & (rank_of(w, address) == own_rank(w))
        return np.asarray(found)

    return lambda w: write(w, inside(w))


def own_rank(w: Wave) -> Array:
    """The rank of each lane's CTA in its cluster."""
    rank: Array = w.cta_index_of_lane % w.cluster_size
    return rank


def rank_of(w: Wave, address: Array) -> Array:
    """The rank of the CTA that addresses of shared memory, generic or not, lie in."""
    named = (address.astype(np.uint64) >> RANK_SHIFT).astype(np.int64) & 0xFF
    return np.where(named == 0, own_rank(w), named - 1)


@instruction(
    "9.7.9.15",
    "prefetch [global|local] L1|L2",
    "prefetchu L1",
    "prefetch [param|param::entry|const] tensormap",
)
def prefetch(form: Form) -> Handler:
    """Bring a line, or a tensor map, into a cache: the simulator has none."""
    form.expect(1)
    address_of(form, form.operands[0], space_of(form))
    return lambda w: None


_PRIORITY = "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"


@instruction(
    "9.7.9.18", f"createpolicy fractional {_PRIORITY} [L2::evict_first|L2::evict_unchanged] b64"
)
def createpolicy(form: Form) -> Handler:
    """A cache policy for the hints of other instructions, which change nothing."""
    form.expect(1, 2)
    for fraction in form.operands[1:]:
        form.read(fraction, TYPES["f32"])
    write = form.write(form.operands[0], B64)
    return lambda w: write(w, np.zeros(1, np.uint64))


@instruction("9.7.9.7", "prmt b32 [f4e|b4e|rc8|ecl|ecr|rc16]")
def prmt(form: Form) -> Handler:
    """Pick four bytes out of the eight of a (bytes 0–3) and b (4–7).

    By default each nibble of c picks one byte: its low three bits say which, its top bit asks for
    the sign of that byte, repeated. A mode picks by the low two bits of c instead.
    """
    mode = form.one_of("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    word = TYPES["b32"]

    def permute(a: Array, b: Array, c: Array) -> Array:
        both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        result = np.zeros(1, np.uint32)
        for k in range(4):
            nibble = _picked(mode, k, c)
            byte = both >> ((nibble & np.uint32(7)) << np.uint32(3)).astype(np.uint64)
            value = byte.astype(np.uint8)
            sign = np.where(value >> np.uint8(7), np.uint8(255), np.uint8(0))
            value = np.where(nibble & np.uint32(8), sign, value)
            result = result | value.astype(np.uint32) << np.uint32(8 * k)
        return result

    return form.compute(permute, [word, word, word], word)


def _picked(mode: str, k: int, c: Array) -> Array:
    """The nibble that says where byte k of a `prmt` comes from."""
    n, at, seven = c & np.uint32(3), np.uint32(k), np.uint32(7)
    match mode:
        case "f4e":
            return n + at
        case "b4e":
            return (n - at) & seven
        case "rc8":
            return n
        case "ecl":
            return np.asarray(np.maximum(n, at))
        case "ecr":
            return np.asarray(np.minimum(n, at))
        case "rc16":
            return (n & np.uint32(1)) * np.uint32(2) + np.uint32(k & 1)
        case _:
            return c >> np.uint32(4 * k) & np.uint32(15)
