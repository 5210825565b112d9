"""From `#lego.layout<"...">` attributes to layouts, with errors at their position in the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from lego_mlir.algebra import Layout, parse_layout
from lego_mlir.algebra.verification.verdict import Verdict
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.index import Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.encodings import LAYOUT_PREFIX, SHARED_PREFIX, is_shared, layout_text
from lego_mlir.mlir.lowering.bijectivity import verified
from lego_mlir.mlir.lowering.indices.permutation_functions import read_function

_ATTRIBUTE = re.compile(r'lego\.layout\s*<\s*"((?:[^"\\]|\\.)*)"')
_NAME = re.compile(r"[A-Za-z_]\w*")
_STRING_UNIT = re.compile(r'\\[0-9A-Fa-f]{2}|\\["\\nt]|[^\\]')
_ESCAPES = {"n": b"\n", "t": b"\t", '"': b'"', "\\": b"\\"}


def layout_attribute(layout: Layout) -> Any:
    """Return the attribute of a layout, in the current context."""
    return ir.Attribute.parse(_written(layout))


def shared_attribute(layout: Layout) -> Any:
    """Return the encoding of tiles that lie in shared memory by a layout."""
    return ir.Attribute.parse(SHARED_PREFIX + _written(layout)[len(LAYOUT_PREFIX) :])


def parsed_shared(attribute: Any) -> Layout:
    """Return the layout of an encoding of tiles in shared memory.

    Raises:
        LegoError: it is no layout.
    """
    return _parsed(layout_text(attribute), ())


@lru_cache(maxsize=1024)
def _written(layout: Layout) -> str:
    """Return the attribute's text, which is the same in every context."""
    return f"{LAYOUT_PREFIX}{ir.StringAttr.get(layout.text)}>"


def _position_in(source: str, text: str, column: int) -> int | None:
    """Return where a column of a layout's text stands in a module's text, from 0.

    The module may write the text otherwise than MLIR prints it: with other escapes, or with
    characters that MLIR would escape.
    """
    for attribute in _ATTRIBUTE.finditer(source):
        units = list(_STRING_UNIT.finditer(source, *attribute.span(1)))
        if b"".join(map(_bytes_of, units)).decode(errors="replace") != text:
            continue
        offset = len(text[: column - 1].encode())
        for unit in units:
            if offset <= 0:
                return unit.start()
            offset -= len(_bytes_of(unit))
        return attribute.end(1)
    return None


def _bytes_of(unit: re.Match[str]) -> bytes:
    """Return the bytes that one character or escape of an MLIR string stands for."""
    written = unit[0]
    if len(written) == 1:
        return written.encode(errors="replace")
    return bytes.fromhex(written[1:]) if len(written) == 3 else _ESCAPES[written[1]]


def symbols_of(layout: Layout, attribute: Any) -> tuple[Sym, ...]:
    """Return a layout's symbols in the order in which its attribute's text first names them."""
    if not layout.symbols:
        return ()
    named = list(dict.fromkeys(_NAME.findall(layout_text(attribute))))
    return tuple(sorted(layout.symbols, key=lambda s: named.index(s.name)))


def functions_of(module: Any, source: Source) -> dict[str, Callable[..., Any]]:
    """Return a module's functions by name, to call on ints, arrays and index expressions.

    The layouts say which of them are permutations; only these can be called.
    """
    return {
        ir.StringAttr(op.attributes["sym_name"]).value: read_function(op, source)
        for op in (o.operation for o in module.body.operations)
        if op.name == "func.func"
    }


@lru_cache(maxsize=1024)
def _parsed(text: str, sizes: tuple[tuple[str, int], ...]) -> Layout:
    """Return the layout of a text that names no functions, parsed once a process."""
    return parse_layout(text, dict(sizes))


class Layouts:
    """The layouts of one module: each attribute is read once, for all passes that share this.

    Args:
        source: the module's text, in which errors are shown.
        sizes: the values of symbols.
        functions: the functions that `@name` may stand for.
    """

    def __init__(
        self,
        source: Source,
        sizes: Mapping[str, int],
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self._source = source
        self._sizes = sizes
        self._functions = functions
        self._parsed: dict[Any, Layout] = {}
        self._verdicts: dict[Layout, Verdict] = {}

    @classmethod
    def of_module(cls, module: Any, source: Source) -> Layouts:
        """Return what reads the layouts of a module, by its own sizes and functions.

        The module must outlive it if layouts name functions.
        """
        return cls(source, dialect.sizes_of(module, source), functions_of(module, source))

    def __call__(self, attribute: Any, location: Any) -> Layout:
        """Return the layout of an attribute that is used at an MLIR location.

        Raises:
            LegoError: it is no layout; the caret points into its text if the file contains it.
        """
        if attribute not in self._parsed:
            self._parsed[attribute] = self._parse(attribute, location)
        return self._parsed[attribute]

    def of(self, op: Any) -> Layout:
        """Return the layout that a lego operation is about.

        Raises:
            LegoError: its attribute is no layout.
        """
        return self(dialect.layout_attribute_of(op), op.location)

    def with_sizes(self, encoding: Any, location: Any) -> Any:
        """Return the encoding of a tile in which the module's sizes are numbers.

        Raises:
            LegoError: it is no layout.
        """
        text = layout_text(encoding)
        if self._sizes.keys().isdisjoint(_NAME.findall(text)):
            return encoding
        try:
            layout = self._read(text)
        except LegoError as e:
            raise self._located(e, text, str(encoding), location) from None
        return shared_attribute(layout) if is_shared(encoding) else layout_attribute(layout)

    def _parse(self, attribute: Any, location: Any) -> Layout:
        written = str(attribute)
        if not written.startswith(LAYOUT_PREFIX):
            raise self._source.error(
                f"'{written}' is no layout", location, hint='write #lego.layout<"OrderBy(...)">'
            )
        text = layout_text(attribute)
        try:
            layout = self._read(text)
            if not layout.symbols:  # else each operation's own sizes count
                self.verified(layout, location)
        except LegoError as e:
            raise self._located(e, text, written[len(LAYOUT_PREFIX) : -1], location) from None
        return layout

    def _read(self, text: str) -> Layout:
        if "@" in text:
            return parse_layout(text, self._sizes, self._functions)
        return _parsed(text, tuple(self._sizes.items()))

    def verified(self, layout: Layout, location: Any) -> Verdict:
        """Return whether a layout that is used at an MLIR location is a bijection, or unknown.

        Raises:
            LegoError: it is not a bijection.
        """
        if layout not in self._verdicts:
            self._verdicts[layout] = verified(layout, self._source, location)
        return self._verdicts[layout]

    def _values(self, literal: str) -> str | None:
        """Return a sentence with the values of the sizes that a text names, if it names any."""
        named = dict.fromkeys(_NAME.findall(literal))
        known = [f"{name} = {self._sizes[name]}" for name in named if name in self._sizes]
        return f"the sizes are {', '.join(known)}" if known else None

    def _located(self, error: LegoError, text: str, literal: str, location: Any) -> LegoError:
        """Return the error at the layout's text in the file, or else at the operation."""
        if error.location is None or error.location.file != "<layout>":
            return error
        values = self._values(literal)
        about_sizes = any(
            words in error.message for words in ("not known", " elements", " no value")
        )
        if values and (error.hint is None or about_sizes):
            error.hint = "; ".join(filter(None, (error.hint, values)))
        start = _position_in(self._source.text, text, error.location.column)
        if start is None:
            message = f"{error.message}, in the layout {literal} at column {error.location.column}"
            return self._source.error(message, location, hint=error.hint)
        line = self._source.text.count("\n", 0, start) + 1
        column = start - (self._source.text.rfind("\n", 0, start) + 1) + 1
        return LegoError(
            error.message,
            location=Location(self._source.file, line, column),
            hint=error.hint,
            source=self._source.text,
        )
