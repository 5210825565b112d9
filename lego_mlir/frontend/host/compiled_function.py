"""A host function made in Python: it is traced, and compiled for a target or found in the cache."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lego_mlir import runtime
from lego_mlir.artifact import Artifact
from lego_mlir.cache import entries
from lego_mlir.cache.builds import builds
from lego_mlir.cache.keys import KernelKey
from lego_mlir.collection import collected_later
from lego_mlir.compiler.cached import compiled, key_of
from lego_mlir.compiler.options import Options
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError, Location, UnfitConfigError
from lego_mlir.frontend.host.argument_types import Parameter
from lego_mlir.frontend.host.fingerprint import NoFingerprint, fingerprint
from lego_mlir.frontend.host.host_arithmetic import host_sizes
from lego_mlir.frontend.host.launch_classes import LaunchClass, RunTimeSizes
from lego_mlir.frontend.host.parameters import argument_attributes, mlir_type
from lego_mlir.frontend.trace import Trace, relative_name, source_text
from lego_mlir.hardware.targets import Target
from lego_mlir.limits import current
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import func, ir
from lego_mlir.mlir.context import Source, mlir_errors, shared_context
from lego_mlir.sources import Sources

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation


class CompiledFunction(ABC):
    """A host function that is traced in Python and compiled.

    Attributes:
        name: what the artifact is called; an identifier of PTX.
        reference: the known reference that `run` compares with, if any.
        strict: whether machine code that spills registers, or that the assembler slows down, is
            an error.
        exact_math: whether quotients and square roots of f32, f16 and bf16 are rounded exactly, and
            other functions have errors of a few units in the last place.
        in_place: whether the kernels may get arrays that overlap, of which they write some.
        alternatives: returns functions with the same parameters that compute the same. The first
            that a target accepts takes the place of this one there, if this is strict and its
            machine code spills registers, or uses what the target has not.
        substitute: the alternative that took its place last, if one did.
    """

    def __init__(
        self,
        name: str,
        reference: str | None,
        *,
        strict: bool,
        exact_math: bool,
        in_place: bool,
    ) -> None:
        self.name = name
        self.reference = reference
        self.strict = strict
        self.exact_math = exact_math
        self.in_place = in_place
        self.alternatives: Callable[[], Iterable[CompiledFunction]] = tuple
        self.substitute: CompiledFunction | None = None
        if reference is not None:
            self._check_reference(reference)
        self._artifacts: dict[tuple[LaunchClass, str, bool, bool], Artifact] = {}
        self._modules: dict[LaunchClass, Any] = {}

    @abstractmethod
    def parameters(self) -> Mapping[str, Parameter]:
        """Return the types of the arguments by name, in order.

        Raises:
            LegoError: a function's annotations do not say them.
        """

    @cached_property
    def run_time_sizes(self) -> RunTimeSizes:
        """The sizes that only the launch knows.

        Raises:
            LegoError: the parameters do not say where a size is found.
        """
        try:
            return RunTimeSizes(self.parameters())
        except LegoError as e:
            raise e.at(self._location, self._source.text) from None

    @abstractmethod
    def explain(self) -> str:
        """Describe the launches: their sizes, schedules, and how their configs were chosen."""

    @property
    @abstractmethod
    def _location(self) -> Location:
        """The place in the user's code."""

    @abstractmethod
    def _launch_kernels(
        self, trace: Trace, arguments: Mapping[str, Any], promised: LaunchClass
    ) -> None:
        """Make the launches at the current insertion point.

        Args:
            trace: records them.
            arguments: the values of the host function's arguments by name.
            promised: what the code relies on of sizes that only the launch knows.
        """

    @abstractmethod
    def _traced(self) -> Any:
        """Return all that the module depends on beside the attributes of this class.

        Raises:
            LegoError: something is wrong, and tracing says what.
        """

    def _options(self, options: Options) -> Options:
        """Return the options with what the kernels add to them."""
        return options

    def _check_reference(self, reference: str) -> None:
        """Raise LegoError, at the decorator, if there is no reference of this name."""
        try:
            runtime.references.find(reference)
        except LegoError as e:
            raise e.at(self._location, self._source.text) from None

    def compile(
        self,
        target: str = DEFAULT_TARGET,
        *,
        check: bool = False,
        sizes: Mapping[str, int] | LaunchClass | None = None,
        assemble: bool = True,
    ) -> Artifact:
        """Compile the kernel for a GPU architecture; results are cached.

        Args:
            target: the architecture.
            check: make code that checks what of indices and sizes is not proven.
            sizes: of launches, by name, where only launches know them: the code is that of their
                class. By default it is for any sizes.
            assemble: make machine code; the simulator needs only the PTX.

        Raises:
            LegoError: the kernel does not compile, or there is no such size.
        """
        promised = self._launch_class(sizes)
        known = self._artifacts.get((promised, target, check, True))
        if known is not None:
            return known
        key = promised, target, check, assemble
        if key not in self._artifacts:
            options = Options(target=Target.parse(target), check=check)
            try:
                made = self._found_or_compiled(options, promised, assemble)
            except UnfitConfigError as error:
                made = self._compile_alternative(error, options, promised, assemble)
            self._artifacts[key] = made
        return self._artifacts[key]

    def _launch_class(self, sizes: Mapping[str, int] | LaunchClass | None) -> LaunchClass:
        if isinstance(sizes, LaunchClass):
            return sizes
        known = self.run_time_sizes
        return known.general if sizes is None else known.of_sizes(sizes)

    def classes(self) -> tuple[LaunchClass, ...]:
        """Return the classes of sizes that the kernel has been compiled for, in order."""
        return tuple(dict.fromkeys(promised for promised, *_ in self._artifacts))

    def _explain_classes(self) -> list[str]:
        """Return what makes classes of sizes, and those that there are, a line for each item."""
        known = self.run_time_sizes
        if not known:
            return []
        lines = [f"sizes      {known}"]
        return [*lines, *(f"class      {promised}" for promised in self.classes())]

    def _compile_alternative(
        self, error: UnfitConfigError, options: Options, promised: LaunchClass, assemble: bool
    ) -> Artifact:
        """Compile the first alternative that the target accepts.

        Args:
            error: why this function itself is not.
            options: the target, and whether the code has checks.
            promised: what the code relies on of sizes that only the launch knows.
            assemble: as in `compile`.

        Raises:
            UnfitConfigError: the given one; no alternative is accepted.
        """
        for other in self.alternatives():
            try:
                artifact = other.compile(
                    options.target.name, check=options.check, sizes=promised, assemble=assemble
                )
            except UnfitConfigError:
                continue
            self.substitute = other
            return artifact
        raise error

    def _found_or_compiled(
        self, options: Options, promised: LaunchClass, assemble: bool
    ) -> Artifact:
        """Return the artifact from the cache, if it is there; compile it otherwise."""
        if not entries.is_on():
            return self.compilation(options, promised).artifact(assemble=assemble)
        key = self._key(options, promised, assemble)
        if key is not None and (found := entries.find_artifact(key)) is not None:
            return found
        compilation = self.compilation(options, promised)
        traced = Source(compilation.source.file, compilation.module_text)
        module_key = key_of(
            traced,
            compilation.options,
            "bundle",
            is_assembled=assemble,
            sources=compilation.sources,
        )
        if module_key is None:
            return compilation.artifact(assemble=assemble)
        artifact = compiled(module_key, lambda: compilation).artifact
        if key is not None:
            entries.link(key, module_key)
        return artifact

    def _key(self, options: Options, promised: LaunchClass, is_assembled: bool) -> KernelKey | None:
        """Return what the artifact depends on; `None` if that is not known before it is traced."""
        try:
            location = self._location
            place = relative_name(location.file), location.line
            flags = self.reference, self.exact_math, self.in_place
            kernel = fingerprint((type(self), self.name, place, flags, promised, self._traced()))
        except (LegoError, NoFingerprint, RecursionError):  # an error is told where it is traced
            return None
        return KernelKey(
            builds=builds(),
            limits=current(),
            target=options.target.name,
            check=options.check,
            strict=self.strict,
            is_assembled=is_assembled,
            kernel=kernel,
            python=sys.version,
        )

    def compilation(
        self,
        options: Options | None = None,
        sizes: Mapping[str, int] | LaunchClass | None = None,
    ) -> Compilation:
        """Return a compilation, which gives each stage: `.text("ptx")`.

        Args:
            options: what to make of it; the kernels' own schedules where they name none.
            sizes: of launches, as for `compile`.
        """
        from lego_mlir.compiler.driver import Compilation

        options = options or Options()
        # Code with checks is for finding mistakes, and may be slow.
        is_strict = options.strict or (self.strict and not options.check)
        options = self._options(replace(options, strict=is_strict))
        module = self._module_of(self._launch_class(sizes))
        return Compilation(self._source, options, module, Sources.of(self._texts))

    @property
    def module(self) -> Any:
        """The MLIR module for launches of any sizes: one host function in the lego dialect.

        Raises:
            LegoError: at the Python line of a mistake.
        """
        return self._module_of(self._launch_class(None))

    def _module_of(self, promised: LaunchClass) -> Any:
        """Return the module for a class of sizes, traced on first use."""
        if promised not in self._modules:
            with shared_context(), mlir_errors(self._source):
                self._modules[promised] = self._trace(promised)
        return self._modules[promised]

    @cached_property
    def _source(self) -> Source:
        file = self._location.file
        return Source(relative_name(file), source_text(file))

    @collected_later()
    def _trace(self, promised: LaunchClass) -> Any:
        """Trace the kernels and return their module.

        Args:
            promised: what the code relies on of sizes that only the launch knows.

        Raises:
            LegoError: at the Python line of a mistake.
        """
        parameters = self.run_time_sizes.promised_types(promised)
        with ir.Location.file(self._source.file, self._location.line, 1):
            module = ir.Module.create()
            if self.reference is not None:
                module.operation.attributes[dialect.REFERENCE] = ir.StringAttr.get(self.reference)
            if self.exact_math:
                module.operation.attributes[dialect.EXACT_MATH] = ir.UnitAttr.get()
            trace = Trace(module, self.name, self._source)
            with trace.active(), ir.InsertionPoint(module.body):
                kinds = [mlir_type(kind) for kind in parameters.values()]
                host = func.FuncOp(self.name, ir.FunctionType.get(kinds, []))
                if self.in_place:
                    host.attributes[dialect.IN_PLACE] = ir.UnitAttr.get()
                entry = host.add_entry_block()
                host.attributes["arg_attrs"] = ir.ArrayAttr.get(
                    [
                        argument_attributes(name, kind, trace, promised)
                        for name, kind in parameters.items()
                    ]
                )
                with ir.InsertionPoint(entry):
                    values = dict(zip(parameters, entry.arguments, strict=True))
                    trace.sizes = host_sizes(parameters, values)
                    trace.bounds = dict(promised.bounds)
                    self._launch_kernels(trace, values, promised)
                    func.ReturnOp([])
            module.operation.verify()
        self._texts = trace.texts
        return module
