"""How a transform operation is written in Python: a function of one `TransformStep`.

    @transform("stage_in_shared")
    def stage_in_shared(step: Step) -> list[list[Any]]:
        for load in step.payload():
            ...
        return [staged]           # the payload of each result

The operation itself is declared in `dialects/transform_lego.irdl.mlir`; the function stands in the
module of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import ir, native
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.layouts import Layouts

DIALECT = "transform_lego"
dialect: Any = native("Transform")
_SUCCESS = dialect.DiagnosedSilenceableFailure.Success


@dataclass(frozen=True, slots=True)
class PassContext:
    """What the steps of one run of a schedule share.

    Attributes:
        source: the payload's text, in which errors are shown.
        script: the schedule's text.
        layouts: reads the payload's layouts.
        target: the target.
        parameters: values that replace the defaults of the schedule's parameters.
        kept: the texts that `keep` made, by name, in order.
        used_parameters: the parameters that the schedule has, with the values they took.
    """

    source: Source
    script: Source
    layouts: Layouts
    target: Target
    parameters: Mapping[str, int]
    kept: list[tuple[str, str]] = field(default_factory=list)
    used_parameters: dict[str, int] = field(default_factory=dict)


_pass_context: ContextVar[PassContext] = ContextVar("setting")


@contextmanager
def run_in(pass_context: PassContext) -> Iterator[None]:
    """Let the transform operations that run inside work in this setting."""
    token = _pass_context.set(pass_context)
    try:
        yield
    finally:
        _pass_context.reset(token)


class TransformStep:
    """One transform operation at work.

    Attributes:
        op: the transform operation.
        pass_context: that of the run.
    """

    def __init__(self, op: Any, rewriter: Any, state: Any, pass_context: PassContext) -> None:
        self.op = op.operation
        self.pass_context = pass_context
        self._rewriter = rewriter
        self._state = state

    @property
    def name(self) -> str:
        """The operation's, without the dialect."""
        return str(self.op.name).partition(".")[2]

    def payload(self, operand: int = 0) -> list[Any]:
        """The payload operations of a handle."""
        return [op.operation for op in self._state.get_payload_ops(self.op.operands[operand])]

    def number(self, name: str, default: int | None = None) -> int:
        """An integer that the operation says: by attribute, or by a parameter as its last operand.

        Raises:
            LegoError: it says none, and there is no default.
        """
        if name in self.op.attributes:
            return ir.IntegerAttr(self.op.attributes[name]).value  # type: ignore[no-any-return]
        for operand in self.op.operands:
            owner = operand.owner
            if owner.name == f"{DIALECT}.parameter" and owner.attributes["name"].value == name:
                (value,) = self._state.get_params(operand)
                return ir.IntegerAttr(value).value  # type: ignore[no-any-return]
        if default is not None:
            return default
        raise self.misuse(f"'{name}' is missing", hint=f"{{{name} = 4 : i64}}")

    def erase(self, op: Any) -> None:
        """Erase a payload operation, and let handles know."""
        self._rewriter.erase_op(op)

    def error(self, message: str, at: Any, hint: str | None = None) -> LegoError:
        """An error at a payload operation: the schedule does not fit it."""
        return self.pass_context.source.error(f"{self.name}: {message}", at.location, hint)

    def misuse(self, message: str, hint: str | None = None) -> LegoError:
        """An error at the transform operation: the script is wrong."""
        return self.pass_context.script.error(f"{self.name}: {message}", self.op.location, hint)


Action: TypeAlias = Callable[[TransformStep], Sequence[Sequence[Any]]]
"""Works on the payload; what each result of the transform operation stands for."""

_ACTIONS: dict[str, Action] = {}


def transform(name: str) -> Callable[[Action], Action]:
    """Make a function the meaning of the transform operation of this name."""

    def register(action: Action) -> Action:
        assert name not in _ACTIONS
        _ACTIONS[name] = action
        return action

    return register


def _action(name: str) -> Action:
    """What the transform operation of this name does: its module is loaded when it first runs."""
    if name not in _ACTIONS:
        import_module(f"lego_mlir.mlir.transforms.{name}")
    return _ACTIONS[name]


def attach(name: str, context: Any) -> None:
    """Give an operation of the loaded dialect its meaning, in a context."""
    _implementation(name).attach(f"{DIALECT}.{name}", context=context)
    _Effects.attach(f"{DIALECT}.{name}", context=context)


@cache
def _implementation(name: str) -> Any:
    class Implementation(dialect.TransformOpInterface):  # type: ignore[misc]
        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            found = _action(name)(TransformStep(op, rewriter, state, _pass_context.get()))
            for result, payload in zip(op.operation.results, found, strict=True):
                if isinstance(result.type, dialect.AnyOpType):
                    results.set_ops(result, list(payload))
                else:
                    results.set_params(result, list(payload))
            return _SUCCESS

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            return False

    return Implementation


class _Effects(ir.MemoryEffectsOpInterface):  # type: ignore[misc]
    """Handles are read, not consumed: what a step erases leaves them by itself."""

    @staticmethod
    def get_effects(op: Any, effects: Any) -> None:
        if len(op.operation.operands):  # the bindings crash on an empty list
            dialect.only_reads_handle(op.operation.op_operands, effects)
        if len(op.operation.results):
            dialect.produces_handle(op.operation.results, effects)
        dialect.modifies_payload(effects)
