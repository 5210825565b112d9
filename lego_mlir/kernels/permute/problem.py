"""What a permutation of dimensions moves: the modes of both layouts, as few as there are.

A mode is a walk through memory, `size` steps of `source` elements in the input and of `target`
elements in the output. The transpose of a row-major m×n matrix has two, (m, n, 1) and (n, 1, m);
the one into a column-major output has one, (m*n, 1, 1), and is a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from lego_mlir.algebra import Layout, OrderBy, RegP
from lego_mlir.diagnostics import LegoError


@dataclass(frozen=True, slots=True)
class Mode:
    """`size` steps, each of `source` elements in the input and of `target` in the output."""

    size: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Move:
    """A permutation of dimensions by its modes.

    Attributes:
        modes: outermost first in the order of the output.
    """

    modes: tuple[Mode, ...]

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
        """Whether both are contiguous along the same mode."""
        return self.read is self.written

    @property
    def others(self) -> tuple[Mode, ...]:
        """The modes along which neither is contiguous."""
        return tuple(m for m in self.modes if m is not self.read and m is not self.written)

    def widths(self, most: int) -> tuple[int, int]:
        """The widest vectors, in elements, that both memories are aligned for at every step.

        Args:
            most: that the base addresses are aligned for; a power of two.

        Returns:
            Of the input along `read` and of the output along `written`.
        """
        source = [self.read.size, *(m.source for m in self.modes if m is not self.read)]
        target = [self.written.size, *(m.target for m in self.modes if m is not self.written)]
        return _common_power(source, most), _common_power(target, most)


def find_move(shape: Sequence[int], axes: Sequence[int], a: Layout, b: Layout) -> Move | None:
    """The modes of a permutation of dimensions, `None` where a layout is more than strides.

    Args:
        shape: of the input.
        axes: dimension k of the output is dimension axes[k] of the input.
        a: the input's layout, of dimensions `shape`.
        b: the output's layout.
    """
    source, target = _strides(a), _strides(b)
    if source is None or target is None:
        return None
    place = {axis: target[k] for k, axis in enumerate(axes)}
    modes = [Mode(n, source[k], place[k]) for k, n in enumerate(shape) if n > 1]
    return Move(_merged(modes) or (Mode(1, 1, 1),))


def source_view(modes: Sequence[Mode]) -> Layout:
    """The input's memory, indexed by these modes."""
    return _view([(m.size, m.source) for m in modes])


def target_view(modes: Sequence[Mode]) -> Layout:
    """The output's memory, indexed by these modes."""
    return _view([(m.size, m.target) for m in modes])


def _view(modes: Sequence[tuple[int, int]]) -> Layout:
    slowest_first = sorted(range(len(modes)), key=lambda k: -modes[k][1])
    return OrderBy(RegP([size for size, _ in modes], slowest_first))


def _strides(layout: Layout) -> list[int] | None:
    """One stride a dimension, where the layout has them."""
    try:
        strides = layout.to_strides().stride
    except LegoError:
        return None
    numbers = [s for s in strides if isinstance(s, int)]
    return numbers if len(numbers) == layout.rank else None


def _merged(modes: list[Mode]) -> tuple[Mode, ...]:
    """Modes that continue one another in both memories, joined; outermost first in the output."""
    found: list[Mode] = []
    for inner in sorted(modes, key=lambda m: -m.target):
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
    """The greatest power of two up to `most` that divides all."""
    while any(n % most for n in numbers):
        most //= 2
    return most
