"""The types of a kernel's arguments, as its parameters are annotated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.blocks import flatten
from lego_mlir.algebra.notation.shapes import Shape, parse_shape
from lego_mlir.algebra.partial import coordinates
from lego_mlir.algebra.sizes import size_symbol
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.dtypes import check_dtype
from lego_mlir.index import Expr, Int, Sym, construct, substitute, symbols
from lego_mlir.index.integers import python_integers


@dataclass(frozen=True, slots=True)
class TensorType:
    """A parameter that is a tensor: `Tensor[dtype, layout]`, or `Tensor[dtype, layout, alignment]`.

    Attributes:
        dtype: MLIR's name of the element type.
        layout: from the index that the kernel uses to the offset in memory, or the sizes of a
            row-major tensor: `(8, 256)`, or the text `"8, 256"`. Names in it are sizes that the
            launch knows: `"M, N{16}<=8192"`, or with strides `"M, N : S, 1"`.
        alignment: of the buffer's address, in bytes, a power of two: what the kernel relies on to
            access vectors at once, and every launch on a GPU is checked for.
        strides: of a tensor that need not be row-major, in elements; names in it are known at the
            launch. `None` where the layout says where elements lie.
        bounds: for names what they are at most, ascending: each is a size that tiles of a whole
            dimension may have, and the last one is promised.
    """

    dtype: str
    layout: Layout
    alignment: int = 1
    strides: tuple[Int, ...] | None = None
    bounds: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        given: object = self.layout
        if not isinstance(given, Layout):
            shape = _shape(given, self.dtype)
            object.__setattr__(self, "layout", OrderBy(Row(*shape.sizes)))
            object.__setattr__(self, "bounds", shape.bounds)
            if shape.strides != row_major(shape.sizes):
                object.__setattr__(self, "strides", shape.strides)
        elif given.window is not None:
            raise LegoError(
                f"lg.Tensor[\"{self.dtype}\", layout]: '{given}' is a window, and a tensor is all "
                "of its elements",
                hint="declare the tensor itself; x.window(...) looks at it in the kernel",
            )
        n = self.alignment
        if type(n) is not int or n < 1 or n & (n - 1):
            raise LegoError(f"the alignment of a tensor is a power of two in bytes, not {n!r}")

    @property
    def dims(self) -> tuple[Int, ...]:
        """The sizes of the dimensions that the kernel indexes."""
        return self.layout.dims

    @property
    def shape(self) -> tuple[Int, ...]:
        """The shape of the buffer: the tensor's if it is row-major, else one dimension."""
        return self.layout.tensor_shape if _is_row_major(self.layout) else (self.layout.size,)

    @property
    def array_shape(self) -> tuple[Int, ...]:
        """The shape of an array that is passed: the tensor's, whose strides are the layout's."""
        return self.layout.tensor_shape

    @property
    def symbols(self) -> tuple[Sym, ...]:
        """The sizes and strides that only the launch knows, in order."""
        steps = [n for n in self.strides or () if isinstance(n, Sym)]
        return tuple(dict.fromkeys((*self.layout.symbols, *steps)))

    def with_divisors(self, divisors: Mapping[str, Iterable[Int]]) -> TensorType:
        """Return the type whose sizes and strides are multiples of what is given by name."""
        known = {s: size_symbol(s.name, divisors.get(s.name, ())) for s in self.symbols}
        if all(s is known[s] for s in known):
            return self
        strides = self.strides and tuple(substitute(n, known) for n in self.strides)
        return replace(self, layout=self.layout.substitute(known), strides=strides)


@dataclass(frozen=True, slots=True)
class EmptyType:
    """A parameter that is an array without elements: the kernel has no use for it.

    Attributes:
        dtype: MLIR's name of the element type.
        shape: with a 0.
    """

    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        check_dtype(self.dtype)


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A parameter that is one number: `Scalar[dtype]`; of "index", one that layouts take."""

    dtype: str

    def __post_init__(self) -> None:
        if self.dtype != "index":
            check_dtype(self.dtype)


Parameter: TypeAlias = TensorType | EmptyType | ScalarType


class Tensor:
    """Annotates a kernel's parameter: `a: lg.Tensor["f32", layout]`, or `["f32", (8, 256)]`."""

    def __init__(self, *_: Any) -> None:
        raise LegoError(
            "lg.Tensor is called", hint='brackets make a type of it: lg.Tensor["f32", layout]'
        )

    def __class_getitem__(cls, item: Any) -> TensorType:
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            raise LegoError('a tensor parameter is annotated as lg.Tensor["f32", layout]')
        return TensorType(*python_integers(item))


class Scalar:
    """Annotates a kernel's parameter: `alpha: lg.Scalar["f32"]`."""

    def __init__(self, *_: Any) -> None:
        raise LegoError("lg.Scalar is called", hint='brackets make a type: lg.Scalar["f32"]')

    def __class_getitem__(cls, dtype: Any) -> ScalarType:
        return ScalarType(dtype)


def _shape(given: Any, dtype: str) -> Shape:
    """Return the shape of a tensor parameter that sizes describe.

    Raises:
        LegoError: they are none.
    """
    if isinstance(given, str):
        try:
            shape = parse_shape(given)
            _check_strides(shape)
            return shape
        except LegoError as e:
            message = f'lg.Tensor["{dtype}", "{given}"]: {e.message}'
            raise LegoError(message, location=e.location, hint=e.hint, source=e.source) from None
    if isinstance(given, tuple | list) and given:
        if all(isinstance(n, Expr) or (type(n) is int and n > 0) for n in given):
            return Shape(tuple(given))
        raise LegoError(
            f'lg.Tensor["{dtype}", {given!r}]: the sizes of a tensor are positive integers',
            hint='sizes that the launch knows are names in a text: lg.Tensor["f32", "M, 256"]',
        )
    raise LegoError(
        f'lg.Tensor["{dtype}", layout]: {given!r} is no layout',
        hint="a layout, such as OrderBy(Row(8, 256)), or the sizes of a row-major tensor, (8, 256)",
    )


def _check_strides(shape: Shape) -> None:
    """Raise LegoError unless strides are row-major, or numbers and names of their own."""
    if shape.strides is None or shape.strides == row_major(shape.sizes):
        return
    named = frozenset[Sym]().union(*map(symbols, shape.sizes))
    for n in shape.strides:
        if not isinstance(n, int | Sym) or n in named:
            raise LegoError(
                f"the stride {n!r} depends on a size",
                hint="a stride is a number, or a name of its own, which the launch knows: "
                "M, N : S, 1",
            )


def row_major(sizes: Sequence[Int]) -> tuple[Int, ...]:
    """Return the strides of a row-major tensor, in elements."""
    steps: list[Int] = [1]
    for n in reversed(sizes[1:]):
        steps.insert(0, construct.mul(steps[0], n))
    return tuple(steps)


@lru_cache(maxsize=1 << 10)
def _is_row_major(layout: Layout) -> bool:
    """Return whether the tensor lies in memory row-major, whatever tiles it is viewed by."""
    index = [Sym(f"index {k}", 0, construct.sub(n, 1)) for k, n in enumerate(layout.dims)]
    tiled = layout.view is not None and layout.view.kind == "TileBy"
    at = coordinates(layout.view, tuple(index)) if layout.view and tiled else tuple(index)
    row_major = flatten(layout.tensor_shape, at)
    offset = layout.apply(*index)
    return row_major is offset or (isinstance(offset, int) and row_major == offset)
