"""The text of a tensor's shape, as in `lg.Tensor["f32", "M, N{16}<=1024|8192 : S, 1"]`.

    tensor = dim { "," dim } [ ":" size { "," size } ]
    dim    = size [ "<=" integer { "|" integer } ]

Sizes are those of layouts. Behind the colon stand strides, in elements. A name is known when the
kernel is launched; `N<=1024|8192` promises that it is at most 8192, and says that code for at most
1024 is worth making, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from lego_mlir.algebra.notation.sizes import SizeParser
from lego_mlir.algebra.notation.written import WrittenSize
from lego_mlir.algebra.sizes import as_size
from lego_mlir.index import Int

FILE = "<tensor>"


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a tensor.

    Attributes:
        sizes: one a dimension.
        bounds: for names what they are at most, ascending; the last is promised.
        strides: in elements, one a dimension; `None` where the text has none.
    """

    sizes: tuple[Int, ...]
    bounds: tuple[tuple[str, tuple[int, ...]], ...] = ()
    strides: tuple[Int, ...] | None = None


@lru_cache(maxsize=1 << 10)
def parse_shape(text: str) -> Shape:
    """Return the shape that `text` describes.

    Raises:
        LegoError: with its location in the text (file `<tensor>`, line 1).
    """
    parser = _ShapeParser(text, {}, FILE)
    try:
        return parser.shape()
    except RecursionError:
        raise parser.error("the sizes are nested too deeply to be read", 0) from None


class _ShapeParser(SizeParser):
    """Recursive descent over dimensions and strides; values follow when all has been read."""

    def shape(self) -> Shape:
        self._bounds: dict[str, tuple[int, ...]] = {}
        written = [self._dim()]
        while self.peek() == ",":
            self.take()
            written.append(self._dim())
        steps: list[WrittenSize] | None = None
        if self.peek() == ":":
            at = self.take().at
            steps = [self.size()]
            while self.peek() == ",":
                self.take()
                steps.append(self.size())
            if len(steps) != len(written):
                raise self.error(
                    f"there are {len(written)} sizes and {len(steps)} strides",
                    at,
                    hint="sizes : strides, one stride a size: M, N : S, 1",
                )
        if self.peek():
            raise self.error(
                f"unexpected '{self.peek()}' after the sizes", self.at(), hint="sizes: M, N<=8192"
            )
        sizes = tuple(self._checked(n, "size") for n in written)
        strides = None if steps is None else tuple(self._checked(n, "stride") for n in steps)
        return Shape(sizes, tuple(self._bounds.items()), strides)

    def _dim(self) -> WrittenSize:
        size = self.size()
        if self.peek() != "<=":
            return size
        at = self.take().at
        inner = size.args[0] if size.op == "multiple" else size
        if inner.op != "symbol":
            raise self.error("only a name has a bound", at, hint="N<=8192 bounds the size N")
        numbers = [self.integer()]
        while self.peek() == "|":
            self.take()
            numbers.append(self.integer())
        if numbers[0] < 1 or any(a >= b for a, b in pairwise(numbers)):
            raise self.error(
                "bounds are ascending positive integers", at, hint="N<=1024|8192, smaller first"
            )
        name = inner.args[0]
        if self._bounds.setdefault(name, tuple(numbers)) != tuple(numbers):
            raise self.error(f"the size {name} has two different bounds", at)
        return size

    def _checked(self, written: WrittenSize, what: str) -> Int:
        value = self.built(lambda: self.value(written), written.at)
        if isinstance(value, int) and value < 1:
            raise self.error(f"a {what} is a positive integer, not {value}", written.at)
        return self.built(lambda: as_size(value, what), written.at)
