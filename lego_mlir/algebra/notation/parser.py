"""The text of a layout, as in `#lego.layout<"...">`: a parser, never an evaluator.

    layout  = call { "." call }
    call    = ("OrderBy" | "TileOrderBy") "(" block { "," block } ")"
            | ("GroupBy" | "TileBy") "(" sizes { "," sizes } [ "," skew ] ")"
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
Printing a layout gives the text that parses to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeAlias, TypeVar, cast

from lego_mlir.algebra.blocks import Block, Col, GenP, RegP, Row
from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.notation.tokens import Token, Tokens
from lego_mlir.algebra.parts import Order, OrderKind, Skew, View, ViewKind, make_order, make_view
from lego_mlir.algebra.permutations import NAMES, Permutation, from_functions, inverse, named
from lego_mlir.algebra.sizes import as_size, ceildiv, size_symbol
from lego_mlir.algebra.written import WrittenSize
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.index import Int, Sym, construct, polynomial, symbols
from lego_mlir.index.work import measured
from lego_mlir.limits import Limits

Made = TypeVar("Made")
Functions: TypeAlias = Mapping[str, Callable[..., Any]]

_VIEWS = ("GroupBy", "TileBy")
_ORDERS = ("OrderBy", "TileOrderBy")
_BLOCKS = ("RegP", "GenP", "Row", "Col")
_OPERATIONS: dict[str, Callable[[Int, Int], Int]] = {
    "+": construct.add,
    "-": construct.sub,
    "*": construct.mul,
    "//": construct.floordiv,
    "%": construct.mod,
    "min": construct.minimum,
    "max": construct.maximum,
    "ceildiv": ceildiv,
}


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


def parse_strides(text: str) -> tuple[Any, Any]:
    """Parse shape and strides such as "((8,4),2):((4,1),32)" to nested tuples of sizes.

    Raises:
        LegoError: with its location in the text (file `<strides>`, line 1).
    """
    parser = _Parser(text, {}, {}, "<strides>")
    try:
        return parser.strides()
    except RecursionError:
        raise parser.error("the modes are nested too deeply to be read", 0) from None


class _Parser(Tokens):
    """Recursive descent over the tokens; builds when the whole text has been read.

    Building waits because a fact may be stated anywhere: in `OrderBy(Row(M, K)).TileBy([M/128,
    ...])` the first M is already a multiple of 128.
    """

    def __init__(
        self, text: str, sizes: Mapping[str, Int], functions: Functions, file: str = "<layout>"
    ) -> None:
        super().__init__(text, file)
        self.functions = functions
        self.facts: dict[str, list[WrittenSize]] = {}
        self.known: dict[str, Int] = dict(sizes)

    # The grammar.
    def layout(self) -> Layout:
        calls = [self.call()]
        while self.peek() == ".":
            self.take()
            calls.append(self.call())
        if self.peek():
            raise self.error(f"unexpected '{self.peek()}' after the layout", self.at())
        orders: list[Order] = []
        view: View | None = None
        for name, at, parts in calls:
            if view is not None:
                raise self.error(f"{name} after {view.kind}: the view comes last", at)
            if name in _VIEWS:
                skew = parts.pop() if isinstance(parts[-1], Skew) else None
                tiles = tuple([self.value(n) for n in sizes] for sizes in parts)
                view = self.built(partial(make_view, cast(ViewKind, name), tiles, skew), at)
            else:
                blocks = tuple(self.built(make, where) for where, make in parts)
                orders.append(self.built(partial(make_order, cast(OrderKind, name), blocks), at))
        return self.built(partial(Layout, tuple(orders), view), calls[-1][1])

    def call(self) -> tuple[str, int, list[Any]]:
        token = self.take()
        if token.text not in _ORDERS + _VIEWS:
            what = f"'{token.text}'" if token.text else "the end"
            raise self.error(
                f"expected {', '.join(_ORDERS + _VIEWS[:1])} or {_VIEWS[1]}, found {what}",
                token.at,
                hint="a bare block stands inside one: OrderBy(Row(M, N))"
                if token.text in _BLOCKS
                else self.did_you_mean(token.text, _ORDERS + _VIEWS),
            )
        self.expect("(", f"after {token.text}")
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
                hint=self.did_you_mean(token.text, _BLOCKS),
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
            guess = self.did_you_mean(token.text, NAMES)
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
                hint=self.did_you_mean(token.text, self.functions)
                or "a permutation's functions are func.func's over index in the same module",
            )
        return token.text, self.functions[token.text]

    def integer(self) -> int:
        token = self.take()
        if not token.text.isdigit():
            raise self.error(f"expected an integer, found '{token.text}'", token.at)
        return int(token.text)

    def strides(self) -> tuple[Any, Any]:
        shape = self.modes()
        self.expect(":", "between the shape and its strides")
        stride = self.modes()
        if self.peek():
            raise self.error(f"unexpected '{self.peek()}' after the strides", self.at())
        return self.values(shape), self.values(stride)

    def modes(self) -> Any:
        """Return a size, or modes in brackets: those after which no operator goes on."""
        depth = 0
        for k, token in enumerate(self.tokens[self.next :] if self.peek() == "(" else ()):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                after = self.tokens[self.next + k + 1 :][:1]
                if not after or after[0].text in ",):":
                    self.take()
                    return tuple(self.listed(self.modes, ")"))
                break
        return self.size()

    def values(self, modes: Any) -> Any:
        if isinstance(modes, tuple):
            return tuple(self.values(m) for m in modes)
        return self.value(modes)

    def size_list(self) -> list[WrittenSize]:
        self.expect("[", "to open a list of sizes")
        return self.listed(self.size, "]")

    def size(self) -> WrittenSize:
        return self._binary(("+", "-"), self.term)

    def term(self) -> WrittenSize:
        return self._binary(("*", "/", "//", "%"), self.factor)

    def _binary(self, ops: tuple[str, ...], operand: Callable[[], WrittenSize]) -> WrittenSize:
        left = operand()
        while self.peek() in ops:
            op = self.take()
            left = WrittenSize(op.text, (left, operand()), op.at)
            self.check("size_nesting", left.nesting, "{} operators are nested in a size", op.at)
            if op.text == "/":
                self.note_fact(left)
        return left

    def factor(self) -> WrittenSize:
        token = self.take()
        if token.text.isdigit():
            return WrittenSize("integer", (int(token.text),), token.at)
        if token.text == "(":
            inner = self.size()
            self.expect(")", "to close the size")
            return inner
        if token.text == "-":
            return self.negative(token)
        if token.text in ("min", "max", "ceildiv"):
            self.expect("(", f"after {token.text}")
            a = self.size()
            self.expect(",", f"between the operands of {token.text}")
            b = self.size()
            self.expect(")", f"at the end of {token.text}")
            return WrittenSize(token.text, (a, b), token.at)
        if token.text.isidentifier():
            return self.multiple(WrittenSize("symbol", (token.text,), token.at))
        what = f"'{token.text}'" if token.text else "the end"
        raise self.error(f"expected a size, found {what}", token.at)

    def negative(self, sign: Token) -> WrittenSize:
        """Read what follows a minus sign, negated; further signs cancel in pairs."""
        is_negated = True
        while self.peek() == "-":
            self.take()
            is_negated = not is_negated
        operand = self.factor()
        zero = WrittenSize("integer", (0,), sign.at)
        return WrittenSize("-", (zero, operand), sign.at) if is_negated else operand

    def multiple(self, symbol: WrittenSize) -> WrittenSize:
        """Return a symbol, which may carry what divides it."""
        if self.peek() != "{":
            return symbol
        self.take()
        divisors = self.listed(self.size, "}")
        divisions = tuple(WrittenSize("/", (symbol, d), d.at) for d in divisors)
        for division in divisions:
            self.note_fact(division)
        return WrittenSize("multiple", (symbol, *divisions), symbol.at)

    # Values of sizes.
    def note_fact(self, division: WrittenSize) -> None:
        """Record what a division states: `M/a/b`, that a*b divides M."""
        dividend, divisor = division.args
        while dividend.op == "/":
            divisor = WrittenSize("*", (dividend.args[1], divisor), division.at)
            dividend = dividend.args[0]
        if dividend.op == "symbol":
            self.facts.setdefault(dividend.args[0], []).append(divisor)

    def symbol(self, name: str, at: int) -> Int:
        if name not in self.known:
            facts = self.facts.pop(name, [])
            self.known[name] = Sym(name, 1)  # a fact that names its own symbol sees this one
            self.known[name] = size_symbol(name, [self.value(d) for d in facts])
        return self.known[name]

    def value(self, x: WrittenSize) -> Int:
        match x.op:
            case "integer":
                return x.args[0]  # type: ignore[no-any-return]
            case "symbol":
                return self.symbol(x.args[0], x.at)
            case "multiple":
                symbol, *_ = [self.value(arg) for arg in x.args]  # the divisions have to be exact
                return symbol
            case _:
                a, b = (self.value(arg) for arg in x.args)
                return self.built(lambda: self.operation(x, a, b), x.at)

    def operation(self, x: WrittenSize, a: Int, b: Int) -> Int:
        if x.op in _OPERATIONS:
            return _OPERATIONS[x.op](a, b)
        quotient = construct.floordiv(a, b)
        rest = construct.sub(a, construct.mul(quotient, b))
        if rest == 0 or polynomial.divides(b, a):
            return quotient
        if isinstance(a, int) and isinstance(b, int):
            raise self.error(f"{b} does not divide {a}", x.at)
        if missing := sorted({s.name for s in symbols(b)}):
            plural = len(missing) > 1
            raise self.error(
                f"the size{'s' * plural} {', '.join(missing)} in '{a!r} / {b!r}' "
                f"{'have' if plural else 'has'} no value",
                x.at,
                hint=f"give it: --set {missing[0]}=..., or lego.sizes = {{{missing[0]} = ...}} in "
                "the module; '/' is exact, '//' rounds down",
            )
        raise self.error(
            f"{b!r} is not known to divide {a!r}",
            x.at,
            hint="'/' is exact, '//' rounds down; where the sizes have values (--set, "
            "lego.sizes), the division is checked",
        )

    def built(self, make: Callable[[], Made], at: int) -> Made:
        """Return what `make` makes, and give any error its position in the text."""
        try:
            return make()
        except LegoError as e:
            raise e.at(Location(self.file, 1, at + 1), self.text) from None
