"""Several kernels, one after the other, as one function with shared arguments and workspaces.

    pack = lg.kernel(grid=..., block=..., pdl=True)(pack_body)
    multiply = lg.kernel(grid=..., warps=..., schedule="pipelined")(multiply_body)
    both = lg.sequence(
        "matmul",
        [pack.on(source="a", target="packed"), multiply.on(a="packed")],
        parameters={"a": ..., "b": ..., "c": ...},
        workspaces={"packed": lg.Workspace("f16", (512, 64))},
    )
    both(a, b, c)

Each kernel names its own parameters; `on` says which argument or workspace each one is, if it has
another name. A kernel accesses a buffer by its own layout, so two kernels may see one buffer in
different ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from lego_mlir.algebra.sizes import product
from lego_mlir.artifact import Argument, Artifact
from lego_mlir.artifact.names import NAME_RULE, is_name
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.frontend.dtypes import check_dtype, mlir_element
from lego_mlir.frontend.host.argument_types import EmptyType, Parameter, ScalarType
from lego_mlir.frontend.host.host_arithmetic import HostArithmetic
from lego_mlir.frontend.host.host_function import HostFunction
from lego_mlir.frontend.host.kernel import Kernel, KernelCall
from lego_mlir.frontend.host.launch_classes import LaunchClass
from lego_mlir.frontend.trace import Trace, user_location
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Expr, Int
from lego_mlir.index.integers import python_integers
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory of a sequence that no caller passes: what one kernel writes, and a later one reads.

    It is allocated once, and used again by each launch on the same stream.

    Attributes:
        dtype: MLIR's name of the element type.
        shape: of the buffer, in elements.
        zeroed: it holds zeros when the first kernel begins. The kernels must leave zeros in it.

    Raises:
        LegoError: there is no such type, or the shape is not one of positive integers.
    """

    dtype: str
    shape: tuple[Int, ...]
    zeroed: bool = False

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        object.__setattr__(self, "shape", python_integers(self.shape))
        if not self.shape or not all(
            isinstance(n, Expr) or (type(n) is int and n > 0) for n in self.shape
        ):
            raise LegoError(
                f"the shape of a workspace is {self.shape!r}",
                hint='positive integers: lg.Workspace("f32", (64, 128))',
            )


class KernelSequence(HostFunction):
    """Kernels that are launched one after the other; see `sequence`.

    Attributes:
        calls: the kernels with the names of what they get.
        workspaces: by name.
        explanation: returns a description of how the sequence was made, if there is one.
    """

    def __init__(
        self,
        name: str,
        calls: Sequence[Kernel | KernelCall],
        parameters: Mapping[str, Parameter],
        workspaces: Mapping[str, Workspace],
        reference: str | None,
        explanation: Callable[[], str] | None,
        in_place: bool,
    ) -> None:
        self.calls = tuple(c if isinstance(c, KernelCall) else c.on() for c in calls)
        self.workspaces = dict(workspaces)
        self.explanation = explanation
        self._given = dict(parameters)
        self._place = user_location()
        kernels = [call.kernel for call in self.calls]
        super().__init__(
            name,
            reference,
            strict=any(kernel.strict for kernel in kernels),
            exact_math=any(kernel.exact_math for kernel in kernels),
            in_place=in_place or any(kernel.in_place for kernel in kernels),
        )
        self._check()

    def __repr__(self) -> str:
        return "\n".join([f"<sequence {self.name}>", *(f"  {c.kernel!r}" for c in self.calls)])

    @property
    def schedule(self) -> str | None:
        """The schedule of the last kernel, for which the others prepare."""
        return self.calls[-1].kernel.schedule if self.calls else None

    @property
    def params(self) -> Mapping[str, int]:
        """The values of the parameters of that schedule."""
        return self.calls[-1].kernel.params if self.calls else {}

    def parameters(self) -> Mapping[str, Parameter]:
        """Return the types of the arguments by name, in order."""
        return self._given

    def explain(self) -> str:
        """Describe the kernels, and the workspaces that they share."""
        if self.substitute is not None:
            return self.substitute.explain()
        lines = [f"<sequence {self.name}>", *self._explain_classes()]
        lines += [
            f"workspace  {name}: {w.dtype} {'×'.join(map(str, w.shape))}{', zeroed' * w.zeroed}"
            for name, w in self.workspaces.items()
        ]
        if self.explanation is not None:
            lines.append(self.explanation())
        position = 0
        for call in self.calls:
            tiles = partial(self._explain_tiles, position)
            lines += [repr(call.kernel), *call.kernel.explain_config(tiles)]
            position += call.kernel.warps is not None
        return "\n".join(lines)

    def _explain_tiles(self, position: int) -> list[str]:
        """Describe the tiles of the kernel at a position among the calls of kernels on tiles."""
        return self._tiles[position]

    @cached_property
    def _tiles(self) -> list[list[str]]:
        return self.compilation().explain_tiles()

    def compile(
        self,
        target: str = DEFAULT_TARGET,
        *,
        check: bool = False,
        sizes: Mapping[str, int] | LaunchClass | None = None,
        assemble: bool = True,
    ) -> Artifact:
        """Compile the kernels for a GPU architecture; see `HostFunction.compile`.

        A sequence without kernels has no code: its artifact launches nothing.
        """
        if self.calls:
            return super().compile(target, check=check, sizes=sizes, assemble=assemble)
        arguments = tuple(_unused(name, kind) for name, kind in self._given.items())
        artifact = Artifact(self.name, Target.parse(target).name, arguments, (), "")
        artifact.check()
        return artifact

    @property
    def _location(self) -> Location:
        return self._place

    def _traced(self) -> Any:
        calls = [(call.kernel._traced(), dict(call.names)) for call in self.calls]
        return dict(self._given), self.workspaces, calls

    def _launch_kernels(
        self, trace: Trace, arguments: Mapping[str, Any], promised: LaunchClass
    ) -> None:
        buffers = dict(arguments)
        for name, workspace in self.workspaces.items():
            buffers[name] = _allocate(name, workspace, trace)
        for call in self.calls:
            kernel = call.kernel
            given = {n: buffers[call.names[n]] for n in kernel.parameters()}
            launch = kernel.launch(trace, given, promised, self.run_time_sizes)
            function = ir.FlatSymbolRefAttr.get(f"{self.name}_{kernel.name}")
            launch.attributes["function"] = function
            if kernel.schedule is not None:
                launch.attributes[dialect.SCHEDULE] = ir.StringAttr.get(kernel.schedule)
            if kernel.params:
                i64 = ir.IntegerType.get_signless(64)
                launch.attributes[dialect.PARAMS] = ir.DictAttr.get(
                    {name: ir.IntegerAttr.get(i64, n) for name, n in kernel.params.items()}
                )

    def _check(self) -> None:
        """Check names, and that each kernel gets buffers as it expects them."""
        names = [*self._given, *self.workspaces]
        for name in names:
            if not is_name(name) or names.count(name) > 1:
                raise self._error(
                    f"'{name}' is the name of two buffers, or no name", f"a name has {NAME_RULE}"
                )
        for call in self.calls:
            for parameter, kind in call.kernel.parameters().items():
                self._check_buffer(call, parameter, kind)

    def _check_buffer(self, call: KernelCall, parameter: str, kind: Parameter) -> None:
        """Check that a kernel's parameter fits the argument or workspace that it gets."""
        what = f"parameter '{parameter}' of kernel '{call.kernel.name}'"
        name = call.names[parameter]
        given = self._given.get(name) or self.workspaces.get(name)
        if given is None:
            known = ", ".join([*self._given, *self.workspaces])
            raise self._error(
                f"{what} is '{name}', and there is none",
                f'kernel.on({parameter}="..."): one of {known}',
            )
        if isinstance(kind, ScalarType) or isinstance(given, ScalarType):
            if kind != given:
                raise self._error(f"{what} is {kind}, but '{name}' is {given}")
            return
        held, needed = product(given.shape), product(kind.shape)
        are_known = isinstance(held, int) and isinstance(needed, int)
        larger = isinstance(given, Workspace) and are_known and held > needed
        if given.dtype != kind.dtype or (held != needed and not larger):
            raise self._error(
                f"{what} has {needed} elements of {kind.dtype}, but '{name}' has {held} of "
                f"{given.dtype}"
            )
        if isinstance(given, EmptyType) != isinstance(kind, EmptyType):
            raise self._error(f"{what} and '{name}' are not both arrays without elements")

    def _error(self, message: str, hint: str | None = None) -> LegoError:
        return LegoError(
            f"sequence '{self.name}': {message}",
            location=self._place,
            source=self._source.text or None,
            hint=hint,
        )


def sequence(
    name: str,
    calls: Sequence[Kernel | KernelCall],
    *,
    parameters: Mapping[str, Parameter],
    workspaces: Mapping[str, Workspace] | None = None,
    reference: str | None = None,
    explanation: Callable[[], str] | None = None,
    in_place: bool = False,
) -> KernelSequence:
    """Make one function of several kernels, which a call launches one after the other.

    Args:
        name: of the function.
        calls: the kernels in order, maybe none; `kernel.on(...)` where a buffer has another name
            than the kernel's parameter.
        parameters: the types of the arguments by name, in order.
        workspaces: memory that the kernels share beside the arguments, by name.
        reference: a known reference (`lego_mlir.runtime.references`) that `run` compares with.
        explanation: what `explain` says first.
        in_place: the kernels may get arrays that overlap, of which they write some.

    Raises:
        LegoError: a kernel's parameter has no buffer, or one of another type or size.
    """
    return KernelSequence(
        name, calls, parameters, workspaces or {}, reference, explanation, in_place
    )


def _unused(name: str, kind: Parameter) -> Argument:
    """Return an argument that no kernel accesses."""
    if isinstance(kind, ScalarType):
        return Argument(name, kind.dtype, None, access="read")
    if isinstance(kind, EmptyType):
        return Argument(name, kind.dtype, kind.shape, None, "none")
    layout = None if kind.symbols else str(kind.layout)  # any array of these dimensions will do
    shape = tuple(n if isinstance(n, int) else None for n in kind.shape)
    return Argument(name, kind.dtype, shape, layout, "none")


def _allocate(name: str, workspace: Workspace, trace: Trace) -> Any:
    """Make the gpu.alloc of a workspace, and return its memref."""
    unknown = ir.ShapedType.get_dynamic_size()
    sizes = [n if isinstance(n, int) else unknown for n in workspace.shape]
    kind = ir.MemRefType.get(sizes, mlir_element(workspace.dtype))
    arithmetic = HostArithmetic({s.name: value for s, value in trace.sizes.items()})
    given = [arithmetic(n) for n in workspace.shape if isinstance(n, Expr)]
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(given), 0]),
        dialect.ARGUMENT_NAME: ir.StringAttr.get(name),
    }
    if workspace.zeroed:
        attributes[dialect.ZEROED] = ir.UnitAttr.get()
    return ir.Operation.create(
        "gpu.alloc", results=[kind], operands=given, attributes=attributes
    ).result
