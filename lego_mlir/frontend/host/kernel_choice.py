"""One function of several host functions: each launch takes the one that is made for its sizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from lego_mlir import runtime
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import Location
from lego_mlir.frontend.host.argument_types import Parameter
from lego_mlir.frontend.host.host_function import HostFunction
from lego_mlir.frontend.host.launch_classes import LaunchClass
from lego_mlir.frontend.trace import Trace, user_location

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation
    from lego_mlir.compiler.options import Options


class KernelChoice(HostFunction):
    """Host functions with the same arguments, made for different values of some sizes.

    Each is made, and compiled, when a launch first needs it.

    Args:
        name: of the function.
        parameters: the types of the arguments by name, in order.
        sizes: the names of the sizes that decide.
        choose: returns the number of the function for values of these sizes, in order.
        functions: make the functions; the last one takes any value.
        reference: the known reference that `run` compares with, if any.
        explanation: returns a description of the choice.
    """

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, Parameter],
        sizes: Sequence[str],
        choose: Callable[..., int],
        functions: Sequence[Callable[[], HostFunction]],
        reference: str | None,
        explanation: Callable[[], str],
    ) -> None:
        self._given = dict(parameters)
        self._sizes, self._choose = tuple(sizes), choose
        self._makers = tuple(functions)
        self._functions_made: dict[int, HostFunction] = {}
        self._explanation = explanation
        self._place = user_location()
        super().__init__(name, reference, strict=True, exact_math=False, in_place=False)

    def __repr__(self) -> str:
        by = ", ".join(self._sizes)
        return f"<choice {self.name} by {by}, of {len(self._makers)} functions>"

    def parameters(self) -> Mapping[str, Parameter]:
        return self._given

    def function_for(self, sizes: Mapping[str, int] | None) -> HostFunction:
        """Return the function that launches of these sizes take; without sizes that for any."""
        values = [(sizes or {}).get(name) for name in self._sizes]
        number = len(self._makers) - 1 if None in values else self._choose(*values)
        if number not in self._functions_made:
            self._functions_made[number] = self._makers[number]()
        return self._functions_made[number]

    def around(
        self,
        parameters: Mapping[str, Parameter],
        change: Callable[[HostFunction], HostFunction],
    ) -> KernelChoice:
        """Return the choice of functions that are made of this one's.

        Args:
            parameters: the types of their arguments by name, in order.
            change: returns a function that is made of another one.
        """

        def made(maker: Callable[[], HostFunction]) -> HostFunction:
            return change(maker())

        makers = [partial(made, maker) for maker in self._makers]
        return KernelChoice(
            self.name, parameters, self._sizes, self._choose, makers, None, self._explanation
        )

    def explain(self) -> str:
        """Describe which function launches take, and those that were made."""
        made = [self._functions_made[n].explain() for n in sorted(self._functions_made)]
        return "\n".join([repr(self), self._explanation(), *made])

    def classes(self) -> tuple[LaunchClass, ...]:
        made = self._functions_made
        return tuple(c for number in sorted(made) for c in made[number].classes())

    def compile(
        self,
        target: str = DEFAULT_TARGET,
        *,
        check: bool = False,
        sizes: Mapping[str, int] | LaunchClass | None = None,
        assemble: bool = True,
    ) -> Artifact:
        """Compile the function for launches of some sizes; see `HostFunction.compile`."""
        function, promised = self._chosen(sizes)
        return function.compile(target, check=check, sizes=promised, assemble=assemble)

    def compilation(
        self,
        options: Options | None = None,
        sizes: Mapping[str, int] | LaunchClass | None = None,
    ) -> Compilation:
        function, promised = self._chosen(sizes)
        return function.compilation(options, promised)

    def _chosen(
        self, sizes: Mapping[str, int] | LaunchClass | None
    ) -> tuple[HostFunction, LaunchClass | None]:
        """Return the function for launches of some sizes, and what its code may rely on.

        A function is made for multiples of the sizes that decide: they make no further classes.
        """
        if isinstance(sizes, LaunchClass) or sizes is None:
            return self.function_for(None), sizes
        function = self.function_for(sizes)
        promised = function.run_time_sizes.of_sizes(sizes)
        further = tuple(name for name in promised.multiples if name not in self._sizes)
        return function, replace(promised, multiples=further)

    @cached_property
    def _repeated(self) -> runtime.RepeatedLaunches:
        known = self.run_time_sizes
        key_of, choose = known.key, self._choose
        readers = [known.reader(name) for name in self._sizes]

        def key(arrays: Sequence[Any]) -> Hashable:
            found = key_of(arrays)
            return None if found is None else (choose(*[r(arrays) for r in readers]), *found)

        return runtime.RepeatedLaunches(key)

    # What a host function is made of: that for any sizes.
    @property
    def _location(self) -> Location:
        return self._place

    def _launch_kernels(
        self, trace: Trace, arguments: Mapping[str, Any], promised: LaunchClass
    ) -> None:
        self.function_for(None)._launch_kernels(trace, arguments, promised)

    def _traced(self) -> Any:
        return self.function_for(None)._traced()
