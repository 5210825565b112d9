"""Index expressions in C and CUDA C++.

C rounds quotients towards zero and gives a remainder the sign of the dividend. So a division is
written as a shift or a mask where the divisor is a power of two (an arithmetic shift rounds down),
as an unsigned division where nothing is negative, and else with a correction.
"""

from __future__ import annotations

import re

from lego_mlir.index.nodes import (
    Bits,
    Expr,
    FloorDiv,
    Int,
    ISqrt,
    Less,
    Max,
    Min,
    Mod,
    Sym,
    Where,
    Xor,
)
from lego_mlir.index.ranges import bounds, is_positive
from lego_mlir.printers.names import Names
from lego_mlir.printers.writer import ATOM, LOOSE, SUM, Text, Writer, all_nonnegative, log2

_BUILT_IN = re.compile(r"(threadIdx|blockIdx|blockDim|gridDim)\.[xyz]")
_MOST_INT = (1 << 31) - 1


class CWriter(Writer):
    """Writes expressions of signed variables.

    Args:
        names: the text of each symbol.
        shared: as `Writer` has it.
        is_wide: whether the arithmetic is of 64 bits.
        casts: whether symbols are cast to 64 bits, as they are not declared by the same text.
    """

    conjunction = "&&"

    def __init__(
        self,
        names: Names,
        shared: frozenset[Expr] | None = None,
        is_wide: bool = False,
        casts: bool = False,
    ) -> None:
        super().__init__(names, shared)
        self.kind = "long long" if is_wide else "int"
        self._is_wide = is_wide
        self._casts = casts

    def declaration(self, name: str, text: str) -> str:
        return f"const {self.kind} {name} = {text};"

    def number(self, x: int) -> str:
        return str(x) if abs(x) <= _MOST_INT else f"{x}LL"

    def symbol(self, x: Sym) -> Text:
        if self.names.language == "cuda" and _BUILT_IN.fullmatch(x.name):
            return f"({self.kind}){x.name}", ATOM  # they are unsigned
        text, level = super().symbol(x)
        return (f"(long long){text}", ATOM) if self._casts else (text, level)

    def floordiv(self, x: FloorDiv) -> Text:
        shift = log2(x.den)
        if shift is not None:
            return f"{self.within(x.num, ATOM)} >> {shift}", LOOSE
        if all_nonnegative((x.num, x.den)):
            return self._unsigned(x.num, "/", x.den)
        a, b = self.operand(x.num), self.operand(x.den)
        if is_positive(x.den):
            return f"({a} / {b} - ({a} % {b} < 0))", ATOM
        return f"({a} / {b} - ({a} % {b} != 0 && ({a} < 0) != ({b} < 0)))", ATOM

    def mod(self, x: Mod) -> Text:
        if log2(x.den) is not None:
            assert isinstance(x.den, int)
            return f"{self.within(x.num, ATOM)} & {self.number(x.den - 1)}", LOOSE
        if all_nonnegative((x.num, x.den)):
            return self._unsigned(x.num, "%", x.den)
        a, b = self.operand(x.num), self.operand(x.den)
        if is_positive(x.den):
            return f"({a} % {b} + ({a} % {b} < 0 ? {b} : 0))", ATOM
        return f"(({a} % {b} + {b}) % {b})", ATOM

    def _unsigned(self, num: Int, operator: str, den: Int) -> Text:
        kind = f"unsigned {self.kind}" if self._is_wide else "unsigned"
        if isinstance(den, int):
            divisor = f"{den}{'ull' if self._is_wide else 'u'}"
        else:
            divisor = f"({kind}){self.within(den, ATOM)}"
        text = f"({self.kind})(({kind}){self.within(num, ATOM)} {operator} {divisor})"
        return text, ATOM

    def bits(self, x: Bits) -> Text:
        return f"{self.within(x.x, ATOM)} & {self.number(x.mask)}", LOOSE

    def xor(self, x: Xor) -> Text:
        return f"{self.within(x.a, ATOM)} ^ {self.within(x.b, ATOM)}", LOOSE

    def minimum(self, x: Min) -> Text:
        return self._pick("<", x)

    def maximum(self, x: Max) -> Text:
        return self._pick(">", x)

    def _pick(self, operator: str, x: Min | Max) -> Text:
        a, b = self.operand(x.a), self.operand(x.b)
        return f"({a} {operator} {b} ? {a} : {b})", ATOM

    def less(self, x: Less) -> Text:
        return f"{self.within(x.a, SUM)} < {self.within(x.b, SUM)}", LOOSE

    def where(self, x: Where) -> Text:
        if x.b == 0 and bounds(x.a) == (0, 1):
            return self.condition(x), LOOSE
        condition = self.condition(x.condition)
        return f"({condition} ? {self.within(x.a, SUM)} : {self.within(x.b, SUM)})", ATOM

    def isqrt(self, x: ISqrt) -> Text:
        self.helpers.add("lego_isqrt")
        call = f"lego_isqrt({self.write(x.x)})"
        return (call if self._is_wide else f"(int){call}"), ATOM


HELPERS = {
    "lego_isqrt": """\
// Return the greatest r with r * r <= n, for 0 <= n < 2^62.
{qualifiers} long long lego_isqrt(long long n) {{
  long long r = (long long)sqrt((double)n);
  r -= r * r > n;
  return r + ((r + 1) * (r + 1) <= n);
}}
""",
}
"""The functions that printed text may call; those of several layouts are one."""
