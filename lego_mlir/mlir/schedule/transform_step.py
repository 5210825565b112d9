"""Transform operations in Python: each is a function of one `TransformStep`.

    @transform("skew")
    def skew(step: TransformStep) -> list[list[Any]]:
        for loop in step.payload():
            ...
        return []                 # the payload of each result

`dialects/transform_lego.irdl.mlir` declares the operation. The function is in the module of the
same name in `mlir/transforms`, or in a folder of `mlir/tile_steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import ir, native
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.layouts import Layouts

DIALECT = "transform_lego"
PARAMETER, KEEP = f"{DIALECT}.parameter", f"{DIALECT}.keep"
transform_bindings: Any = native("Transform")
_SUCCESS = transform_bindings.DiagnosedSilenceableFailure.Success


@dataclass(frozen=True, slots=True)
class PassContext:
    """The state that the steps of one run of a schedule share.

    Attributes:
        source: the payload's text, which errors quote.
        script: the schedule's text.
        layouts: reads the payload's layouts.
        target: the target.
        parameters: values that replace the defaults of the schedule's parameters.
        kept: the names and texts that `keep` recorded, in order.
        used_parameters: the parameters that have been evaluated, with their values.
    """

    source: Source
    script: Source
    layouts: Layouts
    target: Target
    parameters: Mapping[str, int]
    kept: list[tuple[str, str]] = field(default_factory=list)
    used_parameters: dict[str, int] = field(default_factory=dict)


_pass_context: ContextVar[PassContext] = ContextVar("pass_context")


@contextmanager
def run_in(pass_context: PassContext) -> Iterator[None]:
    """Run the transform operations inside the `with` statement in `pass_context`."""
    token = _pass_context.set(pass_context)
    try:
        yield
    finally:
        _pass_context.reset(token)


class TransformStep:
    """One transform operation while it runs.

    Attributes:
        op: the transform operation.
        pass_context: the state of the run.
    """

    def __init__(self, op: Any, rewriter: Any, state: Any, pass_context: PassContext) -> None:
        self.op = op.operation
        self.pass_context = pass_context
        self._rewriter = rewriter
        self._state = state

    @property
    def name(self) -> str:
        """The operation's name without the dialect."""
        return str(self.op.name).partition(".")[2]

    def payload(self, operand: int = 0) -> list[Any]:
        """Return the payload operations of the handle that is this operand."""
        return [op.operation for op in self._state.get_payload_ops(self.op.operands[operand])]

    def number(self, name: str, default: int | None = None) -> int:
        """Return an integer of the operation: an attribute, or a parameter among its operands.

        Raises:
            LegoError: there is neither, and no default.
        """
        if name in self.op.attributes:
            return ir.IntegerAttr(self.op.attributes[name]).value  # type: ignore[no-any-return]
        for operand in self.op.operands:
            owner = operand.owner
            if owner.name == PARAMETER and owner.attributes["name"].value == name:
                (value,) = self._state.get_params(operand)
                return ir.IntegerAttr(value).value  # type: ignore[no-any-return]
        if default is not None:
            return default
        raise self.misuse(f"'{name}' is missing", hint=f"{{{name} = 4 : i64}}")

    def layout(self, name: str) -> Layout:
        """Return the layout that is an attribute of the operation.

        Raises:
            LegoError: the attribute is no layout; the error is in the script.
        """
        read = Layouts(self.pass_context.script, {}, {})
        return read(self.op.attributes[name], self.op.location)

    def option(self, name: str, value: int) -> str:
        """Return the text by which the user sets a number: `--param`, or an attribute.

        It is an attribute if the schedule has no parameter of this name, or the operation does not
        take the parameter.
        """
        if name in self.pass_context.used_parameters and name not in self.op.attributes:
            return f"--param {name}={value}"
        return f"{{{name} = {value} : i64}}"

    def erase(self, op: Any) -> None:
        """Erase a payload operation, and remove it from the handles."""
        self._rewriter.erase_op(op)

    def error(self, message: str, at: Any, hint: str | None = None) -> LegoError:
        """Return an error at a payload operation that the step does not support."""
        return self.pass_context.source.error(f"{self.name}: {message}", at.location, hint)

    def misuse(self, message: str, hint: str | None = None) -> LegoError:
        """Return an error at the transform operation: the script or a parameter is wrong."""
        return self.pass_context.script.error(f"{self.name}: {message}", self.op.location, hint)


Action: TypeAlias = Callable[[TransformStep], Sequence[Sequence[Any]]]
"""Rewrites the payload, and returns the payload of each result of the transform operation."""

_ACTIONS: dict[str, Action] = {}


def transform(name: str) -> Callable[[Action], Action]:
    """Register a function as the implementation of the transform operation `name`."""

    def register(action: Action) -> Action:
        assert name not in _ACTIONS
        _ACTIONS[name] = action
        return action

    return register


_PACKAGES = (
    "transforms",
    "tile_steps.rings",
    "tile_steps.iterations",
    "tile_steps.dots",
    "tile_steps.roles",
)
"""The packages of `mlir` that have a module for each step."""


def _action(name: str) -> Action:
    """Return the implementation of `name`; its module is imported when it first runs."""
    if name not in _ACTIONS:
        modules = (f"lego_mlir.mlir.{package}.{name}" for package in _PACKAGES)
        import_module(next(module for module in modules if find_spec(module)))
    return _ACTIONS[name]


def attach(name: str, context: Any) -> None:
    """Attach the implementation of an operation of the loaded dialect in `context`."""
    _implementation(name).attach(f"{DIALECT}.{name}", context=context)
    _Effects.attach(f"{DIALECT}.{name}", context=context)


@cache
def _implementation(name: str) -> Any:
    class Implementation(transform_bindings.TransformOpInterface):  # type: ignore[misc]
        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            found = _action(name)(TransformStep(op, rewriter, state, _pass_context.get()))
            for result, payload in zip(op.operation.results, found, strict=True):
                if isinstance(result.type, transform_bindings.AnyOpType):
                    results.set_ops(result, list(payload))
                else:
                    results.set_params(result, list(payload))
            return _SUCCESS

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            return False

    return Implementation


class _Effects(ir.MemoryEffectsOpInterface):  # type: ignore[misc]
    """Steps read handles and do not consume them: erased operations leave handles by themselves."""

    @staticmethod
    def get_effects(op: Any, effects: Any) -> None:
        if len(op.operation.operands):  # the bindings crash on an empty list
            transform_bindings.only_reads_handle(op.operation.op_operands, effects)
        if len(op.operation.results):
            transform_bindings.produces_handle(op.operation.results, effects)
        transform_bindings.modifies_payload(effects)
