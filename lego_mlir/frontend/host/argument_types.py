"""The types of a kernel's arguments, as its parameters are annotated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.blocks import flatten
from lego_mlir.algebra.partial import coordinates
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.dtypes import check_dtype
from lego_mlir.index import Int, Sym


@dataclass(frozen=True, slots=True)
class TensorType:
    """A parameter that is a tensor: `Tensor[dtype, layout]`, or `Tensor[dtype, layout, alignment]`.

    Attributes:
        dtype: MLIR's name of the element type.
        layout: from the index that the kernel uses to the offset in memory, or the sizes of a
            row-major tensor: `(8, 256)`, or the text `"8, 256"`.
        alignment: of the buffer's address, in bytes, a power of two: what the kernel relies on to
            access vectors at once, and every launch on a GPU is checked for.
    """

    dtype: str
    layout: Layout
    alignment: int = 1

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        object.__setattr__(self, "layout", _layout(self.layout, self.dtype))
        n = self.alignment
        if type(n) is not int or n < 1 or n & (n - 1):
            raise LegoError(f"the alignment of a tensor is a power of two in bytes, not {n!r}")

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes of the dimensions that the kernel indexes."""
        return tuple(size_of(n, self.layout) for n in self.layout.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the buffer: the tensor's if it is row-major, else one dimension."""
        shape = tuple(size_of(n, self.layout) for n in self.layout.tensor_shape)
        if _is_row_major(self.layout):
            return shape
        return (size_of(self.layout.size, self.layout),)


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


class Tensor:
    """Annotates a kernel's parameter: `a: lg.Tensor["f32", layout]`, or `["f32", (8, 256)]`."""

    def __class_getitem__(cls, item: Any) -> TensorType:
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            raise LegoError('a tensor parameter is annotated as lg.Tensor["f32", layout]')
        return TensorType(*item)


class Scalar:
    """Annotates a kernel's parameter: `alpha: lg.Scalar["f32"]`."""

    def __class_getitem__(cls, dtype: Any) -> ScalarType:
        return ScalarType(dtype)


def _layout(given: Any, dtype: str) -> Layout:
    """Return the layout of a tensor parameter; sizes are those of a row-major tensor.

    Raises:
        LegoError: it is neither a layout nor sizes.
    """
    if isinstance(given, Layout):
        return given
    shown = given
    if isinstance(given, str):
        words = [word.strip() for word in given.split(",")]
        names = [word for word in words if word.isidentifier()]
        if names:
            raise LegoError(
                f'lg.Tensor["{dtype}", "{given}"]: the size {names[0]} has no value',
                hint='sizes are numbers: lg.Tensor["f32", "8, 256"]',
            )
        given = tuple(int(word) if word.isdecimal() else word for word in words)
    if isinstance(given, tuple | list) and given:
        if all(type(n) is int and n > 0 for n in given):
            return OrderBy(Row(*given))
        raise LegoError(
            f'lg.Tensor["{dtype}", {shown!r}]: the sizes of a tensor are positive integers'
        )
    raise LegoError(
        f'lg.Tensor["{dtype}", layout]: {given!r} is no layout',
        hint="a layout, such as OrderBy(Row(8, 256)), or the sizes of a row-major tensor, (8, 256)",
    )


def size_of(n: Int, layout: Layout) -> int:
    """Return a size of a layout as a number.

    Raises:
        LegoError: it is symbolic.
    """
    if not isinstance(n, int):
        raise LegoError(
            f"the layout '{layout}' of a kernel's tensor has symbolic sizes",
            hint="give them values: layout.bind(...)",
        )
    return n


def _is_row_major(layout: Layout) -> bool:
    """Return whether the tensor lies in memory row-major, whatever tiles it is viewed by."""
    index = [Sym(f"i{k}", 0, size_of(n, layout) - 1) for k, n in enumerate(layout.dims)]
    tiled = layout.view is not None and layout.view.kind == "TileBy"
    at = coordinates(layout.view, tuple(index)) if layout.view and tiled else tuple(index)
    row_major = flatten(layout.tensor_shape, at)
    offset = layout.apply(*index)
    return row_major is offset or (isinstance(offset, int) and row_major == offset)
