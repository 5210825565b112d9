"""The syntax tree of PTX: immutable, without the semantics of instructions.

Source: PTX ISA 4 (syntax), 5.4 (variables), 6 (operands), 11 (directives).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.sim.ptx.types import Type
from lego_mlir.sources import NO_SOURCES, Sources


@dataclass(frozen=True, slots=True)
class Register:
    """A register of the kernel, or a special register (`%tid.x`)."""

    name: str
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer constant."""

    value: int
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point constant by its bits; `width` is 32 for `0f…`, else 64."""

    bits: int
    width: int
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"0{'f' if self.width == 32 else 'd'}{self.bits:0{self.width // 4}X}"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, parameter or label, plus a byte offset."""

    name: str
    offset: int = 0
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand `[base+offset]`, offset in bytes."""

    base: Register | Symbol | Integer
    offset: int = 0
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"[{self.base}+{self.offset}]" if self.offset else f"[{self.base}]"


@dataclass(frozen=True, slots=True)
class TensorAddress:
    """A tensor operand `[map, {x, y}]`: the address of a tensor map, and coordinates."""

    map: Address
    coordinates: Vector
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{str(self.map)[:-1]}, {self.coordinates}]"


@dataclass(frozen=True, slots=True)
class Vector:
    """A brace-enclosed list `{a, b}`."""

    elements: tuple[Operand, ...]
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


@dataclass(frozen=True, slots=True)
class Group:
    """A list in parentheses `(a, b)`: the arguments or results of a call."""

    elements: tuple[Operand, ...]
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.elements)) + ")"


@dataclass(frozen=True, slots=True)
class Negated:
    """A negated predicate `!%p`."""

    register: Register
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"!{self.register}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations `p|q`; `_` is a `Sink`."""

    first: Register | Sink
    second: Register | Sink
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Sink:
    """The bit bucket `_`."""

    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Unparsed:
    """An operand in a form the parser does not know; only its text is kept."""

    text: str
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return self.text


Operand = (
    Register
    | Integer
    | Float
    | Symbol
    | Address
    | TensorAddress
    | Vector
    | Group
    | Negated
    | Pair
    | Sink
    | Unparsed
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes:
        opcode: with all its modifiers, as written: `ld.global.v4.b32`.
        guard: the predicate of `@p` or `@!p`, None where there is none.
        line, column: of the opcode (of the guard where there is one), 1-based.
        loc: the nearest `.loc` before it: (file number, line, column) in the program that the
            PTX was compiled from.
        used_bytes: bit k says whether byte k of what a load reads is used; `None` for all.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: Register | Negated | None
    line: int
    column: int
    loc: tuple[int, int, int] | None = None
    used_bytes: int | None = None

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(map(str, self.operands))}".rstrip()


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in memory.

    Attributes:
        space: `global`, `const`, `shared`, `local` or `param`.
        size: bytes; None for an `.extern .shared` array, whose size the launch gives.
        align: bytes.
        initial: its first bytes; the rest is zero. Only `global` and `const` have any.
        pointers: addresses among them, whose bytes in `initial` are zero.
    """

    name: str
    space: str
    size: int | None
    align: int
    line: int
    initial: bytes = b""
    pointers: tuple[Pointer, ...] = ()


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address in an initial value: of `symbol`, at a byte offset of the variable.

    Attributes:
        at: the byte of the variable where it stands.
        size: its bytes.
        generic: whether it is the generic address, `generic(x)`.
    """

    at: int
    size: int
    symbol: Symbol
    generic: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter or result of `size` bytes; `pointer` where PTX marks it `.ptr`.

    Attributes:
        register: whether it is a register, which only those of functions may be.
    """

    name: str
    kind: Type
    size: int
    align: int
    is_array: bool
    pointer: bool
    register: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One `.func`. Its registers, labels and variables have its name in front: `f:%r1`.

    Attributes:
        results, parameters: in order, by those names.
        declared: whether there is only a declaration, without a body.
        registers, variables, instructions, labels, tables, undefined: as those of a `Kernel`.
    """

    name: str
    results: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    line: int
    declared: bool
    registers: Mapping[str, Type] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    undefined: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One `.entry`.

    Attributes:
        registers: name → type.
        labels: name → index of the instruction it stands before.
        tables: name of a `.branchtargets` or `.calltargets` → its labels or functions.
        maxntid, reqntid: threads of a CTA in x, y, z, at most and exactly.
        reqnctapercluster: CTAs of a cluster in x, y, z.
        maxclusterrank: CTAs of a cluster at most.
        explicitcluster: whether the launch must name a cluster.
        maxnreg: registers of a thread at most.
        minnctapersm: CTAs per multiprocessor at least.
        undefined: index of an instruction → registers that before it get values which do not
            matter, as LLVM's comment `// implicit-def: %r5` says.
    """

    name: str
    parameters: tuple[Parameter, ...]
    registers: Mapping[str, Type]
    variables: tuple[Variable, ...]
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    line: int
    maxntid: tuple[int, int, int] | None = None
    reqntid: tuple[int, int, int] | None = None
    reqnctapercluster: tuple[int, int, int] | None = None
    maxclusterrank: int | None = None
    explicitcluster: bool = False
    maxnreg: int | None = None
    minnctapersm: int | None = None
    undefined: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A parsed PTX module. `text`, `file` and `sources` are kept for diagnostics.

    Modules and kernels compare by identity, so that what is derived from one can be cached.
    """

    text: str
    file: str
    version: str
    target: str
    kernels: Mapping[str, Kernel]
    variables: tuple[Variable, ...]
    files: Mapping[int, str]
    sources: Sources = NO_SOURCES
    functions: Mapping[str, Function] = field(default_factory=dict)

    def source_of(self, instruction: Instruction) -> Location | None:
        """Return the source location that an instruction was compiled from."""
        if instruction.loc is None or instruction.loc[0] not in self.files:
            return None
        file, line, column = instruction.loc
        return Location(self.files[file], line, column)

    def error(self, message: str, line: int, column: int = 0, hint: str | None = None) -> LegoError:
        """Return an error at a location of this module."""
        return LegoError(
            message, location=Location(self.file, line, column), hint=hint, source=self.text
        )

    def error_at(self, at: Instruction, message: str, hint: str | None = None) -> LegoError:
        """Return an error at an instruction's source location or, if unavailable, at its PTX."""
        where = self.source_of(at)
        if where is None:
            return self.error(message, at.line, at.column, hint)
        text = self.sources.text_of(where.file)
        if text is None or not 0 < where.line <= len(text.splitlines()):
            return self.error(f"{message}; compiled from {where}", at.line, at.column, hint)
        message = f"{message}; line {at.line} of the PTX: {at}"
        return LegoError(message, location=where, hint=hint, source=text)
