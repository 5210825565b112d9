"""Limits on the work and the memory that an input may ask for.

A few bytes of input can name a grid of two thousand million CTAs. Each such number has a limit
here, far above what real kernels need, and an error that says how to raise it. The limits that hold
are those of the context: `Limits(ctas=10).applied()`, or `DEFAULT`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields

from lego_mlir.diagnostics import LegoError

_MOST_DIGITS = 18
"""The largest value of a limit, so that it fits 64 bits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an input may ask for at most; every value is an integer of at least 1."""

    # Bundles and arrays.
    bundle_bytes: int = 1 << 28  # of a bundle's file, and of all that it holds once inflated
    bundle_launches: int = 1 << 12  # kernel launches of one bundle
    tensor_bytes: int = 1 << 34  # of all tensors of a run, which copies or makes them

    # Layouts and index expressions.
    layout_tokens: int = 8192  # names, numbers and signs in the text of a layout
    layout_nesting: int = 64  # brackets inside one another in it
    layout_digits: int = 30  # of a number in it
    size_nesting: int = 100  # operators inside one another in a size; M/a/b has two
    index_steps: int = 200_000  # terms combined to derive, or prove, one layout's expressions

    # Modules.
    module_nesting: int = 256  # brackets, and operators in a row, inside one another
    module_tokens: int = 1 << 22  # brackets and operators, with aliases written out

    # Tile IR.
    interpreter_steps: int = 1 << 22  # operations that its interpreter executes, of all CTAs

    # Templates of source text.
    template_steps: int = 100_000  # calls and turns of loops
    template_bytes: int = 1 << 24  # of the text that a template makes

    # PTX that the simulator reads.
    ptx_bytes: int = 1 << 24  # of the text
    ptx_nesting: int = 64  # braces inside one another
    registers: int = 1 << 18  # declared in a module

    # A launch in the simulator.
    ctas: int = 1 << 20  # in the grid
    threads: int = 1 << 28  # in all CTAs together
    memory_bytes: int = 1 << 31  # registers, shared and local memory of CTAs that run together
    stack_bytes: int = 1 << 16  # that calls take of the local memory of one thread
    wave_instructions: int = 2_000_000  # executed by one wave of CTAs, by all its warps at once
    instructions: int = 1 << 36  # executed by all threads; each execution counts for 1024 at least

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise LegoError(
                    f"the limit {field.name} is an integer of at least 1, not {value!r}"
                )

    @staticmethod
    def parse(texts: Iterable[str]) -> Limits:
        """Return the default limits, but those that `texts` name as `NAME=VALUE`.

        Raises:
            LegoError: a text has another form, or there is no such limit.
        """
        found: dict[str, int] = {}
        for text in texts:
            name, _, value = text.partition("=")
            if name not in _NAMES:
                raise LegoError(f"there is no limit '{name}'", hint=f"limits: {', '.join(_NAMES)}")
            if not (value.isascii() and value.isdecimal()) or len(value) > _MOST_DIGITS:
                raise LegoError(f"'{text}' is not {name}=VALUE with an integer of at least 1")
            found[name] = int(value)
        return Limits(**found)

    def values(self) -> Iterator[tuple[str, int]]:
        """Return the name and the value of each limit."""
        return ((name, getattr(self, name)) for name in _NAMES)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply these limits to what is read, compiled and run in the block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_NAMES = tuple(field.name for field in fields(Limits))

DEFAULT = Limits()

_current: ContextVar[Limits] = ContextVar("limits", default=DEFAULT)


def current() -> Limits:
    """Return the limits that hold here."""
    return _current.get()


def limit_error(name: str, what: str) -> LegoError:
    """Return the error of an input that exceeds a limit.

    Args:
        name: the field of `Limits`.
        what: what exceeds it, as a clause: "the grid has 2147483647 CTAs".
    """
    value = getattr(current(), name)
    return LegoError(f"{what}; the limit {name} is {value}", hint=how_to_raise(name))


def how_to_raise(name: str) -> str:
    """Return the hint that says how to raise a limit."""
    return f"raise it by legoc --limit {name}=VALUE, in Python by limits=Limits({name}=VALUE)"


def check_limit(name: str, value: int, what: str) -> None:
    """Raise the `limit_error` if `value` exceeds the limit; `what` may hold `{}` for the value."""
    if value > getattr(current(), name):
        raise limit_error(name, what.format(value))
