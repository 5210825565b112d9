"""Layouts in CuTe's notation, and as CuTe code in C++ and in its Python DSL.

A layout that has strides is a shape with strides. One that permutes it by an exclusive or is

    Sw<B,M,S> o 0 o shape:stride

where the swizzle takes an offset x to `x ^ ((x & yyy) >> S)`: yyy are B bits from bit M + S on, and
bits M to M + B - 1 change. With S < 0 they are B bits from bit M on, which change those S bits
higher.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.strides import (
    MOST_ELEMENTS,
    Nested,
    Strides,
    modes_of_table,
    offset_table,
    strides_of_modes,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.printers.c_writer import CWriter
from lego_mlir.printers.names import Names
from lego_mlir.printers.python_writer import PythonWriter
from lego_mlir.printers.writer import Writer


@dataclass(frozen=True, slots=True)
class CuteLayout:
    """A layout as CuTe has it; `str` writes its notation.

    Attributes:
        strides: the shape and the strides.
        swizzle: B, M and S of the swizzle after it; None if there is none.
    """

    strides: Strides
    swizzle: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        if self.swizzle is None:
            return str(self.strides)
        return f"Sw<{','.join(map(str, self.swizzle))}> o 0 o {self.strides}"

    def cpp(self) -> str:
        """Return the C++ expression that makes it; numbers are static.

        Raises:
            LegoError: a symbolic size has a name that is none in C++, or a number does not fit 64
                bits.
        """
        writer = CWriter(Names("cuda"), is_wide=True)

        def nested(x: Nested, make: str) -> str:
            if isinstance(x, tuple):
                return f"cute::{make}({', '.join(nested(n, make) for n in x)})"
            text = writer.write(x)
            return f"cute::Int<{text}>{{}}" if isinstance(x, int) else text

        shape = nested(self.strides.shape, "make_shape")
        stride = nested(self.strides.stride, "make_stride")
        layout = f"cute::make_layout({shape}, {stride})"
        if self.swizzle is None:
            return layout
        b, m, s = self.swizzle
        return f"cute::composition(cute::Swizzle<{b}, {m}, {s}>{{}}, {layout})"

    def python(self) -> str:
        """Return the expression that makes it in the Python DSL.

        Raises:
            LegoError: a symbolic size has a name that is none in Python.
        """
        writer = PythonWriter(Names("python"))
        shape = _tuple(self.strides.shape, writer)
        layout = f"cute.make_layout({shape}, stride={_tuple(self.strides.stride, writer)})"
        if self.swizzle is None:
            return layout
        swizzle = f"cute.make_swizzle({', '.join(map(str, self.swizzle))})"
        return f"cute.make_composed_layout({swizzle}, 0, {layout})"


def to_cute(layout: Layout) -> CuteLayout:
    """Return a layout as CuTe has it.

    The coordinates are those of the layout's index, dimension by dimension; a dimension with
    several strides is a nested mode, its first sub-mode varying fastest.

    Raises:
        LegoError: it has neither strides nor a swizzle after strides; says why.
    """
    if not isinstance(layout, Layout):
        raise LegoError(f"{layout!r} is no layout: CuTe's layouts are printed from layouts")
    try:
        return CuteLayout(layout.to_strides())
    except LegoError as e:
        found = _swizzled(layout)
        if found is None:
            raise LegoError(
                f"CuTe has no such layout: {e.message}, and no swizzle Sw<B,M,S> gives it strides",
                hint="print it for CUDA: the functions of any layout are printed",
            ) from None
        return found


def _tuple(x: Nested, writer: Writer) -> str:
    if not isinstance(x, tuple):
        return writer.write(x)
    return f"({', '.join(_tuple(n, writer) for n in x)}{',' * (len(x) == 1)})"


def _swizzled(layout: Layout) -> CuteLayout | None:
    """Return the layout as a swizzle after strides, if it is one."""
    dims = tuple(n for n in layout.dims if isinstance(n, int))
    if len(dims) < layout.rank or prod(dims) > MOST_ELEMENTS or layout.is_partial:
        return None
    table = offset_table(layout)
    if table[(0,) * len(dims)]:
        return None
    looks_strided = _Sample(table)
    for swizzle in _swizzles(int(table.max()).bit_length()):
        if not looks_strided(swizzle):
            continue
        offsets = _apply(swizzle, table)  # a swizzle undoes itself
        modes, expected = modes_of_table(offsets)
        if (offsets == expected).all():
            return CuteLayout(strides_of_modes(modes), swizzle)
    return None


def _swizzles(bits: int) -> Iterator[tuple[int, int, int]]:
    """Yield the swizzles of numbers with so many bits: those of few bits first, S > 0 first."""
    for b in range(1, bits // 2 + 1):
        for sign in (1, -1):
            for shift in range(b, bits - b + 1):
                for m in range(bits - b - shift + 1):
                    yield b, m, sign * shift


def _apply(swizzle: tuple[int, int, int], x: Any) -> Any:
    """Return the swizzled offsets."""
    b, m, s = swizzle
    mask = ((1 << b) - 1) << (m + max(s, 0))
    return x ^ ((x & mask) >> s) if s > 0 else x ^ ((x & mask) << -s)


class _Sample:
    """Tests a few elements of a table: in one with strides, each dimension adds its own part."""

    def __init__(self, table: Any) -> None:
        import numpy as np

        random = np.random.default_rng(0)
        dims = table.shape
        points = [random.integers(0, n, 128) for n in dims]
        parts = [self._parts(n, p) for n, p in zip(dims, points, strict=True)]
        self._whole = table[tuple(points)]
        self._parts_of_points = []
        for axis, of_axis in enumerate(parts):
            for p in of_axis:
                at = [np.zeros_like(p)] * len(dims)
                at[axis] = p
                self._parts_of_points.append(table[tuple(at)])

    @staticmethod
    def _parts(n: int, points: Any) -> list[Any]:
        """Return what adds up to the index along a dimension: its bits, if they are digits."""
        if n & (n - 1):
            return [points]
        return [points & (1 << bit) for bit in range(n.bit_length() - 1)]

    def __call__(self, swizzle: tuple[int, int, int]) -> bool:
        """Return whether the elements may have strides once the swizzle is undone."""
        total = sum(_apply(swizzle, part) for part in self._parts_of_points)
        return bool((_apply(swizzle, self._whole) == total).all())
