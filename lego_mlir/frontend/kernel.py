"""`@kernel`: from a Python function to a module, an artifact, and a launch."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from types import FunctionType
from typing import Any

from lego_mlir import runtime
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.frontend.parameters import (
    Parameter,
    Size,
    argument_attributes,
    call,
    check_keywords,
    checked_params,
    dim3,
    mlir_type,
    traced_argument,
)
from lego_mlir.frontend.python_errors import python_error
from lego_mlir.frontend.tensors import EmptyType, ScalarType, TensorType
from lego_mlir.frontend.trace import (
    Trace,
    location_of_traceback,
    relative_name,
    source_text,
    user_location,
)
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, func, ir
from lego_mlir.mlir.context import Source, mlir_errors, new_context
from lego_mlir.sources import Sources


class Kernel:
    """A traced kernel.

    Calling it launches it, in place, on buffers: NumPy arrays or anything with DLPack.

    Attributes:
        name: the function's; what an identifier of PTX cannot have is `_`.
        grid: CTAs along x, y and z.
        block: threads of a CTA along x, y and z.
        reference: the known reference that `run` compares with, if any.
        schedule: the schedule that maps tiles to threads and instructions, if any.
        params: values of the schedule's parameters; others have their defaults.
        strict: whether machine code that spills registers, or that the assembler slows down, is
            an error.
        explanation: returns a description of how the kernel was made, if there is one.
        exact_division: whether quotients of f32, f16 and bf16 are rounded exactly.
        in_place: whether the kernel may get arrays that overlap, of which it writes some.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        grid: Size,
        block: Size,
        reference: str | None = None,
        parameters: Mapping[str, Parameter] | None = None,
        schedule: str | None = None,
        params: Mapping[str, int] | None = None,
        strict: bool = False,
        explanation: Callable[[], str] | None = None,
        exact_division: bool = False,
        in_place: bool = False,
    ) -> None:
        if not isinstance(function, FunctionType):
            raise LegoError(
                f"a kernel is a function, not {function!r}",
                hint="write @lg.kernel(...) above a def",
            )
        self.name = re.sub(r"\W", "_", function.__name__, flags=re.ASCII)  # as PTX takes names
        self.grid = dim3(grid, "grid", self.name)
        self.block = dim3(block, "block", self.name)
        self.reference = reference
        self.schedule = schedule
        self.params = checked_params(params or {}, schedule, self.name)
        self.strict = strict
        self.explanation = explanation
        self.exact_division = exact_division
        self.in_place = in_place
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._types = parameters
        if reference is not None:
            self._check_reference(reference)
        self._artifacts: dict[tuple[str, bool], Artifact] = {}

    def _check_reference(self, reference: str) -> None:
        """Raise LegoError, at the decorator, if there is no reference of this name."""
        try:
            runtime.references.find(reference)
        except LegoError as e:
            raise e.at(self._location, self._source.text) from None

    def __repr__(self) -> str:
        grid, block = ("×".join(str(n) for n in size) for size in (self.grid, self.block))
        return f"<kernel {self.name}  grid {grid}  block {block}>"

    def __call__(
        self,
        *arrays: Any,
        device: str | runtime.Device = "auto",
        stream: Any = None,
        check: bool | None = None,
        **unknown: Any,
    ) -> None:
        """Launch the kernel on arrays, in place.

        Args:
            arrays: one a parameter, in order; numbers for scalars. An array is the tensor, with the
                strides of the parameter's layout, or its buffer.
            device: `auto`, `cuda`, `sim`, or a device from `runtime.select`.
            stream: a CUDA stream; without one the call returns when the work is done.
            check: whether the kernel checks what of its indices and sizes is not proven; by default
                in the simulator.
            unknown: keyword arguments that there are none of: an error.

        Raises:
            LegoError: the kernel does not compile, or an array does not fit.
        """
        check_keywords(self.name, self.__wrapped__, unknown, user_location())
        runtime.launch_on(arrays, device, stream, lambda chosen: self._compiled_for(chosen, check))

    def run(
        self,
        *arrays: Any,
        device: str | runtime.Device = "auto",
        seed: int = 0,
        costs: bool = False,
        check: bool | None = None,
        **unknown: Any,
    ) -> runtime.RunResult:
        """Run on copies of logical tensors, with random data for those that are missing.

        Args:
            arrays: one a parameter, in order.
            device: `auto`, `cuda`, `sim`, or a device from `runtime.select`.
            seed: of the random data.
            costs: count what the launch costs, in `sim`. (For a device from `runtime.select`,
                pass `costs` to `select`.)
            check: whether the kernel checks what of its indices and sizes is not proven; by default
                in the simulator, unless costs are counted.
            unknown: keyword arguments that there are none of: an error.

        Returns:
            What was read, what was written, and how that compares with the reference.
        """
        check_keywords(self.name, self.__wrapped__, unknown, user_location())
        chosen = runtime.select(device, costs=costs) if isinstance(device, str) else device
        artifact = self._compiled_for(chosen, False if costs and check is None else check)
        return runtime.run(artifact, arrays, device=chosen, seed=seed, functions=self._functions())

    def explain(self) -> str:
        """Describe the kernel: its launch, its schedule, and how its config was chosen."""
        params = ", ".join(f"{name} = {n}" for name, n in self.params.items())
        if self.explanation is not None:
            return f"{self!r}\n{self.explanation()}"
        if self.schedule is None:
            return f"{self!r}\nno schedule"
        return f"{self!r}\nschedule   {self.schedule}\nparams     {params or 'the defaults'}"

    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of the permutations in the parameters' layouts."""
        return {
            f.__name__: f
            for kind in self._parameters().values()
            if isinstance(kind, TensorType)
            for f in kind.layout.functions
        }

    def _compiled_for(self, device: runtime.Device, check: bool | None) -> Artifact:
        """Compile the kernel for a device, by default with checks in the simulator."""
        check = device.name == "sim" if check is None else check
        return self.compile(device.target or DEFAULT_TARGET, check=check)

    def compile(self, target: str = DEFAULT_TARGET, *, check: bool = False) -> Artifact:
        """Compile the kernel for a GPU architecture; results are cached.

        Args:
            target: the architecture.
            check: make code that checks what of indices and sizes is not proven.
        """
        key = target, check
        if key not in self._artifacts:
            compilation = self.compilation(Options(target=Target.parse(target), check=check))
            self._artifacts[key] = compilation.artifact()
        return self._artifacts[key]

    def compilation(self, options: Options | None = None) -> Compilation:
        """Return a compilation of the kernel, which gives each stage: `.text("ptx")`.

        Args:
            options: what to make of it; the kernel's own schedule where they name none.
        """
        options = options or Options()
        options = replace(options, strict=options.strict or self.strict)
        if options.schedule is None:
            params = {**self.params, **options.parameters}
            options = replace(options, schedule=self.schedule, parameters=params)
        module = self.module
        return Compilation(self._source, options, module, Sources.of(self._texts))

    @cached_property
    def module(self) -> Any:
        """The MLIR module: one host function that launches this kernel, in the lego dialect.

        Raises:
            LegoError: at the Python line of a mistake.
        """
        with new_context(), mlir_errors(self._source):
            return self._trace()

    @cached_property
    def _source(self) -> Source:
        file = self.__wrapped__.__code__.co_filename
        return Source(relative_name(file), source_text(file))

    @property
    def _location(self) -> Location:
        code = self.__wrapped__.__code__
        return Location(code.co_filename, code.co_firstlineno)

    def _trace(self) -> Any:
        """Trace the kernel and return its module.

        Raises:
            LegoError: at the Python line of a mistake.
        """
        parameters = self._parameters()
        with ir.Location.file(self._source.file, self._location.line, 1):
            module = ir.Module.create()
            if self.reference is not None:
                module.operation.attributes[dialect.REFERENCE] = ir.StringAttr.get(self.reference)
            if self.exact_division:
                module.operation.attributes[dialect.EXACT_DIVISION] = ir.UnitAttr.get()
            trace = Trace(module, self.name, self._source)
            with trace.active(), ir.InsertionPoint(module.body):
                kinds = [mlir_type(kind) for kind in parameters.values()]
                host = func.FuncOp(self.name, ir.FunctionType.get(kinds, []))
                if self.in_place:
                    host.attributes[dialect.IN_PLACE] = ir.UnitAttr.get()
                entry = host.add_entry_block()
                host.attributes["arg_attrs"] = ir.ArrayAttr.get(
                    [argument_attributes(name, kind, trace) for name, kind in parameters.items()]
                )
                with ir.InsertionPoint(entry):
                    trace.launch = self._launch()
                    self._body(trace, parameters, entry.arguments)
                    func.ReturnOp([])
            module.operation.verify()
        self._texts = trace.texts
        return module

    def _launch(self) -> Any:
        index = ir.IndexType.get()
        sizes = [arith.ConstantOp(index, n).result for n in (*self.grid, *self.block)]
        segments = ir.DenseI32ArrayAttr.get([0, *([1] * 6), 0, 0, 0, 0])
        op = ir.Operation.create(
            "gpu.launch",
            operands=sizes,
            attributes={"operandSegmentSizes": segments},
            regions=1,
        )
        here = ir.Location.current
        op.regions[0].blocks.append(*([index] * 12), arg_locs=[here] * 12)
        return op

    def _body(self, trace: Trace, parameters: dict[str, Any], values: Any) -> None:
        arguments = {
            name: traced_argument(name, value, kind, trace)
            for (name, kind), value in zip(parameters.items(), values, strict=True)
        }
        with ir.InsertionPoint(trace.launch.regions[0].blocks[0]):
            try:
                result = call(self.__wrapped__, arguments)
            except (LegoError, TypeError) as e:
                location = location_of_traceback(e) or self._location
                text = (
                    self._source.text if relative_name(location.file) == self._source.file else None
                )
                if isinstance(e, LegoError):
                    raise e.at(location, text) from None
                raise python_error(e, location, text) from e
            if result is not None:
                raise LegoError(
                    f"kernel '{self.name}' returns a value; kernels store their results",
                    location=self._location,
                    source=self._source.text,
                )
            if trace.left_loop is not None:
                raise LegoError(
                    "a traced loop was left before its end",
                    location=trace.left_loop,
                    source=self._source.text,
                    hint="there is no break or return out of lg.loop",
                )
            ir.Operation.create("gpu.terminator")

    def _parameters(self) -> dict[str, Parameter]:
        try:
            annotations = self._types or inspect.get_annotations(self.__wrapped__, eval_str=True)
        except NameError as e:
            raise LegoError(
                f"the annotations of kernel '{self.name}' cannot be read: {e}",
                location=self._location,
                source=self._source.text,
                hint="names in annotations must be global where the file has "
                "'from __future__ import annotations'",
            ) from None
        found: dict[str, Parameter] = {}
        for name in inspect.signature(self.__wrapped__).parameters:
            kind = annotations.get(name)
            if not isinstance(kind, TensorType | EmptyType | ScalarType):
                raise LegoError(
                    f"parameter '{name}' of kernel '{self.name}' is not annotated as a tensor",
                    location=self._location,
                    source=self._source.text,
                    hint=f'{name}: lg.Tensor["f32", layout], or lg.Scalar["f32"]',
                )
            found[name] = kind
        return found


def kernel(
    *,
    grid: Size,
    block: Size,
    reference: str | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    schedule: str | None = None,
    params: Mapping[str, int] | None = None,
    strict: bool = False,
    explanation: Callable[[], str] | None = None,
    exact_division: bool = False,
    in_place: bool = False,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a function a kernel.

    Args:
        grid: CTAs along x, or a sequence of up to three numbers.
        block: threads of a CTA along x, or a sequence of up to three numbers.
        reference: a known reference (`lego_mlir.runtime.references`) that `run` compares with.
        parameters: the types of the function's parameters, where they are not its annotations.
        schedule: the name or file of a schedule, which distributes tiles among threads.
        params: values of the schedule's parameters, by name.
        strict: refuse machine code that spills registers, or that the assembler slows down.
        explanation: what `explain` says of how the kernel was made.
        exact_division: round quotients of f32, f16 and bf16 exactly; else they are off by at most
            2 units in the last place, and faster.
        in_place: the kernel may get arrays that overlap, of which it writes some. Otherwise a
            launch on such arrays is an error.

    Raises:
        LegoError: a size is no positive integer, or `params` is wrong.
    """
    return lambda function: Kernel(
        function,
        grid,
        block,
        reference,
        parameters,
        schedule,
        params,
        strict,
        explanation,
        exact_division,
        in_place,
    )
