"""Values of declared types from plain data: every field is there, has its type and obeys its rules.

The schema is the dataclasses themselves. A field's type says what stands there; rules in
`Annotated[int, integer(1, 1024)]` say what else holds. `read` takes what JSON gives, dicts and
lists, and it takes instances of the dataclasses too, to check them.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from lego_mlir.diagnostics import LegoError, printable


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value obeys besides its type.

    Attributes:
        expected: completes "x is 3, not …": "an integer from 1 to 2".
        holds: whether it does.
    """

    expected: str
    holds: Callable[[Any], bool]


def integer(low: int, high: int) -> Rule:
    """Return the rule that an integer is at least `low` and at most `high`."""
    return Rule(f"an integer from {low} to {high}", lambda n: low <= n <= high)


def power_of_two(high: int) -> Rule:
    """Return the rule that an integer is a power of two, at most `high`."""
    return Rule(f"a power of two from 1 to {high}", lambda n: 1 <= n <= high and not n & n - 1)


def matching(pattern: str, expected: str) -> Rule:
    """Return the rule that a text matches a regular expression as a whole."""
    compiled = re.compile(pattern)
    return Rule(expected, lambda text: compiled.fullmatch(text) is not None)


def line(most: int) -> Rule:
    """Return the rule that a text is one printable line of at most `most` characters."""
    return Rule(
        f"one line of at most {most} printable characters",
        lambda text: 0 < len(text) <= most and printable(text) == text,
    )


def count(low: int, high: int) -> Rule:
    """Return the rule that a list has at least `low` and at most `high` items."""
    return Rule(f"a list of {low} to {high} items", lambda items: low <= len(items) <= high)


def read(hint: Any, value: Any, where: str = "") -> Any:
    """Return `value` as a value of the type `hint`.

    Args:
        hint: a dataclass, `bool`, `int`, `float`, `str`, `bytes`, `None`, a `Literal`, a tuple, a
            union of these, or `Annotated` with rules.
        value: plain data, or an instance of the type to be checked.
        where: the value's path in the data, `launches[0].grid`, for errors.

    Raises:
        LegoError: the value, or something in it, has another type or breaks a rule.
    """
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *rules = get_args(hint)
        found = read(inner, value, where)
        for rule in rules:
            if not rule.holds(found):
                raise _wrong(value, where, rule.expected)
        return found
    if origin is tuple:
        return _tuple(get_args(hint), value, where)
    if origin is Union or origin is UnionType:
        return read(_member(get_args(hint), value, where), value, where)
    if origin is Literal:
        if not isinstance(value, str) or value not in get_args(hint):
            raise _wrong(value, where, f"one of {', '.join(map(str, get_args(hint)))}")
        return value
    if is_dataclass(hint):
        return _instance(hint, value, where)
    if type(value) is not hint:
        raise _wrong(value, where, _NAMES[hint])
    return value


_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    bytes: "bytes",
    NoneType: "null",
}


def _tuple(items: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(value, where, "a list")
    if items[-1] is Ellipsis:
        items = items[:1] * len(value)
    if len(items) != len(value):
        raise _wrong(value, where, f"a list of {len(items)} items")
    return tuple(
        read(hint, item, f"{where}[{i}]")
        for i, (hint, item) in enumerate(zip(items, value, strict=True))
    )


def _member(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    """Return the member of a union that a value is to be read as: the one of its form."""
    for hint in hints:
        bare: Any = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if get_origin(bare) is tuple:
            fits = isinstance(value, list | tuple)
        elif is_dataclass(bare):
            is_form = isinstance(value, dict) and value.keys() == {f.name for f in fields(bare)}
            fits = is_form or type(value) is bare
        else:
            fits = type(value) is bare
        if fits:
            return hint
    raise _wrong(value, where, "of a known form")


def _instance(kind: Any, value: Any, where: str) -> Any:
    hints = _hints(kind)
    if type(value) is kind:
        value = {name: getattr(value, name) for name in hints}
    if not isinstance(value, dict):
        raise _wrong(value, where, "an object")
    inside = f"{where}." if where else ""
    for name in hints:
        if name not in value:
            raise LegoError(f"{inside}{name} is missing")
    for name in value:
        if name not in hints:
            raise LegoError(f"{inside}{_shown(name)} is no known field")
    return kind(**{name: read(hint, value[name], inside + name) for name, hint in hints.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields, with their rules.

    A field that does not count in comparisons is no data: it is neither read nor checked.
    """
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind) if field.compare}


def plain(value: Any) -> Any:
    """Return what `read` makes a value of: dataclasses as dicts, tuples as lists."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.compare}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def _wrong(value: Any, where: str, expected: str) -> LegoError:
    return LegoError(f"{where or 'it'} is {_shown(value)}, not {expected}")


def _shown(value: Any) -> str:
    """Return a value in a few words, whatever it is."""
    if isinstance(value, dict):
        return f"an object of {reprlib.repr(list(value))}"
    return printable(reprlib.repr(value))
