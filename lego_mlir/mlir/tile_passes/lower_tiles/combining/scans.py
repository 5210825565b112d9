"""Inclusive scans: digit by digit of the dimension, blocks become larger blocks.

The plan (`analysis.distributed.scan`) lists the digits, the fastest first. The k-th block of a
digit is combined with the totals of the blocks before it: of registers, of the lane whose bit
differs, or of other warps, which go through shared memory. A reversed scan combines with those
behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.analysis.distributed import Place, plan_scan
from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.scan import ScanStep
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.combining.combine import Combine, Values
from lego_mlir.mlir.tile_passes.lower_tiles.conversions import convert
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shuffles import shuffle_xor
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment, of_elements
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads


def scan_tiles(
    tiles: Sequence[Fragment], dim: int, combine: Combine, threads: Threads, *, is_reverse: bool
) -> list[Fragment]:
    """Build the inclusive scan of tiles of one layout along a dimension.

    Args:
        tiles: one, or several whose elements are combined together.
        dim: the dimension.
        combine: what combines two elements of each; the order of elements is kept.
        threads: those of the kernel.
        is_reverse: whether it begins at the last element.
    """
    layout = tiles[0].layout
    plan = plan_scan(layout, dim, max(bytes_of(t.element) for t in tiles))
    scan = _Scan(combine, threads, is_reverse)
    values = list(zip(*(t.elements() for t in tiles), strict=True))
    totals = [values[r] for r in plan.totals]
    for step in plan.steps:
        if step.gather is not None:
            values, totals = scan.gathered(step, values, totals)
        elif step.digit.place is Place.LANE:
            values, totals = scan.lanes(step, values, totals)
        else:
            values, totals = scan.registers(step, values, totals)
    return [of_elements(layout, column) for column in zip(*values, strict=True)]


class _Scan:
    """The steps of a scan, on rows of values: one element of each tile."""

    def __init__(self, combine: Combine, threads: Threads, is_reverse: bool) -> None:
        self.combine = combine
        self.threads = threads
        self.is_reverse = is_reverse

    def combined(self, before: Values, after: Values) -> Values:
        """Build the combination of what the scan meets first with what it meets next."""
        return self.combine.apply(*((after, before) if self.is_reverse else (before, after)))

    def registers(
        self, step: ScanStep, values: list[Values], totals: list[Values]
    ) -> tuple[list[Values], list[Values]]:
        """Accumulate the totals of a thread's registers one after another."""
        values, new = list(values), []
        for group in step.groups:
            first, *others = reversed(group) if self.is_reverse else group
            running = totals[first]
            for t in others:
                done: dict[Values, Values] = {}
                for v, before in enumerate(step.before):
                    if before == t:
                        if values[v] not in done:
                            done[values[v]] = self.combined(running, values[v])
                        values[v] = done[values[v]]
                known = done.get(totals[t])
                running = self.combined(running, totals[t]) if known is None else known
            new.append(running)
        return values, new

    def lanes(
        self, step: ScanStep, values: list[Values], totals: list[Values]
    ) -> tuple[list[Values], list[Values]]:
        """Combine with the totals of the lane whose bit differs: the higher one comes later."""
        digit = step.digit
        is_later = self.threads.is_digit(digit, 0 if self.is_reverse else 1)
        other = [tuple(shuffle_xor(x, digit.weight) for x in row) for row in totals]
        new_values = [
            self._where(is_later, self.combined(other[before], value), value)
            for value, before in zip(values, step.before, strict=True)
        ]
        new = [
            self.combined(
                self._where(is_later, other[g], totals[g]),
                self._where(is_later, totals[g], other[g]),
            )
            for (g,) in step.groups
        ]
        return new_values, new

    def gathered(
        self, step: ScanStep, values: list[Values], totals: list[Values]
    ) -> tuple[list[Values], list[Values]]:
        """Bring the totals of other warps into registers; combine with those that come before."""
        assert step.gather is not None
        source, target = step.gather.source, step.gather.target
        columns = [of_elements(source, column) for column in zip(*totals, strict=True)]
        held = [convert(tile, target, self.threads).elements() for tile in columns]
        rows = list(zip(*held, strict=True))
        values, new = list(values), []
        for k, group in enumerate(step.groups):
            order = list(reversed(group)) if self.is_reverse else list(group)
            running = [rows[order[0]]]
            for g in order[1:]:
                running.append(self.combined(running[-1], rows[g]))
            prefix = self._prefix(step.digit, running)
            is_first = self.threads.is_digit(
                step.digit, step.digit.size - 1 if self.is_reverse else 0
            )
            for v, before in enumerate(step.before):
                if before == k:
                    values[v] = self._where(is_first, values[v], self.combined(prefix, values[v]))
            new.append(running[-1])
        return values, new

    def _prefix(self, digit: Digit, running: list[Values]) -> Values:
        """Build the total of what comes before the thread's block; of the first one anything."""
        found = running[0]
        for k in range(2, digit.size):
            number = digit.size - 1 - k if self.is_reverse else k
            found = self._where(self.threads.is_digit(digit, number), running[k - 1], found)
        return found

    @staticmethod
    def _where(condition: Any, a: Values, b: Values) -> Values:
        return tuple(build.select(condition, x, y) for x, y in zip(a, b, strict=True))
