"""An artifact as data: the arguments of a host function, its launches, and their code.

Every field says by its type what it may hold. `schema` reads and checks these types, so they are
the schema of a bundle's manifest. What GPUs allow is from the CUDA C++ Programming Guide,
"Technical Specifications per Compute Capability", and the PTX ISA.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Annotated, Literal

from lego_mlir.artifact import expressions, names
from lego_mlir.artifact.schema import Rule, count, integer, line, matching, power_of_two
from lego_mlir.diagnostics import printable
from lego_mlir.files import write_whole
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import (
    ALLOCATION_ALIGNMENT,
    L2_PROMOTIONS,
    MAX_CTA_DIMS,
    MAX_GRID_DIMS,
    MAX_PARAMETER_BYTES,
)
from lego_mlir.limits import Limits, current
from lego_mlir.sources import NO_SOURCES, Sources

FORMAT = 5
CHECK_MARK = "lego.check: "
"""What a trap of a check has in the comment behind it, before the message."""

Dim3 = tuple[int, int, int]
ArgumentAccess = Literal["read", "write", "readwrite", "none"]

Name = Annotated[str, Rule(f"a name: {names.NAME_RULE}", names.is_name)]
Symbol = Annotated[str, matching(r"[A-Za-z_$%][A-Za-z0-9_$]{0,1023}", "the name of a kernel")]
Variable = Annotated[str, matching(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "the name of a symbol")]
Dtype = Annotated[str, Rule(f"one of {', '.join(ELEMENT_BYTES)}", ELEMENT_BYTES.__contains__)]
Extent = Annotated[int, integer(0, 2**48)]
Shape = Annotated[tuple[Extent | None, ...], count(0, 32)]
"""Sizes or strides of a tensor; those that are None are known when it is launched."""

LayoutText = Annotated[str, line(1 << 14)]
Target = Annotated[str, matching(r"sm_\d{2,3}a?", "a target such as sm_80 or sm_90a")]
REFERENCE_RULE = line(256)
Reference = Annotated[str, REFERENCE_RULE]
Expression = Annotated[
    str, matching(expressions.PATTERN, "an expression of arguments, such as a0 16 % 0 ==")
]
"""What a launch evaluates; see `artifact.expressions`."""

Text = Annotated[str, line(1 << 14)]
LocationText = Annotated[
    str, Rule("a location, or empty", lambda text: len(text) < 1 << 13 and printable(text) == text)
]
PTX = Annotated[str, Rule("a text without the character 0", lambda text: "\0" not in text)]
Grid = tuple[
    Annotated[int, integer(1, MAX_GRID_DIMS[0])] | Expression,
    Annotated[int, integer(1, MAX_GRID_DIMS[1])] | Expression,
    Annotated[int, integer(1, MAX_GRID_DIMS[2])] | Expression,
]
Block = tuple[
    Annotated[int, integer(1, MAX_CTA_DIMS[0])],
    Annotated[int, integer(1, MAX_CTA_DIMS[1])],
    Annotated[int, integer(1, MAX_CTA_DIMS[2])],
]
Index = Annotated[int, integer(0, MAX_PARAMETER_BYTES)]
"""The position of an argument, or of a workspace."""

Integers = Annotated[tuple[int, ...], count(0, 5)]
"""For each dimension of a tensor map; `tensor_maps` says more."""

Sizes = Annotated[tuple[int | Expression, ...], count(0, 5)]
"""The same, where the launch may compute them."""

L2Promotion = Annotated[
    int, Rule(f"one of {', '.join(map(str, L2_PROMOTIONS))}", L2_PROMOTIONS.__contains__)
]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the host function.

    Attributes:
        name: its name in the source.
        dtype: MLIR's name of the element type: `f16`, `bf16`, `f32`, `f64`, `i8` … `i64`.
        shape: of the buffer; `None` for a scalar. A size that is `None` is known at launch.
        layout: the text of the layout that maps the tensor's logical index to the buffer's flat
            offset; `None` where the buffer is the tensor itself.
        access: what the kernels do with it.
        alignment: of the buffer's address, in bytes; a power of two that the kernels rely on.
        strides: of the buffer, in elements. A stride that is `None` is known at launch, the others
            are promised. `None` where the buffer is dense and row-major.
        symbols: what the symbols of the layout's text are.
    """

    name: Name
    dtype: Dtype
    shape: Shape | None
    layout: LayoutText | None = None
    access: ArgumentAccess = "readwrite"
    alignment: Annotated[int, power_of_two(1 << 20)] = 1
    strides: Shape | None = None
    symbols: Annotated[tuple[tuple[Variable, Expression], ...], count(0, 64)] = ()


@dataclass(frozen=True, slots=True)
class Workspace:
    """Device memory that the launches of an artifact share, and that no caller passes.

    Whoever runs the artifact allocates it. Two runs that may overlap in time have different ones;
    runs that follow one another may have the same one.

    Attributes:
        name: its name in the source.
        dtype: MLIR's name of the element type.
        shape: of the buffer, dense and row-major; sizes may be expressions.
        alignment: of the buffer's address, in bytes; a power of two that the kernels rely on.
        zeroed: it holds zeros when the first launch begins, and the launches leave zeros in it for
            the next run. Else it begins with unknown values.
    """

    name: Name
    dtype: Dtype
    shape: Annotated[tuple[Extent | Expression, ...], count(0, 32)]
    alignment: Annotated[int, power_of_two(ALLOCATION_ALIGNMENT)] = ALLOCATION_ALIGNMENT
    zeroed: bool = False

    @property
    def bytes(self) -> int:
        """The bytes of the buffer, all of whose sizes are numbers."""
        return prod(known_numbers(self.shape)) * ELEMENT_BYTES[self.dtype]

    def __str__(self) -> str:
        sizes = "×".join(_shown(n) for n in self.shape)
        is_known = all(isinstance(n, int) for n in self.shape)
        size = f", {self.bytes} bytes" if is_known else ""
        zeroed = ", zeroed" if self.zeroed else ""
        return f"{self.name}  {self.dtype} {sizes}{size}{zeroed}"


@dataclass(frozen=True, slots=True)
class WorkspaceIndex:
    """The position of a workspace among those of the artifact, where an argument may stand too."""

    workspace: Index


@dataclass(frozen=True, slots=True)
class Constant:
    """A scalar kernel parameter whose value the host function fixes."""

    dtype: Dtype
    value: int | float


@dataclass(frozen=True, slots=True)
class Computed:
    """A kernel parameter that is an integer which the launch computes."""

    dtype: Literal["i32", "i64", "index"]
    expression: Expression


@dataclass(frozen=True, slots=True)
class TensorMapParameter:
    """A kernel parameter that is a tensor map: how TMA copies boxes of a tensor.

    Dimensions go from the innermost outwards.

    Attributes:
        argument: the position of the host function's argument whose buffer it maps, or that of a
            workspace.
        shape: of the tensor, in elements; sizes may be expressions.
        strides: of all dimensions but the innermost, in bytes; they may be expressions.
        box: in elements.
        swizzle: of the box in shared memory: 0, 32, 64 or 128 bytes.
        l2_promotion: bytes that a read brings into the L2 cache at least: 64, 128 or 256, or 0 for
            those that are read.
    """

    argument: Index | WorkspaceIndex
    shape: Sizes
    strides: Sizes
    box: Integers
    swizzle: int
    l2_promotion: L2Promotion = 256


@dataclass(frozen=True, slots=True)
class TensorMapParameters:
    """A kernel parameter that is several tensor maps, one behind the other."""

    maps: Annotated[tuple[TensorMapParameter, ...], count(1, MAX_PARAMETER_BYTES // 128)]


Parameter = Index | WorkspaceIndex | Constant | Computed | TensorMapParameter | TensorMapParameters
"""The position of the host function's argument that a kernel's parameter is, or what it is else."""


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One kernel launch of the host function.

    Attributes:
        kernel: the entry's name in the PTX.
        grid: blocks in x, y and z, each a number or an expression. Where one is 0, nothing is
            launched.
        block: threads in x, y and z.
        parameters: for each kernel parameter the position of the host function's argument that
            it receives, the position of a workspace, a constant, a number that the launch
            computes, or tensor maps.
        shared_bytes: dynamic shared memory (static shared memory stands in the PTX).
        pdl: whether the kernel waits by itself for what was launched before it on the
            stream, and so may begin earlier (programmatic dependent launch).
        pdl_ctas: the blocks up to which it does; 0 for any number.
    """

    kernel: Symbol
    grid: Grid
    block: Block
    parameters: tuple[Parameter, ...]
    shared_bytes: Annotated[int, integer(0, 1 << 20)] = 0
    pdl: bool = False
    pdl_ctas: Annotated[int, integer(0, (1 << 31) - 1)] = 0

    def is_dependent(self, grid: Sequence[int]) -> bool:
        """Return whether a launch of a grid may begin earlier."""
        return self.pdl and (not self.pdl_ctas or prod(grid) <= self.pdl_ctas)

    def __str__(self) -> str:
        grid, block = ("×".join(_shown(n) for n in size) for size in (self.grid, self.block))
        parts = [self.kernel, f"grid {grid}", f"block {block}"]
        if self.shared_bytes:
            parts.append(f"dynamic shared memory {self.shared_bytes} bytes")
        if self.pdl:
            most = f" up to {self.pdl_ctas} blocks" if self.pdl_ctas else ""
            parts.append(f"pdl{most}")
        return "  ".join(parts)


@dataclass(frozen=True, slots=True)
class Fact:
    """What the code relies on of the arguments, so that every launch evaluates it.

    Its expressions are those of `artifact.expressions`: `a0 16 % 0 ==` holds where 16 divides the
    first argument.

    Attributes:
        condition: an expression that is not 0 where the fact holds.
        value: the expression that the fact is about.
        says: what it says of the value, for the error.
        location: where in the source, `file:line:column`; may be empty.
    """

    condition: Expression
    value: Expression
    says: Text
    location: LocationText = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A compiled host function: its arguments, its launches in order, and the code they run.

    Attributes:
        in_place: the kernels may get buffers that overlap, of which they write some.
        facts: what the code relies on of the arguments.
        checked: the kernels check what could not be proven.
        workspaces: memory that the launches share, beside the arguments.
        sources: what it was compiled from, for errors; not saved, so one that is loaded has none.
    """

    name: Name
    target: Target
    arguments: tuple[Argument, ...]
    launches: tuple[KernelLaunch, ...]
    ptx: PTX
    cubin: bytes | None = None
    reference: Reference | None = None
    in_place: bool = False
    facts: Annotated[tuple[Fact, ...], count(0, 1 << 12)] = ()
    checked: bool = False
    workspaces: Annotated[tuple[Workspace, ...], count(0, MAX_PARAMETER_BYTES // 8)] = ()
    sources: Sources = field(default=NO_SOURCES, compare=False, repr=False)

    def __hash__(self) -> int:
        # Every launch looks its artifact up, and these two know their hashes.
        return hash((self.name, self.ptx))

    @property
    def workspace_bytes(self) -> int:
        """The bytes of one allocation of all workspaces, each of which begins aligned."""
        return workspace_offsets(self.workspaces)[-1]

    def check(self) -> None:
        """Check that all of it is as a bundle may hold it, and that its pieces fit one another.

        Raises:
            LegoError: something is not; the message names the field, as `launches[0].grid`.
        """
        from lego_mlir.artifact.consistency import check

        check(self)

    def to_bytes(self) -> bytes:
        """Return the artifact as the content of its file; the same artifact gives the same bytes.

        Raises:
            LegoError: it is not as `check` wants it, so that nobody could load it.
        """
        from lego_mlir.artifact import bundle  # not for a run that only compiles

        return bundle.pack(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact as one file; an existing file is replaced whole or not at all.

        Raises:
            LegoError: the file cannot be written, or the artifact is not as `check` wants it.
        """
        write_whole(path, self.to_bytes())

    @staticmethod
    def load(path: str | os.PathLike[str], *, limits: Limits | None = None) -> Artifact:
        """Read an artifact that `save` wrote. The file may come from a stranger: all is checked.

        Args:
            path: of the file.
            limits: on what the bundle may ask for; those of the context if None.

        Raises:
            LegoError: the file is missing, is no artifact, has another format, exceeds a limit, or
                something in it is not as `check` wants it.
        """
        from lego_mlir.artifact import bundle

        with (limits or current()).applied():
            return bundle.load(path)


def known_numbers(sizes: Sequence[int | str | None]) -> tuple[int, ...]:
    """Return sizes of which all are numbers.

    Raises:
        ValueError: one is an expression, or None: only the launch knows it.
    """
    found = tuple(n for n in sizes if isinstance(n, int))
    if len(found) < len(sizes):
        raise ValueError(f"sizes that only a launch knows: {list(sizes)}")
    return found


def _shown(size: int | str) -> str:
    """Return a number of blocks or elements for a message; an expression in parentheses."""
    return str(size) if isinstance(size, int) else f"({size})"


def workspace_offsets(workspaces: Sequence[Workspace]) -> tuple[int, ...]:
    """Return the byte at which each workspace begins in an allocation of all, and its size."""
    offsets = [0]
    for workspace in workspaces:
        end = offsets[-1] + workspace.bytes
        offsets.append(-(-end // ALLOCATION_ALIGNMENT) * ALLOCATION_ALIGNMENT)
    return tuple(offsets)
