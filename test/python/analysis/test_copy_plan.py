"""Plans of copies against enumeration: every element once, at the addresses that are promised."""

from __future__ import annotations

import numpy as np
import pytest

from lego_mlir.algebra import parse_layout
from lego_mlir.analysis.copy_plan import CopiedTile, CopyPlan, plan_copy

ROWS = "OrderBy(Row(256, 512)).TileBy([2, 8], [128, 64])"
WIDE = "OrderBy(Row(256, 512)).TileBy([4, 2], [64, 256])"
COLUMNS = "OrderBy(Col(256, 512)).TileBy([2, 8], [128, 64])"
PADDED = "OrderBy(Row(250, 500)).TileBy([2, 8], [128, 64])"
ODD = "OrderBy(Row(250, 501)).TileBy([2, 8], [128, 64])"
SMALL = "OrderBy(Row(48, 80)).TileBy([2, 2], [24, 40])"
SWIZZLED = "OrderBy(Row(4), GenP([128, 64], swizzle(8, 1, 8)))"
SWIZZLED_WIDE = "OrderBy(Row(4), GenP([64, 256], swizzle(8, 1, 8)))"
SWIZZLED_COLUMNS = (
    "OrderBy(Row(2), GenP([64, 128], swizzle(8, 1, 8))).OrderBy(RegP([2, 128, 64], [0, 2, 1]))"
)
PLAIN = "OrderBy(Row(24, 40))"


def planned(
    source: str, target: str, *, size: int = 2, threads: int = 128, align: int = 16
) -> CopyPlan:
    sides = []
    for text in (source, target):
        layout = parse_layout(text)
        sides.append(CopiedTile(layout, (layout.rank - 2, layout.rank - 1), align))
    widths = [*(n // size for n in (16, 8, 4, 2) if n > size), 1]
    return plan_copy(*sides, size, threads, lead=sides[0], widths=widths)


@pytest.mark.parametrize(
    ("source", "target", "threads", "width"),
    [
        (ROWS, SWIZZLED, 128, 8),
        (ROWS, SWIZZLED, 96, 8),
        (WIDE, SWIZZLED_WIDE, 128, 8),
        (COLUMNS, SWIZZLED_COLUMNS, 256, 8),
        (COLUMNS, SWIZZLED, 128, 1),
        (PADDED, SWIZZLED, 128, 4),
        (ODD, SWIZZLED, 128, 1),
        (SMALL, PLAIN, 32, 8),
        (SMALL, PLAIN, 1024, 8),
    ],
)
def test_every_element_is_copied_once(source: str, target: str, threads: int, width: int) -> None:
    plan = planned(source, target, threads=threads)
    assert plan.width == width
    assert plan.full_steps <= plan.steps <= plan.full_steps + 1
    number = np.arange(plan.count)
    assert plan.count <= plan.steps * threads
    for side in (plan.source, plan.target):
        layout = side.split.layout
        chunk = plan.chunks.inv(number)
        index = side.index(
            [0] * side.side.layout.rank, [c[:, None] for c in chunk], np.arange(width)
        )
        covered = np.broadcast_arrays(*index)
        inside = layout.mask(*covered)
        found = np.asarray(layout.apply(*[np.where(inside, i, 0) for i in covered]))[inside]
        tile = [0] * (side.side.layout.rank - 2)
        ij = np.indices(side.side.shape).reshape(2, -1)
        whole = [*(np.full(ij.shape[1], k) for k in tile), *ij]
        exists = side.side.layout.mask(*whole)
        expected = side.side.layout.apply(*[np.where(exists, i, 0) for i in whole])[exists]
        assert sorted(found.tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize(
    ("source", "target", "bases"),
    [
        (ROWS, SWIZZLED, (1, 1)),
        (WIDE, SWIZZLED_WIDE, (1, 2)),
        (COLUMNS, SWIZZLED_COLUMNS, (1, 1)),
        (SMALL, PLAIN, (1, 1)),
    ],
)
def test_distances_of_steps_hold_for_every_thread(
    source: str, target: str, bases: tuple[int, int]
) -> None:
    plan = planned(source, target)
    sides = (plan.source, plan.target)
    promised = (plan.source_distances, plan.target_distances)
    for side, distances, count in zip(sides, promised, bases, strict=True):
        tile = [n - 1 for n in side.side.layout.dims]
        assert len(distances) == plan.steps
        assert len({step for step, _ in distances}) == count
        for step, (earlier, distance) in enumerate(distances):
            assert (distance == 0) == (earlier == step)
            thread = np.arange(plan.threads)
            thread = thread[thread + step * plan.threads < plan.count]
            here, there = (
                side.split.layout.apply(
                    *side.index(tile, plan.chunks.inv(thread + s * plan.threads))
                )
                for s in (earlier, step)
            )
            assert (there - here == distance).all()


@pytest.mark.parametrize(
    ("size", "align", "width"),
    [(2, 16, 8), (2, 8, 4), (2, 2, 1), (4, 16, 4), (1, 16, 16), (8, 16, 2)],
)
def test_chunks_are_as_wide_as_the_alignment_allows(size: int, align: int, width: int) -> None:
    plain = "OrderBy(Row(2, 128, 64))"
    assert planned(ROWS, plain, size=size, align=align).width == width


def test_neighbouring_threads_copy_neighbouring_chunks() -> None:
    assert planned(ROWS, SWIZZLED).chunks.text == "OrderBy(Row(128, 8))"
    assert planned(COLUMNS, SWIZZLED_COLUMNS).chunks.text == "OrderBy(Col(16, 64))"
