"""Sizes in a layout's text: reading them, and their values once the whole text has been read.

`notation.parser` has the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from lego_mlir.algebra.notation.tokens import Token, Tokens
from lego_mlir.algebra.notation.written import WrittenSize
from lego_mlir.algebra.sizes import ceildiv, size_symbol
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.index import Int, Sym, construct, polynomial, symbols

Made = TypeVar("Made")

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


class SizeParser(Tokens):
    """Reads sizes; their values follow when the whole text has been read.

    Values wait because a fact may be stated anywhere: in `OrderBy(Row(M, K)).TileBy([M/128, ...])`
    the first M is already a multiple of 128.

    Args:
        text: what is read.
        sizes: the values of symbols.
        file: what errors call the text.

    Raises:
        LegoError: the text is not made of tokens.
    """

    def __init__(self, text: str, sizes: Mapping[str, Int], file: str) -> None:
        super().__init__(text, file)
        self.facts: dict[str, list[WrittenSize]] = {}
        self.known: dict[str, Int] = dict(sizes)

    # Reading.
    def integer(self) -> int:
        token = self.take()
        if not token.text.isdigit():
            raise self.error(f"expected an integer, found '{token.text}'", token.at)
        return int(token.text)

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
