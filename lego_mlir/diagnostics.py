"""Errors for the user: what is wrong, where, and what to write instead.

Everything a user can get wrong raises `LegoError`. It renders like a compiler's diagnostic:

    transpose.mlir:7:31: error: the brackets of the layout do not match: '(' is never closed
      #A = #lego.layout<"OrderBy(Row(N, N).TileBy([N/T], [T])">
                                ^
    hint: close it with ')'

This module imports no other module of the package, and every other module may import it.
"""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# What a terminal obeys or what changes the order of what it shows: C0 and C1 controls, line and
# paragraph separators, marks of direction, and halves of surrogate pairs, which cannot be encoded.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, keep: str = "") -> str:
    """Return `text` with everything escaped that a terminal would obey rather than show.

    Names, layouts and lines of source may come from a stranger's file. Whatever of them is printed
    goes through this function.

    Args:
        text: what is to be printed.
        keep: control characters that stay: line feeds, where the text has several lines of its own.
    """
    return _CONTROL.sub(lambda c: c[0] if c[0] in keep else ascii(c[0])[1:-1], text)


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a text: file name, 1-based line and 1-based column (0 when unknown)."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        known = [str(n) for n in (self.line, self.column) if n > 0]
        return ":".join([printable(self.file), *known])


class LegoError(Exception):
    """A mistake in the input, described in one paragraph.

    Args:
        message: what is wrong, naming the offending values; no trailing full stop.
        location: where, if known.
        hint: what to do about it.
        source: the text of `location.file`, so that the line and a caret can be shown.
    """

    def __init__(
        self,
        message: str,
        *,
        location: Location | None = None,
        hint: str | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.hint = hint
        self.source = source

    def at(self, location: Location, source: str | None = None) -> Self:
        """Give the error a location unless it has one; return the error, to be raised."""
        if self.location is None:
            self.location, self.source = location, source
        return self

    def render(self, severity: str = "error") -> str:
        """Return the whole diagnostic: position, severity, message, source line with caret, hint.

        All of it is `printable`.
        """
        head = f"{self.location}: {severity}: " if self.location else f"{severity}: "
        lines = [head + printable(self.message, "\n"), *self._excerpt()]
        if self.hint:
            lines.append("hint: " + printable(self.hint, "\n"))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()

    def _excerpt(self) -> list[str]:
        """Return the source line, and a caret under it if the column is known."""
        if self.source is None or self.location is None or self.location.line < 1:
            return []
        rows = self.source.removesuffix("\n").split("\n")  # as MLIR counts lines
        if self.location.line > len(rows):
            return []
        row = rows[self.location.line - 1].rstrip("\r").expandtabs(1)
        column = self.location.column
        start = max(column - 1, 0)
        before, after = _shortened(printable(row[:start]), printable(row[start:]))
        caret = [" " * (len(before) + 2) + "^"] if 1 <= column <= len(row) + 1 else []
        return ["  " + before + after, *caret]


class UnfitConfigError(LegoError):
    """What a kernel computes is right, and how it does so is not; another config may do."""


class SlowCodeError(UnfitConfigError):
    """The machine code is correct and slow."""


class MissingFeatureError(UnfitConfigError):
    """The target has not what the config uses."""


class LegoWarning(UserWarning):
    """Something that is probably a mistake but does no harm here, described as an error would be.

    Args:
        error: the description.
    """

    def __init__(self, error: LegoError) -> None:
        super().__init__(error)
        self.error = error

    def __str__(self) -> str:
        return self.error.render("warning")


@contextmanager
def shown_warnings(show: Callable[[str], None]) -> Iterator[None]:
    """Pass the text of each `LegoWarning` in the block to a function, and no other warning."""
    before = warnings.showwarning

    def shown(message: Warning | str, *rest: Any, **named: Any) -> None:
        if isinstance(message, LegoWarning):
            show(str(message))
        else:
            before(message, *rest, **named)

    with warnings.catch_warnings():
        warnings.simplefilter("always", LegoWarning)
        warnings.showwarning = shown
        yield


def did_you_mean(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the question for the known name that is most like a misspelt one, or `None`.

    Args:
        name: as the user has written it.
        known: names.
        likeness: of the two at least, from 0 to 1, as `difflib` counts it.
    """
    by_lower_case = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=likeness)
    return f"did you mean {by_lower_case[close[0]]}?" if close else None


def with_guess(name: object, known: Iterable[str], hint: str) -> str:
    """Return a hint that lists names, behind the question for the one that is most like `name`."""
    return f"{did_you_mean(str(name), known, 0.7) or ''} {hint}".lstrip()


def bound_arguments(
    function: Callable[..., Any], signature: inspect.Signature, args: Any, kwargs: Any
) -> inspect.BoundArguments:
    """Return the arguments of a call by their names.

    Raises:
        LegoError: the function does not take them.
    """
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as e:
        known = signature.parameters
        unknown = next((name for name in kwargs if name not in known), "")
        raise LegoError(
            f"{function.__name__}: {e}",
            hint=with_guess(unknown, known, f"its arguments: {', '.join(known)}"),
        ) from None


def checks_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function raise `LegoError` where Python raises TypeError for a call's arguments."""
    signature = inspect.signature(function)

    @wraps(function)
    def checking(*args: P.args, **kwargs: P.kwargs) -> R:
        bound_arguments(function, signature, args, kwargs)
        return function(*args, **kwargs)

    return checking


def _shortened(before: str, after: str) -> tuple[str, str]:
    """Shorten a long line, given as what precedes and what follows the column of the error."""
    if len(before) + len(after) <= _MOST_SHOWN:
        return before, after
    if len(before) > _MOST_SHOWN // 2:
        before = "…" + before[1 - _MOST_SHOWN // 2 :]
    space = _MOST_SHOWN - len(before)
    return before, after if len(after) <= space else after[: space - 1] + "…"


_MOST_SHOWN = 200
"""Characters of a source line that an error shows."""
