"""The permutation that is to be computed: the modes of both layouts, as few as there are.

A mode is a walk through memory: `size` steps of `source` elements in the input and of `target`
elements in the output. The transpose of a row-major m×n matrix has two modes, (m, n, 1) and
(n, 1, m); the transpose into a column-major output has one, (m*n, 1, 1), and is a copy.

Sizes that only the launch knows are symbols, and strides then expressions of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, construct, evaluate, symbols

_TYPICAL = 4096
"""What stands for a size that only the launch knows, where sizes only decide what is fast."""


@dataclass(frozen=True, slots=True)
class Mode:
    """`size` steps, each of `source` elements in the input and of `target` in the output."""

    size: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class PermuteProblem:
    """A permutation of dimensions, as its modes.

    Attributes:
        modes: the modes in the order of the output, outermost first.
    """

    modes: tuple[Mode, ...]

    @property
    def is_open(self) -> bool:
        """Whether only the launch knows some sizes."""
        return any(isinstance(mode.size, Expr) for mode in self.modes)

    @property
    def typical(self) -> PermuteProblem:
        """The permutation with a typical number for each size that only the launch knows."""
        return PermuteProblem(
            tuple(Mode(typical(m.size), typical(m.source), typical(m.target)) for m in self.modes)
        )

    def moved_bytes(self, unit_bytes: int) -> int | None:
        """Return the bytes that are read and written; `None` if only the launch knows.

        Args:
            unit_bytes: bytes of an element, or of a unit if it is a permutation of units.
        """
        return None if self.is_open else 2 * unit_bytes * prod(m.size for m in self.modes)

    @property
    def read(self) -> Mode:
        """The mode along which the input is contiguous."""
        return next(mode for mode in self.modes if mode.source == 1)

    @property
    def written(self) -> Mode:
        """The mode along which the output is contiguous."""
        return next(mode for mode in self.modes if mode.target == 1)

    @property
    def is_copy(self) -> bool:
        """Whether input and output are contiguous along the same mode."""
        return self.read is self.written

    @property
    def others(self) -> tuple[Mode, ...]:
        """The modes along which neither input nor output is contiguous."""
        return tuple(m for m in self.modes if m is not self.read and m is not self.written)

    def in_units(self, unit: int) -> PermuteProblem:
        """Return the permutation of units of so many elements, which divide all runs of a copy."""
        if unit == 1:
            return self
        modes = [
            Mode(m.size // unit, 1, 1)
            if m is self.read
            else Mode(m.size, m.source // unit, m.target // unit)
            for m in self.modes
        ]
        return PermuteProblem(tuple(m for m in modes if m.size > 1) or (Mode(1, 1, 1),))

    def joined(self, count: int) -> PermuteProblem:
        """Return the permutation whose `count` innermost modes of the output are one mode.

        In the input that mode has the largest of their strides: it says what it is outside of.

        Args:
            count: modes; 1 leaves the permutation as it is.
        """
        if count == 1:
            return self
        inner = self.modes[-count:]
        one = Mode(prod(m.size for m in inner), max(m.source for m in inner), 1)
        return PermuteProblem((*self.modes[:-count], one))

    def widths(self, max_width: int) -> tuple[int, int]:
        """Return the widest vectors, in elements, for which every access is aligned.

        Args:
            max_width: elements that the base addresses are aligned for; a power of two.

        Returns:
            The width of loads along `read`, and of stores along `written`.
        """
        source = [self.read.size, *(m.source for m in self.modes if m is not self.read)]
        target = [self.written.size, *(m.target for m in self.modes if m is not self.written)]
        return _common_power(source, max_width), _common_power(target, max_width)


def find_problem(
    shape: Sequence[Any], axes: Sequence[int], a: Layout, b: Layout
) -> PermuteProblem | None:
    """Return the modes of a permutation of dimensions; `None` if a layout is not strided.

    Args:
        shape: sizes of the input, numbers or symbols.
        axes: dimension k of the output is dimension axes[k] of the input.
        a: layout of the input, with the dimensions `shape`.
        b: layout of the output.
    """
    source, target = _strides(a), _strides(b)
    if source is None or target is None:
        return None
    by_axis = {axis: target[k] for k, axis in enumerate(axes)}
    modes = [Mode(n, source[k], by_axis[k]) for k, n in enumerate(shape) if n != 1]
    return PermuteProblem(_merged(modes) or (Mode(1, 1, 1),))


def source_view(modes: Sequence[Mode]) -> Layout:
    """Return the layout of the input's memory, indexed by modes."""
    return _view([(m.size, m.source) for m in modes])


def target_view(modes: Sequence[Mode]) -> Layout:
    """Return the layout of the output's memory, indexed by modes."""
    return _view([(m.size, m.target) for m in modes])


def _view(modes: Sequence[tuple[int, int]]) -> Layout:
    slowest_first = sorted(range(len(modes)), key=lambda k: -typical(modes[k][1]))
    return OrderBy(RegP([size for size, _ in modes], slowest_first))


def typical(size: Any) -> int:
    """Return a number that stands for a size or stride, itself if it is one."""
    if not isinstance(size, Expr):
        return int(size)
    return int(evaluate(size, {s.name: _TYPICAL for s in symbols(size)}))


def _strides(layout: Layout) -> list[Any] | None:
    """Return the stride of each dimension; `None` if the layout is not strided."""
    try:
        strides = layout.to_strides().stride
    except LegoError:
        return None
    numbers: list[Any] = [s for s in strides if isinstance(s, int | Expr)]
    return numbers if len(numbers) == layout.rank else None


def _merged(modes: list[Mode]) -> tuple[Mode, ...]:
    """Return the modes, those joined that continue one another in both memories."""
    found: list[Mode] = []
    for inner in sorted(modes, key=lambda m: -typical(m.target)):
        outer = found[-1] if found else None
        if outer and (outer.source, outer.target) == (
            inner.size * inner.source,
            inner.size * inner.target,
        ):
            found[-1] = Mode(outer.size * inner.size, inner.source, inner.target)
        else:
            found.append(inner)
    assert prod(m.size for m in found) == prod(m.size for m in modes)
    return tuple(found)


def _common_power(numbers: Sequence[int], most: int) -> int:
    """Return the greatest power of two up to `most` that divides all numbers."""
    while any(construct.mod(n, most) != 0 for n in numbers):
        most //= 2
    return most


def count_tiles(size: int, tile: int) -> int:
    """Return the number of tiles that cover a dimension."""
    count: int = ceildiv(size, tile)
    return count
