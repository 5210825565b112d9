"""Fragments: the elements of a tile that one thread holds, in parts.

A part is a vector of `part_width` elements, or a single element. A tile is never one wide vector:
LLVM's time grows faster than the width of vectors, and the machine has none. Accumulators of
`wgmma` are elements, which no part is made of before something reads it: most of them go on to the
next `wgmma` as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from lego_mlir.analysis.distributed import REPLICA, DistributedLayout, Place
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_passes.lower_tiles import build

_MOST = 4
"""The most elements of a part: those of the widest access of 32-bit elements."""

_KNOWN = 1 << 10
"""The most layouts of which what follows from them is kept: kernels have few."""


def part_width(layout: DistributedLayout) -> int:
    """Return how many registers make up a part.

    It depends on the number of registers alone, so what only renames them keeps its parts.
    """
    return gcd(layout.registers, _MOST)


class Fragment:
    """What one thread holds of a tile.

    Args:
        layout: of the tile.
        parts: the values, in the order of registers, `part_width(layout)` registers each.

    Attributes:
        layout: of the tile.
    """

    def __init__(self, layout: DistributedLayout, parts: tuple[Any, ...]) -> None:
        self.layout = layout
        self._parts: tuple[Any, ...] | None = parts

    @property
    def parts(self) -> tuple[Any, ...]:
        """The values, in the order of registers, `part_width(layout)` registers each."""
        assert self._parts is not None  # it is not made of elements
        return self._parts

    @property
    def element(self) -> Any:
        """The type of an element."""
        return build.element_type(self.parts[0])

    def elements(self) -> list[Any]:
        """Build the elements, register by register."""
        known = {part: build.to_elements(part) for part in dict.fromkeys(self.parts)}
        return [element for part in self.parts for element in known[part]]

    def renamed(self, layout: DistributedLayout) -> Fragment:
        """Return the fragment of a layout that has the same registers under other indices."""
        return Fragment(layout, self.parts)

    def picked(self, layout: DistributedLayout, registers: Sequence[int]) -> Fragment:
        """Build the fragment of a layout each of whose registers is one of these registers.

        Args:
            layout: of the result.
            registers: for each register of the result that of this fragment.
        """
        width, own = part_width(layout), part_width(self.layout)
        elements: list[Any] = []
        made: dict[tuple[int, ...], Any] = {}
        parts = []
        for k in range(0, len(registers), width):
            key = tuple(registers[k : k + width])
            if key not in made:
                first = key[0]
                if width == own and first % own == 0 and key == tuple(range(first, first + own)):
                    made[key] = self.parts[first // own]
                else:
                    elements = elements or self.elements()
                    made[key] = build.from_elements([elements[r] for r in key])
            parts.append(made[key])
        return Fragment(layout, tuple(parts))


class ElementsFragment(Fragment):
    """A fragment of single elements, whose parts are built behind these when they are needed.

    Args:
        layout: of the tile.
        elements: register by register, results of operations of one block or its arguments.
    """

    def __init__(self, layout: DistributedLayout, elements: Sequence[Any]) -> None:
        super().__init__(layout, ())
        self._parts = None
        self._elements = tuple(elements)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The values, in the order of registers, `part_width(layout)` registers each."""
        if self._parts is None:
            last = self._elements[-1]
            is_argument = isinstance(last, ir.BlockArgument)
            point = ir.InsertionPoint
            with point.at_block_begin(last.owner) if is_argument else point.after(last.owner):
                self._parts = of_elements(self.layout, self._elements).parts
        return self._parts

    @property
    def element(self) -> Any:
        """The type of an element."""
        return self._elements[0].type

    def elements(self) -> list[Any]:
        """Return the elements, register by register."""
        return list(self._elements)

    def renamed(self, layout: DistributedLayout) -> Fragment:
        """Return the fragment of a layout that has the same registers under other indices."""
        return ElementsFragment(layout, self._elements)


def part_type(layout: DistributedLayout, element: Any) -> Any:
    """Return the type of the parts of a tile."""
    return build.vector_type(part_width(layout), element)


def part_types(layout: DistributedLayout, element: Any) -> list[Any]:
    """Return the types of all parts of a tile."""
    return [part_type(layout, element)] * (layout.registers // part_width(layout))


def of_elements(layout: DistributedLayout, elements: Sequence[Any]) -> Fragment:
    """Build the fragment of these elements, register by register; equal parts are built once."""
    width = part_width(layout)
    made: dict[tuple[Any, ...], Any] = {}
    parts = []
    for k in range(0, len(elements), width):
        key = tuple(elements[k : k + width])
        if key not in made:
            made[key] = build.from_elements(key)
        parts.append(made[key])
    return Fragment(layout, tuple(parts))


@lru_cache(maxsize=_KNOWN)
def coordinates(layout: DistributedLayout) -> tuple[tuple[int, ...], ...]:
    """Return, for each dimension, the coordinates of the registers of the first thread.

    The digits of threads only add to them: they are where each register lies from a thread's first.
    """
    element = layout.apply(0, 0, 0, np.arange(layout.registers))
    return tuple(tuple(np.broadcast_to(x, layout.registers).tolist()) for x in element.coordinates)


def registers_at(layout: DistributedLayout, index: Iterable[Sequence[int]]) -> list[int]:
    """Return the registers in which the first thread holds elements, given by their coordinates.

    Args:
        layout: of the tile.
        index: the coordinates, a list for each dimension.
    """
    arrays = [np.asarray(x) for x in index]
    if not arrays:
        return [0] * layout.registers
    found: list[int] = np.asarray(layout.inverse(arrays).register).tolist()
    return found


@lru_cache(maxsize=_KNOWN)
def without_copies(layout: DistributedLayout) -> DistributedLayout:
    """Return the layout in which each thread holds its elements once."""
    ctas, warps, lanes, registers = layout.places
    kept = tuple(f for f in registers if f.dim != REPLICA)
    if kept == registers:
        return layout
    return DistributedLayout(layout.shape, (ctas, warps, lanes, kept))


def once(fragment: Fragment) -> Fragment:
    """Build the fragment without copies in registers."""
    layout = without_copies(fragment.layout)
    if layout is fragment.layout:
        return fragment
    return fragment.picked(layout, same_registers(layout, fragment.layout))


def repeated(fragment: Fragment, layout: DistributedLayout) -> Fragment:
    """Build the fragment of a layout that holds copies in registers: the inverse of `once`."""
    if layout == fragment.layout:
        return fragment
    return fragment.picked(layout, same_registers(layout, fragment.layout))


@lru_cache(maxsize=_KNOWN)
def same_registers(target: DistributedLayout, source: DistributedLayout) -> tuple[int, ...]:
    """Return for each register of the target a register of the source with the same element."""
    if not target.rank:
        return (0,) * target.registers
    return tuple(registers_at(source, coordinates(target)))


def register_factors(layout: DistributedLayout) -> list[tuple[int, int, int]]:
    """Return the register factors as load_parts has them: dimension, size and stride."""
    return [(f.dim, f.size, f.stride) for f in layout.places[Place.REGISTER]]
