"""Accesses of a warp to the elements of a layout: which lane touches what, and what it costs.

An access is written in two ways: as a slice of the tensor, `:, 0`, whose elements the lanes take in
row-major order; or as a distributed layout, whose registers are accessed one after the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lego_mlir.algebra import Layout
from lego_mlir.analysis.memory_costs.bank_conflicts import conflict_degrees, wavefronts
from lego_mlir.analysis.memory_costs.sectors import sectors
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.pictures.elements import (
    Bools,
    Ints,
    check_sizes,
    coordinate_sizes,
    index_of,
    offsets_at,
)
from lego_mlir.pictures.threads import Threads

_MOST_ELEMENTS = 1 << 20
_SLICE = re.compile(r"(-?\d{1,18})?(:(-?\d{1,18})?)?(:(\d{1,18})?)?")


@dataclass(frozen=True, slots=True)
class Access:
    """The warp-wide requests of an access.

    Attributes:
        offsets: in elements, of shape (requests, 32): where each lane's access begins.
        active: which lanes access anything; same shape.
        vector: elements that a lane accesses at once.
        element: bytes of an element.
    """

    offsets: Ints
    active: Bools
    vector: int
    element: int

    @property
    def width(self) -> int:
        """The bytes that a lane accesses at once."""
        return self.vector * self.element

    def lanes(self, drawn: Ints) -> dict[int, tuple[int, int]]:
        """Return, for each drawn offset that is accessed, its lane and the words of its bank.

        The second number is 1 without a bank conflict.
        """
        degrees = conflict_degrees(self.offsets * self.element, self.width, self.active)
        offsets = self.offsets[..., None] + np.arange(self.vector)
        of_lanes = np.isin(offsets, drawn) & self.active[..., None]
        return {
            int(offsets[request, lane, k]): (int(lane), int(degrees[request, lane]))
            for request, lane, k in np.argwhere(of_lanes)
        }

    def bank_caption(self) -> str:
        """Return a sentence on the bank conflicts of the access to shared memory."""
        cost = wavefronts(self.offsets * self.element, self.width, self.active)
        executed, ideal = int(cost.executed.sum()), int(cost.ideal.sum())
        verdict = "no bank conflicts" if executed == ideal else f"{ideal} without bank conflicts"
        return f"{self._requests()}: {_count(executed, 'wavefront')}, {verdict}"

    def sector_caption(self) -> str:
        """Return a sentence on the sectors of the access to global memory."""
        cost = sectors(self.offsets * self.element, self.width, self.active)
        touched, ideal = int(cost.touched.sum()), int(cost.ideal.sum())
        verdict = "the least possible" if touched == ideal else f"{ideal} would hold its bytes"
        return f"{self._requests()}: {_count(touched, 'sector')}, {verdict}"

    def _requests(self) -> str:
        return f"{_count(len(self.offsets), 'request')} of a warp, {self.width} bytes a lane"


def access_of(layout: Layout, how: str | Layout, element: int, vector: int) -> Access:
    """Return the access `how` to a tensor in a layout.

    Args:
        layout: of the tensor in memory.
        how: a slice as NumPy writes it, with or without brackets, or a distributed layout of the
            same shape.
        element: bytes of an element.
        vector: elements that a lane accesses at once.

    Raises:
        LegoError: there is no such slice, or a lane's elements do not lie one after another.
    """
    sizes = coordinate_sizes(layout)
    if isinstance(how, Layout):
        coordinates = _of_threads(how, sizes, vector)
    else:
        coordinates = _of_slice(how, sizes)
    count = len(coordinates[0])
    lanes = WARP_THREADS * vector
    if count % vector:
        raise LegoError(
            f"the access '{how}' has {count} elements, which no vectors of {vector} are"
        )
    offsets = offsets_at(layout, index_of(layout, coordinates), (count,))
    padded = np.full(-(-count // lanes) * lanes, -1, np.int64)
    padded[:count] = offsets
    by_lane = padded.reshape(-1, WARP_THREADS, vector)
    first = by_lane[..., 0]
    is_run = (by_lane == first[..., None] + np.arange(vector)) | (by_lane < 0)
    if not is_run.all():
        _, lane, _ = (int(k) for k in np.argwhere(~is_run)[0])
        raise LegoError(
            f"the {vector} elements of lane {lane} do not lie one after another in '{layout}'",
            hint="draw it with a smaller --vector",
        )
    return Access(np.maximum(first, 0), first >= 0, vector, element)


def _of_slice(text: str, sizes: tuple[int, ...]) -> list[Ints]:
    """Return the coordinates of the elements of a slice, in row-major order."""
    parts = [part.strip() for part in text.strip().removeprefix("[").removesuffix("]").split(",")]
    hint = f"write {', '.join([':', *['0'] * (len(sizes) - 1)])}, as NumPy does"
    if len(parts) != len(sizes):
        raise LegoError(
            f"the access '{text}' has {len(parts)} coordinates, the tensor {len(sizes)}", hint=hint
        )
    ranges: list[NDArray[np.int64]] = []
    total = 1
    for part, n in zip(parts, sizes, strict=True):
        match = _SLICE.fullmatch(part)
        if match is None or not part:
            raise LegoError(f"'{part}' in the access '{text}' is no slice", hint=hint)
        start, stop, step = (int(match[k]) if match[k] else None for k in (1, 3, 5))
        if match[2] is None and start is not None:
            if not -n <= start < n:
                raise LegoError(f"{start} in the access '{text}' is not below {n}")
            taken = range(start % n, start % n + 1)
        elif step == 0:
            raise LegoError(f"the step of '{part}' in the access '{text}' is 0")
        else:
            taken = range(n)[slice(start, stop, step)]
        total *= len(taken)
        if total > _MOST_ELEMENTS:
            raise LegoError(f"the access '{text}' has more than {_MOST_ELEMENTS} elements")
        ranges.append(np.arange(taken.start, taken.stop, taken.step, dtype=np.int64))
    if total == 0:
        raise LegoError(f"the access '{text}' has no elements")
    return [np.asarray(a, np.int64).ravel() for a in np.meshgrid(*ranges, indexing="ij")]


def _of_threads(how: Layout, sizes: tuple[int, ...], vector: int) -> list[Ints]:
    """Return the coordinates of elements in the order of (warp, register, lane, vector element)."""
    check_sizes(how)
    threads = Threads.of(how)
    if coordinate_sizes(how) != sizes:
        raise LegoError(
            f"the access '{how}' is of a tile of {coordinate_sizes(how)}, the tensor has {sizes}"
        )
    if threads.registers % vector:
        raise LegoError(f"{threads.registers} registers of a thread are no vectors of {vector}")
    total = int(np.prod(sizes, dtype=object))
    if total > _MOST_ELEMENTS:
        raise LegoError(f"the access '{how}' has more than {_MOST_ELEMENTS} elements")
    coordinates = [np.asarray(a, np.int64).ravel() for a in np.indices(sizes)]
    held = offsets_at(how, index_of(how, coordinates), (total,))
    lane, register = held // threads.registers % WARP_THREADS, held % threads.registers
    warp = held // threads.registers // WARP_THREADS
    order = np.lexsort((register % vector, lane, register // vector, warp))
    return [c[order] for c in coordinates]


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
