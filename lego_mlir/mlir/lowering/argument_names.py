"""The names of a host function's arguments, for messages and for saved outputs."""

from __future__ import annotations

import re
from typing import Any

from lego_mlir.artifact.names import NAME_RULE, is_name
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source


def argument_names(func: Any, source: Source) -> list[str]:
    """Return the names of a function's arguments.

    They are those of the attribute `lego.name`, else those in the text, which MLIR does not keep,
    else `arg0`, `arg1`, and so on.

    Raises:
        LegoError: one cannot be a name, or two arguments have the same one.
    """
    count = len(func.regions[0].blocks[0].arguments)
    names = _written_names(func, source)
    if len(names) != count:
        names = [f"arg{n}" for n in range(count)]
    if "arg_attrs" in func.attributes:
        for n, attributes in enumerate(ir.ArrayAttr(func.attributes["arg_attrs"])):
            for entry in ir.DictAttr(attributes):
                if entry.name == dialect.ARGUMENT_NAME:
                    is_text = isinstance(entry.attr, ir.StringAttr)
                    names[n] = ir.StringAttr(entry.attr).value if is_text else str(entry.attr)
    for n, name in enumerate(names):
        wrong = "cannot be one" if not is_name(name) else "is taken" if name in names[:n] else ""
        if wrong:
            raise source.error(
                f"argument {n} of @{_name(func)} has the name '{name}', which {wrong}",
                func.location,
                hint=f'{{{dialect.ARGUMENT_NAME} = "x"}} names an argument; a name has {NAME_RULE}',
            )
    return names


def _name(func: Any) -> str:
    return ir.StringAttr(func.attributes["sym_name"]).value  # type: ignore[no-any-return]


def _written_names(func: Any, source: Source) -> list[str]:
    """Return the names in the text; as many as are found there."""
    header = re.search(rf"func\.func\s+(?:\w+\s+)?@{re.escape(_name(func))}\s*\(", source.text)
    if header is None:
        return []
    return re.findall(r"%([\w$.-]+)\s*:", _up_to_closing(source.text[header.end() :]))


def _up_to_closing(text: str) -> str:
    """Return the text before the parenthesis that closes one opened before it."""
    depth = 1
    for m in re.finditer(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[()]', text):
        depth += {"(": 1, ")": -1}.get(m[0], 0)
        if depth == 0:
            return text[: m.start()]
    return text
