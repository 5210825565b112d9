"""Index expressions as text of a programming language.

A `Writer` is an algebra of `index.fold`: it writes each kind of node once. What all languages share
is here: sums and products are factored (`index.factor`), operands stand in parentheses wherever a
reader might have to think about precedence, and what several expressions share becomes a local
variable of the function that is written. The languages are subclasses: `c_writer`, `python_writer`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.index.extraction.factor import Product, Sum, Tree, factor, without_constant
from lego_mlir.index.fold import Algebra
from lego_mlir.index.nodes import Expr, FloorDiv, Int, ISqrt, Less, Mod, Mul, Poly, Sym, Where
from lego_mlir.index.ranges import bounds, is_nonnegative
from lego_mlir.index.structure import children
from lego_mlir.printers.names import Names

LOOSE, SUM, PRODUCT, ATOM = range(4)
"""How tightly the outermost operator of a text binds; LOOSE stands in parentheses in any other."""

Text: TypeAlias = tuple[str, int]
"""A text and how tightly it binds."""

MOST_CHARACTERS = 1 << 16
"""Of one expression, whose shared subexpressions are written wherever they occur."""


class Writer(Algebra[Text]):
    """Writes expressions, and the local variables that they share.

    Args:
        names: the text of each symbol.
        shared: the nodes that become local variables; None: there are none.

    Attributes:
        lines: the declarations of local variables, in order.
        helpers: the helper functions that the texts call.
    """

    def __init__(self, names: Names, shared: frozenset[Expr] | None = None) -> None:
        super().__init__()
        self.names = names
        self.shared = shared
        self.lines: list[str] = []
        self.helpers: set[str] = set()

    def interpret(self, x: Expr) -> Text:
        text, level = super().interpret(x)
        if len(text) > MOST_CHARACTERS:
            raise LegoError(
                f"the expression has more than {MOST_CHARACTERS} characters",
                hint="print the layout, whose functions compute what is shared once",
            )
        if self.shared and x in self.shared:
            return self._declared(text), ATOM
        return text, level

    def write(self, x: Int) -> str:
        """Return the text of a whole expression."""
        return self(x)[0]

    def within(self, x: Int, level: int) -> str:
        """Return the text of an operand, in parentheses where it binds less tightly."""
        return parenthesized(self(x), level)

    def operand(self, x: Int) -> str:
        """Return the text of an operand that is written more than once: a name, if possible."""
        text, level = self(x)
        if self.shared is None or text.isidentifier() or isinstance(x, int) or not is_total(x):
            return parenthesized((text, level), ATOM)
        name = self._declared(text)
        self.folded[x] = name, ATOM
        return name

    def _declared(self, text: str) -> str:
        name = self.names.local()
        self.lines.append(self.declaration(name, text))
        return name

    @abstractmethod
    def declaration(self, name: str, text: str) -> str:
        """Return the line that declares a local variable."""

    # Numbers, symbols, sums and products are alike in all languages.
    def constant(self, x: int) -> Text:
        if self.is_64_bit and not -(1 << 63) < x < 1 << 63:
            raise LegoError(f"the index {x} does not fit 64 bits", hint="use smaller sizes")
        return self.number(x), ATOM if x >= 0 else SUM

    def number(self, x: int) -> str:
        """Return the text of a constant."""
        return str(x)

    def symbol(self, x: Sym) -> Text:
        return self.names.text(x), ATOM

    def poly(self, x: Poly) -> Text:
        base = without_constant(x)
        if base is not None and isinstance(base, Expr):
            return f"{self.within(base, SUM)} {self._signed(x.constant)}", SUM
        return self.tree(factor(x))

    def _signed(self, constant: int) -> str:
        return f"{'+' if constant > 0 else '-'} {self.constant(abs(constant))[0]}"

    def tree(self, x: Tree) -> Text:
        """Return the text of a factored sum."""
        match x:
            case Sum(terms):
                text = ""
                for sign, term in terms:
                    if not text and sign > 0:
                        text = self._factor(term, PRODUCT)
                    elif not text:  # -x // y would be (-x) // y
                        whole = PRODUCT if isinstance(term, Product) else ATOM
                        text = "-" + self._factor(term, whole)
                    else:
                        level = SUM if sign > 0 else PRODUCT
                        text += f" {'+' if sign > 0 else '-'} {self._factor(term, level)}"
                return text, SUM
            case Product(factors):
                return " * ".join(self._factor(f, ATOM) for f in factors), PRODUCT
        return self(x)

    def _factor(self, x: Tree, level: int) -> str:
        return parenthesized(self.tree(x), level)

    def mul(self, x: Mul) -> Text:
        return f"{self.within(x.a, ATOM)} * {self.within(x.b, ATOM)}", PRODUCT

    # Truth.
    def condition(self, x: Int) -> str:
        """Return the text of `x != 0` as a condition; a conjunction is `where(a, b, 0)`."""
        match x:
            case Less(a, b):
                return f"{self.within(a, SUM)} < {self.within(b, SUM)}"
            case Where(c, a, 0):
                return f"({self.condition(c)}) {self.conjunction} ({self.condition(a)})"
            case Where(c, 0, 1):
                return f"{self.within(c, SUM)} == 0"
        return f"{self.within(x, SUM)} != 0"

    conjunction = "and"
    is_64_bit = True
    """Whether numbers have 64 bits at most."""


def parenthesized(text: Text, level: int) -> str:
    """Return a text, in parentheses where it binds less tightly than `level`."""
    return f"({text[0]})" if text[1] < level else text[0]


class _Uses(Algebra[None]):
    """Counts how often each node is an operand, or a result, in the text of a writer."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[Expr] = Counter()

    def __call__(self, x: Int) -> None:
        if isinstance(x, Expr):
            self.counts[x] += 1
        super().__call__(x)

    def constant(self, x: int) -> None:
        pass

    def poly(self, x: Poly) -> None:
        base = without_constant(x)
        self._tree(factor(x) if base is None else base)

    def _tree(self, x: Tree) -> None:
        match x:
            case Sum(terms):
                for _, term in terms:
                    self._tree(term)
            case Product(factors):
                for f in factors:
                    self._tree(f)
            case _:
                self(x)

    def other(self, x: Expr) -> None:
        for child in children(x):
            self(child)


def shared_nodes(results: Iterable[Int]) -> frozenset[Expr]:
    """Return which nodes of several expressions become local variables: those used twice.

    A node that need not have a value, `a // 0`, is written where it is used: a choice may be all
    that keeps it from being computed.
    """
    uses = _Uses()
    for x in results:
        uses(x)
    return frozenset(
        x for x, n in uses.counts.items() if n > 1 and not isinstance(x, Sym) and is_total(x)
    )


@lru_cache(maxsize=1 << 14)
def is_total(x: Int) -> bool:
    """Return whether every division and root of `x` is proven to have a value."""
    match x:
        case int():
            return True
        case FloorDiv(_, den) | Mod(_, den):
            lo, hi = bounds(den)
            if not ((lo is not None and lo > 0) or (hi is not None and hi < 0)):
                return False
        case ISqrt(a):
            if not is_nonnegative(a):
                return False
    return all(map(is_total, children(x)))


def log2(x: Int) -> int | None:
    """Return the k of a constant `2**k`; None for everything else."""
    is_power = isinstance(x, int) and x > 0 and x & (x - 1) == 0
    return x.bit_length() - 1 if isinstance(x, int) and is_power else None


def all_nonnegative(xs: Iterable[Int]) -> bool:
    """Return whether the intervals of all show that they are not negative."""
    return all(map(is_nonnegative, xs))
