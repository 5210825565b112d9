"""The driver: lowers a module from lego operations to machine code, stage by stage.

placed     all tiles that are tensors have layouts; after the schedule's steps on them
index      all lego operations lowered to arith, affine, memref, gpu
scheduled  after the schedule's transform script (the same as index without one)
nvvm       one gpu.module in the nvvm and llvm dialects
llvm       its LLVM IR, before LLVM's own optimisations
ptx        its PTX, made by LLVM's NVPTX back end
cubin      machine code, assembled by ptxas, or by nvJitLink where that is not installed
bundle     an artifact: the code, and how to launch it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from lego_mlir.artifact import Artifact
from lego_mlir.collection import collected_later
from lego_mlir.compiler import launches, schedules
from lego_mlir.compiler.backend import child_process, codegen
from lego_mlir.compiler.backend.assembly import Cubin
from lego_mlir.compiler.backend.strict_checks import check_strict
from lego_mlir.compiler.host_functions import host_function
from lego_mlir.compiler.kernels.checks import check_lowered
from lego_mlir.compiler.kernels.resource_limits import check_launches, check_registers
from lego_mlir.compiler.module_schedules import ModuleSchedules
from lego_mlir.compiler.nvvm_stage import lower_to_nvvm
from lego_mlir.compiler.options import Options
from lego_mlir.compiler.pipelines import pipeline
from lego_mlir.compiler.schedule_files import PLACED
from lego_mlir.compiler.schedules import Schedule
from lego_mlir.compiler.tile_stages import (
    LOWERING,
    PLACING,
    check_crowds,
    check_placed,
    has_crowds,
    run_passes,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir, native, object_of
from lego_mlir.mlir.context import Source, mlir_errors, parse, run_pipeline, shared_context
from lego_mlir.mlir.launch_sizes.hoist_sizes import hoist_sizes
from lego_mlir.mlir.layouts import Layouts, functions_of
from lego_mlir.mlir.lowering.lower_lego import lower_lego
from lego_mlir.mlir.modules import clone_module, keep_launches, operations_in
from lego_mlir.mlir.tile_ir.explanation import explain_tiles
from lego_mlir.mlir.tile_ir.kernels import tile_kernels
from lego_mlir.mlir.tile_ir.step_check import StepCheck
from lego_mlir.mlir.to_nvvm.shared_memory import TargetMemory, check_static_shared
from lego_mlir.mlir.updates.update_checks import check_updates
from lego_mlir.sources import Sources
from lego_mlir.timing import timed


@contextmanager
def nested_errors(stage: str) -> Iterator[None]:
    """Turn an overflow of Python's stack in a stage into an error about the input.

    Raises:
        LegoError: expressions are nested too deeply.
    """
    try:
        yield
    except RecursionError:
        raise LegoError(
            f"expressions of the module are nested too deeply for the stage '{stage}'",
            hint="compute them step by step in a loop of the kernel, in Python lg.loop or lg.fold",
        ) from None


class Compilation:
    """One module, lowered stage by stage; each stage is computed once, on first use.

    Args:
        source: the module's text.
        options: how to compile it.
        module: the module itself, if it was built and not parsed; the source then serves errors
            only. It is not modified.
        sources: the texts that its locations point into, if the source is not the only one.

    Raises:
        LegoError: the text is no valid module.
    """

    def __init__(
        self,
        source: Source,
        options: Options | None = None,
        module: Any = None,
        sources: Sources | None = None,
    ) -> None:
        self.source = source
        self.sources = sources or Sources.of({source.file: source.text})
        self.options = options or Options()
        self.context = shared_context() if module is None else module.context
        with timed("parse"):
            self._parsed = parse(source, self.context) if module is None else module

    @property
    def module_text(self) -> str:
        """The module with its locations, as text."""
        text: str = self._parsed.operation.get_asm(enable_debug_info=True)
        return text

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that `@name` in a layout of this module stands for, callable on arrays."""
        return functions_of(self._parsed, self.source)

    def text(self, stage: str) -> str:
        """Return a stage as text: the module, the LLVM IR or the PTX.

        Raises:
            LegoError: there is no such stage, or the module does not get there.
        """
        match stage:
            case "placed" | "index" | "scheduled" | "nvvm":
                return str(getattr(self, stage)).rstrip("\n") + "\n"
            case "llvm":
                return self.llvm
            case "ptx":
                return self.ptx
        raise LegoError(
            f"there is no text of a stage '{stage}'",
            hint="stages: placed, index, scheduled, nvvm, llvm, ptx",
        )

    @cached_property
    def schedule(self) -> Schedule | None:
        """The schedule of the options, else that of the module, with the records of its steps."""
        return self.schedules.own

    @cached_property
    def schedules(self) -> ModuleSchedules:
        """The schedule of the module, and those that its launches name."""
        options = self.options
        name = options.schedule or schedules.named_by(self._parsed, self.source)
        common = Schedule("", self.source, options.target, {}, options.keep)
        if name is None:
            return ModuleSchedules(common, None)
        return ModuleSchedules(common, replace(common, name=name, parameters=options.parameters))

    @property
    def has_schedule(self) -> bool:
        """Whether the module or one of its launches has a schedule."""
        return self.schedules.is_any(self._parsed)

    @cached_property
    @nested_errors("placed")
    @collected_later()
    def placed(self) -> Any:
        """The module whose tiles all have layouts, after the schedule's steps on them."""
        module = self._clone(self._parsed)
        self._set_sizes(module)
        with self.context:
            hoist_sizes(module, self.source)
        context = module, self.layouts, self.source, self.options.target, self.step_check
        run_passes(PLACING, *context)
        is_crowded = has_crowds(*context)
        is_scheduled = self.schedules.apply(module, PLACED, self.layouts)
        check_placed(*context, is_scheduled=is_scheduled)
        if is_crowded:  # unless the schedule has made room
            check_crowds(*context)
        return module

    def explain_tiles(self) -> list[list[str]]:
        """Return of each kernel on tiles their layouts, and what is done with them, by lines."""
        with self.context:
            kernels = tile_kernels(self.placed, self.layouts, self.source, self.options.target)
            return [explain_tiles(kernel) for kernel in kernels]

    @cached_property
    def step_check(self) -> StepCheck | None:
        """What checks each pass over tiles, if the options ask for it."""
        asked = self.options.check_each_step
        return StepCheck(self.layouts, self.source) if asked else None

    def with_options(self, **options: Any) -> Compilation:
        """Return a compilation of the same module with some other options."""
        new = replace(self.options, **options)
        return Compilation(self.source, new, self._parsed, self.sources)

    @cached_property
    @nested_errors("index")
    @timed("index")
    @collected_later()
    def index(self) -> Any:
        """The module with all lego operations lowered, after the schedule's steps before that."""
        module = self._clone(self.placed)
        run_passes(LOWERING, module, self.layouts, self.source, self.options.target)
        self._check_updates(module)
        self.schedules.apply(module, schedules.TILES, self.layouts)
        lower_lego(module, self.layouts, self.source, self.options.target, check=self.options.check)
        with self.context:
            keep_launches(module)
        self._run("index", module)
        return module

    @cached_property
    def layouts(self) -> Layouts:
        """The module's layouts with the sizes to compile for, each parsed once for all passes."""
        sizes = {**dialect.sizes_of(self._parsed, self.source), **self.options.sizes}
        return Layouts(self.source, sizes, self.functions)

    def _check_updates(self, module: Any) -> None:
        """Refuse updates of elements that are not known to be one thread's own."""
        with self.context, mlir_errors(self.source):
            check_updates(list(operations_in(module.operation)), self.layouts, self.source)

    @cached_property
    @nested_errors("scheduled")
    @timed("scheduled")
    @collected_later()
    def scheduled(self) -> Any:
        """The module after the schedule."""
        if not self.has_schedule:
            return self.index
        module = self._clone(self.index)
        if (
            not self.schedules.apply(module, schedules.MAIN, self.layouts)
            and not self.options.pipelines
        ):
            return self.index  # nothing to clean up
        self._run("scheduled", module)
        return module

    @cached_property
    @nested_errors("nvvm")
    @timed("nvvm")
    @collected_later()
    def nvvm(self) -> Any:
        """The module with one gpu.module in the nvvm and llvm dialects."""
        module = self._clone(self.scheduled)
        run = partial(self._run, "nvvm", module)
        options = self.options
        lower_to_nvvm(
            module, self.source, options.target, self._memory, exact=options.exact_math, run=run
        )
        return module

    @cached_property
    @timed("llvm")
    def llvm(self) -> str:
        """The LLVM IR of the kernels."""
        kernels = self._kernels()

        def translate() -> bytes:
            with self.context, ir.Location.unknown(), mlir_errors(self.source, "no LLVM IR"):
                alone = ir.Module.create()
                for op in kernels.regions[0].blocks[0].operations:
                    alone.body.append(op.operation.clone())
                return str(native("LLVM").translate_module_to_llvmir(alone.operation)).encode()

        code = child_process.run_isolated(
            translate, isolate=self.options.isolate, doing="making LLVM IR"
        )
        return code.decode().rstrip("\n") + "\n"

    @cached_property
    @timed("ptx")
    def ptx(self) -> str:
        """The PTX of the kernels."""
        self._kernels()
        check_launches(self.nvvm, self.source)
        with self.context:
            check_static_shared(self.nvvm, self._memory, self.source)

        def generate() -> bytes:
            module = self._clone(self.nvvm)
            self._run("ptx", module)
            with self.context:
                for op in module.body.operations:
                    if op.operation.name == "gpu.binary":
                        return object_of(op.operation.attributes["objects"][0])
            raise LegoError(
                "the pass pipeline of stage 'ptx' left no gpu.binary",
                hint="it needs gpu-module-to-binary{format=isa}",
            )

        code = child_process.run_isolated(generate, isolate=self.options.isolate)
        return code.rstrip(b"\0").decode().rstrip("\n") + "\n"

    @cached_property
    @timed("cubin")
    def cubin(self) -> Cubin:
        """The machine code of the kernels."""
        made = codegen.assemble(self.ptx, self.options.target)
        check_registers(self.nvvm, made, self.source)
        if self.options.strict:
            check_strict(made)
        return made

    def artifact(self, *, assemble: bool = True) -> Artifact:
        """Return the code and its launches.

        Args:
            assemble: include the cubin; the simulator needs only the PTX.

        Raises:
            LegoError: the host function does more than launch kernels.
        """
        host = host_function(self.scheduled, self._parsed, self.layouts, self.source)
        found, workspaces = launches.launches(self.nvvm, host, self.source)
        artifact = Artifact(
            name=host.name,
            target=self.options.target.name,
            arguments=host.arguments,
            launches=found,
            ptx=self.ptx,
            cubin=self.cubin.code if assemble else None,
            reference=host.reference,
            sources=self.sources,
            in_place=host.in_place,
            facts=host.facts,
            checked=self.options.check,
            workspaces=workspaces,
        )
        artifact.check()  # what can be made can be loaded
        return artifact

    @property
    def _memory(self) -> TargetMemory:
        target = self.options.target
        return TargetMemory(target.name, target.optin_shared_bytes, target.static_shared_bytes)

    def _kernels(self) -> Any:
        """Return the gpu.module of stage nvvm after checking that LLVM knows all its operations."""
        for op in self.nvvm.body.operations:
            if op.operation.name == "gpu.module":
                check_lowered(op.operation, self.source)
                return op.operation
        raise self.source.error(
            "the module has no kernel",
            self._parsed.operation.location,
            hint="a kernel is the body of a gpu.launch, or a gpu.func in a gpu.module",
        )

    def _clone(self, module: Any) -> Any:
        with self.context:
            return clone_module(module)

    def _run(self, stage: str, module: Any, **values: object) -> None:
        text = pipeline(stage, self.options.pipelines, **values)
        # Our own passes, in our own order, are tested; the user's have to be verified one by one.
        is_given = stage in self.options.pipelines
        run_pipeline(module, text, self.source, stage, verify_each=is_given)

    def _set_sizes(self, module: Any) -> None:
        if not self.options.sizes:
            return
        sizes = dialect.sizes_of(module, self.source)
        for name in self.options.sizes:
            if name not in sizes:
                known = ", ".join(sizes) or "none"
                raise LegoError(
                    f"the module has no size '{name}' to set", hint=f"its lego.sizes are: {known}"
                )
        with self.context:
            dialect.set_sizes(module, {**sizes, **self.options.sizes})
