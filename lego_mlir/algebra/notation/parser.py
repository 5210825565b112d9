"""The text of a layout, as in `#lego.layout<"...">`: a parser, never an evaluator.

    layout  = call { "." call }
    call    = ("OrderBy" | "TileOrderBy") "(" block { "," block } ")"
            | ("GroupBy" | "TileBy") "(" sizes { "," sizes } [ "," skew ] ")"
            | "Window" "(" sizes [ "," map ] [ "," boundary ] ")"
    map     = "(" name { "," name } ")" "->" "(" size { "," size } ")"
    boundary = word | "[" word { "," word } "]"
    word    = "inside" | "zero" | "clamp" | "wrap"
    skew    = "skew" "(" integer "," "[" integer { "," integer } "]" "," integer ")"
    block   = "RegP" "(" sizes "," sizes ")"
            | ("Row" | "Col") "(" (size { "," size } | sizes) ")"
            | "GenP" "(" sizes "," permutation ")"
    permutation = name [ "(" integer { "," integer } ")" ]
            | "@" name "," "@" name
            | "inverse" "(" permutation ")"
    sizes   = "[" size { "," size } "]"
    size    = term { ("+" | "-") term }
    term    = factor { ("*" | "/" | "//" | "%") factor }
    factor  = integer | name [ "{" size { "," size } "}" ] | "(" size ")"
            | ("min" | "max" | "ceildiv") "(" size "," size ")"

Names that are not integers are symbols. `M/128` says that 128 divides M, and the layout relies on
it; `M{128, BM}` is M, and says that 128 and BM divide it. `M//128` rounds down and says nothing;
`ceildiv(M, 128)` rounds up: so many tiles cover M.
In the map of a window, the names before the arrow are the indices; algebra.windows says more.
Printing a layout gives a text that parses to it, and equal layouts have the same text: a RegP in
the order of Row or Col is printed as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeAlias, cast

from lego_mlir.algebra.blocks import Block, Col, GenP, RegP, Row
from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.notation.windows import WindowParser
from lego_mlir.algebra.notation.written import WrittenSize
from lego_mlir.algebra.parts import Order, OrderKind, Skew, View, ViewKind, make_order, make_view
from lego_mlir.algebra.permutations import NAMES, Permutation, from_functions, inverse, named
from lego_mlir.algebra.sizes import as_size
from lego_mlir.algebra.windows.window import TensorWindow
from lego_mlir.diagnostics import LegoError, Location, did_you_mean
from lego_mlir.index import Int
from lego_mlir.index.work import measured
from lego_mlir.limits import Limits

Functions: TypeAlias = Mapping[str, Callable[..., Any]]

_VIEWS = ("GroupBy", "TileBy")
_WINDOW = "Window"
_ORDERS = ("OrderBy", "TileOrderBy")
_CALLS = (*_ORDERS, *_VIEWS, _WINDOW)
_BLOCKS = ("RegP", "GenP", "Row", "Col")


def parse_layout(
    text: str,
    sizes: Mapping[str, int] | None = None,
    functions: Functions | None = None,
    limits: Limits | None = None,
) -> Layout:
    """Return the layout that `text` describes.

    Args:
        text: in the notation above.
        sizes: values of symbols; the others stay symbolic.
        functions: what `@name` stands for in a GenP.
        limits: on the text's length and nesting and on the work to read it; those of the context
            if None.

    Raises:
        LegoError: with its location in the text (file `<layout>`, line 1).
    """
    if limits is not None:
        with limits.applied():
            return parse_layout(text, sizes, functions)
    given: object = text
    if not isinstance(given, str):
        raise LegoError(
            f"a layout's text is needed, not {given!r}",
            hint='parse_layout("OrderBy(Row(M, N))")',
        )
    known = {name: as_size(n, name) for name, n in (sizes or {}).items()}
    try:
        if "@" in text:  # what a function's name stands for is not in the text
            with measured():
                return _Parser(text, known, functions or {}).layout()
        named = tuple(sorted((name, n) for name, n in known.items() if name in text))
        return _layout_of(text, named)
    except RecursionError:
        raise LegoError(
            "the sizes of the layout are nested too deeply to be read",
            location=Location("<layout>", 1, 1),
            source=text,
        ) from None


@lru_cache(maxsize=1 << 12)
def _layout_of(text: str, sizes: tuple[tuple[str, Int], ...]) -> Layout:
    """Return the layout of a text without functions: it depends on nothing else."""
    with measured():
        return _Parser(text, dict(sizes), {}).layout()


class _Parser(WindowParser):
    """Recursive descent over the tokens; builds when the whole text has been read."""

    def __init__(self, text: str, sizes: Mapping[str, Int], functions: Functions) -> None:
        super().__init__(text, sizes, "<layout>")
        self.functions = functions

    def layout(self) -> Layout:
        calls = [self.call()]
        while self.peek() == ".":
            self.take()
            calls.append(self.call())
        if self.peek():
            raise self.error(f"unexpected '{self.peek()}' after the layout", self.at())
        orders: list[Order] = []
        view: View | None = None
        window: TensorWindow | None = None
        for name, at, parts in calls:
            if name == _WINDOW:
                if not orders and view is None and window is None:
                    raise self.error(
                        "Window comes first: there is no tensor to look at",
                        at,
                        hint="begin with the tensor's layout: OrderBy(Row(M, N)).Window(...)",
                    )
                base = self.built(partial(Layout, tuple(orders), view, window), at)
                window, orders, view = self.window(parts, base, at), [], None
                continue
            if view is not None:
                raise self.error(f"{name} after {view.kind}: the view comes last", at)
            if window is not None and name in _ORDERS:
                raise self.error(
                    f"{name} after Window: a window is viewed, but not reordered",
                    at,
                    hint="reorderings come before the window, as its tensor lies in memory",
                )
            if name in _VIEWS:
                skew = parts.pop() if isinstance(parts[-1], Skew) else None
                tiles = tuple([self.value(n) for n in sizes] for sizes in parts)
                view = self.built(partial(make_view, cast(ViewKind, name), tiles, skew), at)
            else:
                blocks = tuple(self.built(make, where) for where, make in parts)
                orders.append(self.built(partial(make_order, cast(OrderKind, name), blocks), at))
        return self.built(partial(Layout, tuple(orders), view, window), calls[-1][1])

    def call(self) -> tuple[str, int, Any]:
        token = self.take()
        if token.text not in _CALLS:
            what = f"'{token.text}'" if token.text else "the end"
            raise self.error(
                f"expected {', '.join(_CALLS[:-1])} or {_CALLS[-1]}, found {what}",
                token.at,
                hint="a bare block stands inside one: OrderBy(Row(M, N))"
                if token.text in _BLOCKS
                else did_you_mean(token.text, _CALLS),
            )
        self.expect("(", f"after {token.text}")
        if token.text == _WINDOW:
            return token.text, token.at, self.written_window()
        item = self.level if token.text in _VIEWS else self.block
        return token.text, token.at, self.listed(item, ")")

    def level(self) -> list[WrittenSize] | Skew:
        if self.peek() != "skew":
            return self.size_list()
        self.take()
        self.expect("(", "after skew")
        dim = self.integer()
        self.expect(",", "after the dimension that is skewed")
        self.expect("[", "to open the list of factors")
        factors = self.listed(self.integer, "]")
        self.expect(",", "after the factors")
        skew = Skew(dim, tuple(factors), self.integer())
        self.expect(")", "at the end of skew")
        if self.peek() == ",":
            raise self.error("the skew comes last", self.at())
        return skew

    def block(self) -> tuple[int, Callable[[], Block]]:
        token = self.take()
        if token.text not in _BLOCKS:
            what = f"'{token.text}'" if token.text else "the end"
            raise self.error(
                f"expected a block (RegP, GenP, Row, Col), found {what}",
                token.at,
                hint=did_you_mean(token.text, _BLOCKS),
            )
        self.expect("(", f"after {token.text}")
        if token.text in ("Row", "Col"):
            sizes = self.size_list() if self.peek() == "[" else None
            if sizes is None:
                sizes = self.listed(self.size, ")")
            else:
                self.expect(")", f"at the end of {token.text}")
            kind = Row if token.text == "Row" else Col
            return token.at, lambda: kind(*(self.value(n) for n in sizes))
        sizes = self.size_list()
        self.expect(",", "after the sizes")
        if token.text == "RegP":
            perm = self.size_list()
            self.expect(")", "at the end of RegP")
            return token.at, lambda: RegP(
                [self.value(n) for n in sizes], [cast("Any", self.value(p)) for p in perm]
            )
        permutation = self.permutation()
        self.expect(")", "at the end of GenP")
        for n, d in zip(sizes, permutation.divisors, strict=False):  # ranks may still differ
            if d > 1:
                self.note_fact(WrittenSize("/", (n, WrittenSize("integer", (d,), n.at)), n.at))
        return token.at, lambda: GenP([self.value(n) for n in sizes], permutation)

    def permutation(self) -> Permutation:
        if self.peek() == "@":
            f = self.function()
            self.expect(",", "and the inverse after the function")
            f_inv = self.function()
            return from_functions(f[1], f_inv[1], f"@{f[0]}, @{f_inv[0]}")
        token = self.take()
        if token.text == "inverse":
            self.expect("(", "after inverse")
            undone = self.permutation()
            self.expect(")", "at the end of inverse")
            return inverse(undone)
        parameters: list[int] = []
        if self.peek() == "(":
            self.take()
            parameters = self.listed(self.integer, ")")
        found: Permutation | None = self.built(
            lambda: named(token.text, tuple(parameters)), token.at
        )
        if found is None:
            known = f"known: {', '.join(NAMES)}; your own: @f, @f_inv"
            guess = did_you_mean(token.text, NAMES)
            raise self.error(
                f"there is no permutation '{token.text}'",
                token.at,
                hint=f"{guess} {known}" if guess else known,
            )
        return found

    def function(self) -> tuple[str, Callable[..., Any]]:
        self.expect("@", "before the inverse function's name")
        token = self.take()
        if token.text not in self.functions:
            raise self.error(
                f"there is no function @{token.text}",
                token.at,
                hint=did_you_mean(token.text, self.functions)
                or "a permutation's functions are func.func's over index in the same module",
            )
        return token.text, self.functions[token.text]
