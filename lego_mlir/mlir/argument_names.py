"""The names of a host function's arguments: messages say them, and saved outputs have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lego_mlir.artifact.names import WANTED, is_name
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source

NAME = "lego.name"
"""The attribute of an argument that names it; without one it has the name in the text."""


def argument_attributes(func: Any) -> list[Mapping[str, Any]]:
    """Return the attributes of each of a function's arguments."""
    if "arg_attrs" not in func.attributes:
        return [{}] * len(func.regions[0].blocks[0].arguments)
    return [{e.name: e.attr for e in attrs} for attrs in func.attributes["arg_attrs"]]


def argument_names(func: Any, source: Source) -> list[str]:
    """Return the names of a function's arguments: those of `lego.name`, else those in the text.

    Raises:
        LegoError: one is none, or two arguments have the same one.
    """
    names: list[str] = []
    attributes = argument_attributes(func)
    function = func.attributes["sym_name"].value
    in_text = _names_in_text(function, source, len(attributes))
    for number, (attrs, name) in enumerate(zip(attributes, in_text, strict=True)):
        if NAME in attrs:
            given = attrs[NAME]
            name = ir.StringAttr(given).value if isinstance(given, ir.StringAttr) else ""
        wrong = "is no name" if not is_name(name) else "is taken" if name in names else None
        if wrong is not None:
            said = attrs.get(NAME, f"%{name}")
            raise source.error(
                f"argument {number} of @{function} is called {said}, which {wrong}",
                func.location,
                hint=f'{{{NAME} = "x"}} names it; a name has {WANTED}',
            )
        names.append(name)
    return names


def _names_in_text(function: str, source: Source, count: int) -> list[str]:
    """The names in the text, which MLIR does not keep; `arg0`, `arg1`, … where there is none."""
    header = re.search(rf"func\.func\s+(?:\w+\s+)?@{re.escape(function)}\s*\(", source.text)
    names: list[str] = []
    if header:
        text = _up_to_closing(source.text[header.end() :])
        names = re.findall(r"%([\w$.-]+)\s*:", text)
    return names if len(names) == count else [f"arg{n}" for n in range(count)]


def _up_to_closing(text: str) -> str:
    """The text before the parenthesis that closes one opened before it."""
    depth = 1
    for m in re.finditer(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[()]', text):
        depth += {"(": 1, ")": -1}.get(m[0], 0)
        if depth == 0:
            return text[: m.start()]
    return text
