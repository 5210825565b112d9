"""Index expressions in Python, NumPy and Triton."""

from __future__ import annotations

from lego_mlir.index import construct
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
from lego_mlir.index.ranges import is_positive
from lego_mlir.printers.names import Names
from lego_mlir.printers.writer import ATOM, LOOSE, PRODUCT, SUM, Text, Writer, all_nonnegative, log2


class PythonWriter(Writer):
    """Writes expressions of Python integers: Python divides as index expressions do."""

    is_64_bit = False

    def declaration(self, name: str, text: str) -> str:
        return f"{name} = {text}"

    def floordiv(self, x: FloorDiv) -> Text:
        return self._division(x.num, "//", x.den)

    def mod(self, x: Mod) -> Text:
        return self._division(x.num, "%", x.den)

    def _division(self, num: Int, operator: str, den: Int) -> Text:
        return f"{self.within(num, ATOM)} {operator} {self.within(den, ATOM)}", PRODUCT

    def bits(self, x: Bits) -> Text:
        return f"{self.within(x.x, ATOM)} & {x.mask}", LOOSE

    def xor(self, x: Xor) -> Text:
        return f"{self.within(x.a, ATOM)} ^ {self.within(x.b, ATOM)}", LOOSE

    def minimum(self, x: Min) -> Text:
        return self._call("min", x.a, x.b)

    def maximum(self, x: Max) -> Text:
        return self._call("max", x.a, x.b)

    def isqrt(self, x: ISqrt) -> Text:
        return self._call("math.isqrt", x.x)

    def less(self, x: Less) -> Text:
        return self.condition(x), LOOSE

    def where(self, x: Where) -> Text:
        a, b = self.within(x.a, SUM), self.within(x.b, SUM)
        return f"({a} if {self.condition(x.condition)} else {b})", ATOM

    def _call(self, function: str, *operands: Int) -> Text:
        return f"{function}({', '.join(map(self.write, operands))})", ATOM


class NumpyWriter(PythonWriter):
    """Writes expressions of NumPy arrays of int64."""

    conjunction = "&"
    is_64_bit = True

    def minimum(self, x: Min) -> Text:
        return self._call("np.minimum", x.a, x.b)

    def maximum(self, x: Max) -> Text:
        return self._call("np.maximum", x.a, x.b)

    def isqrt(self, x: ISqrt) -> Text:
        self.helpers.add("lego_isqrt")
        return self._call("lego_isqrt", x.x)

    def less(self, x: Less) -> Text:
        return f"({self.condition(x)}) * 1", PRODUCT  # NumPy would add truth values as `or`

    def where(self, x: Where) -> Text:
        return (
            f"np.where({self.condition(x.condition)}, {self.write(x.a)}, {self.write(x.b)})",
            ATOM,
        )


class TritonWriter(NumpyWriter):
    """Writes expressions of Triton's integers, which divide as C's do.

    Powers of two are divided by `//` and `%` where nothing is negative: Triton follows the
    contiguity of a tile of offsets through these, but not through a mask.

    Args:
        names: the text of each symbol.
        shared: as `Writer` has it.
        casts: whether symbols are cast to 64 bits.
    """

    def __init__(
        self, names: Names, shared: frozenset[Expr] | None = None, casts: bool = False
    ) -> None:
        super().__init__(names, shared)
        self._casts = casts

    def symbol(self, x: Sym) -> Text:
        text, level = super().symbol(x)
        return (f"tl.cast({text}, tl.int64)", ATOM) if self._casts else (text, level)

    def floordiv(self, x: FloorDiv) -> Text:
        if all_nonnegative((x.num, x.den)):
            return super().floordiv(x)
        shift = log2(x.den)
        if shift is not None:
            return f"{self.within(x.num, ATOM)} >> {shift}", LOOSE
        a, b = self.operand(x.num), self.operand(x.den)
        return f"({a} // {b} - tl.where({self._is_above(x, a, b)}, 1, 0))", ATOM

    def mod(self, x: Mod) -> Text:
        if all_nonnegative((x.num, x.den)):
            return super().mod(x)
        if log2(x.den) is not None:
            assert isinstance(x.den, int)
            return f"{self.within(x.num, ATOM)} & {x.den - 1}", LOOSE
        a, b = self.operand(x.num), self.operand(x.den)
        return f"({a} % {b} + tl.where({self._is_above(x, a, b)}, {b}, 0))", ATOM

    def _is_above(self, x: FloorDiv | Mod, a: str, b: str) -> str:
        """Return the condition that the quotient was rounded up."""
        if is_positive(x.den):
            return f"{a} % {b} < 0"
        return f"({a} % {b} != 0) & (({a} % {b} < 0) != ({b} < 0))"

    def bits(self, x: Bits) -> Text:
        return self(construct.bits(x.x, x.mask))

    def minimum(self, x: Min) -> Text:
        return self._call("tl.minimum", x.a, x.b)

    def maximum(self, x: Max) -> Text:
        return self._call("tl.maximum", x.a, x.b)

    def less(self, x: Less) -> Text:
        return f"tl.where({self.condition(x)}, 1, 0)", ATOM

    def where(self, x: Where) -> Text:
        return (
            f"tl.where({self.condition(x.condition)}, {self.write(x.a)}, {self.write(x.b)})",
            ATOM,
        )


HELPERS = {
    ("numpy", "lego_isqrt"): '''\
def lego_isqrt(n):
    """Return the greatest r with r * r <= n, for 0 <= n < 2**62."""
    r = np.sqrt(np.asarray(n, dtype=np.float64)).astype(np.int64)
    r = r - (r * r > n)
    return r + ((r + 1) * (r + 1) <= n)
''',
    ("triton", "lego_isqrt"): '''\
@triton.jit
def lego_isqrt(n):
    """Return the greatest r with r * r <= n, for 0 <= n < 2**62."""
    wide = tl.cast(n, tl.int64)
    r = tl.cast(tl.sqrt(tl.cast(wide, tl.float64)), tl.int64)
    r = tl.where(r * r > wide, r - 1, r)
    return tl.where((r + 1) * (r + 1) <= wide, r + 1, r)
''',
}
"""The functions that printed text may call, by language."""
