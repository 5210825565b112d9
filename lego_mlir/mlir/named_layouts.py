"""The layouts of a module by the names that its text has for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, parse, shared_context
from lego_mlir.mlir.layouts import Layouts, functions_of
from lego_mlir.mlir.modules import operations_in

_ALIAS = re.compile(r"#([A-Za-z_][\w$.-]*)\s*=\s*(#lego\.layout\s*<\s*\"(?:[^\"\\]|\\.)*\"\s*>)")


@dataclass(frozen=True, slots=True)
class NamedLayouts:
    """The layouts of a module.

    Attributes:
        source: its text.
        layouts: by name.
        module: which must live as long as they do, since their permutations may be its functions.
    """

    source: Source
    layouts: dict[str, Layout]
    module: Any

    def chosen(self, names: Sequence[str]) -> list[Layout]:
        """Return the layouts that have these names, with or without `#`; all if there are none.

        Raises:
            LegoError: the module has no such layout.
        """
        for name in names:
            if name.removeprefix("#") not in self.layouts:
                raise LegoError(
                    f"the module has no layout '{name}'",
                    location=Location(self.source.file),
                    hint=f"its layouts are: {', '.join(self.layouts)}",
                )
        return [self.layouts[name.removeprefix("#")] for name in names or self.layouts]


def named_layouts(source: Source, sizes: Mapping[str, int]) -> NamedLayouts:
    """Return the layouts that the operations of a module use, in the order of the text.

    Args:
        source: the module's text.
        sizes: values that replace those of the module's `lego.sizes`.

    Returns:
        A layout for each alias that is used, and for each text without an alias, which is its name.

    Raises:
        LegoError: the module does not parse, has no layouts or no such size, or one of them is no
            layout.
    """
    context = shared_context()
    module = parse(source, context)
    with context:
        known = dialect.sizes_of(module, source)
        for name in sizes:
            if name not in known:
                raise LegoError(
                    f"the module has no size '{name}' to set",
                    location=Location(source.file),
                    hint=f"its lego.sizes are: {', '.join(known) or 'none'}",
                )
        layouts = Layouts(source, {**known, **sizes}, functions_of(module, source))
        used: dict[Any, Any] = {}
        for op in (module.operation, *operations_in(module.operation)):
            for name in op.attributes:
                for attribute in _layouts_in(op.attributes[name]):
                    used.setdefault(attribute, op.location)
        found: dict[str, Layout] = {}
        for alias in _ALIAS.finditer(source.text):
            attribute = ir.Attribute.parse(alias[2])
            if attribute in used:
                found[alias[1]] = layouts(attribute, used[attribute])
        named = set(found.values())
        for attribute, location in used.items():
            layout = layouts(attribute, location)
            if layout not in named:
                found[str(layout)] = layout
    if not found:
        raise LegoError("the module has no layouts to draw", location=Location(source.file))
    return NamedLayouts(source, found, module)


def _layouts_in(attribute: Any) -> Iterator[Any]:
    """Return the layouts in an attribute, also inside of arrays and dictionaries."""
    match attribute:
        case ir.ArrayAttr():
            for inner in attribute:
                yield from _layouts_in(inner)
        case ir.DictAttr():
            for entry in attribute:
                yield from _layouts_in(entry.attr)
        case _ if str(attribute).startswith("#lego.layout<"):
            yield attribute
