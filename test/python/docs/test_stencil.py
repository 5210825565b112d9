"""docs/examples/stencil.py: right for every shape, radius and layout, and lean."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lego_mlir import GenP, OrderBy, Row, bricks

EXAMPLE = Path(__file__).parents[3] / "docs/examples/stencil.py"
STENCIL = runpy.run_path(str(EXAMPLE))
N = 32
LAYOUTS = {
    "rows": OrderBy(Row(N, N, N)),
    "bricks of a CTA": OrderBy(GenP([N, N, N], bricks(8, 4, 32))),
    "cubes": OrderBy(GenP([N, N, N], bricks(4, 4, 4))),
}
CASES = [
    (shape, radius, layout)
    for shape, radii in (("star", (1, 2, 3, 4)), ("cube", (1, 2)))
    for radius in radii
    for layout in LAYOUTS
]


def checked(
    shape: str, radius: int, layout: str, *, staged: bool = False, costs: bool = False
) -> Any:
    taps = STENCIL["weights"](shape, radius)
    x = np.random.default_rng(radius).random((N, N, N), np.float32)
    kernel = STENCIL["stencil"](N, taps, LAYOUTS[layout], staged)
    result = kernel.run(x, device="sim", costs=costs)
    expected = STENCIL["reference"](x, taps)
    np.testing.assert_allclose(result.outputs["b"], expected, rtol=1e-5)
    return result, len(taps)


@pytest.mark.parametrize(("shape", "radius", "layout"), CASES)
def test_the_example(shape: str, radius: int, layout: str) -> None:
    checked(shape, radius, layout)


@pytest.mark.parametrize(("shape", "radius"), [("star", 1), ("cube", 2)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_staged_in_shared_memory(shape: str, radius: int, layout: str) -> None:
    checked(shape, radius, layout, staged=True)


@pytest.mark.parametrize("radius", [3, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_cubes(radius: int, layout: str) -> None:
    checked("cube", radius, layout)


@pytest.mark.parametrize(("layout", "most"), [("rows", 24), ("bricks of a CTA", 27), ("cubes", 29)])
def test_seven_points_cost_seven_multiplications_and_few_others(layout: str, most: int) -> None:
    result, points = checked("star", 1, layout, costs=True)
    counts = {str(kind): count.lanes / N**3 for kind, count in result.costs[0].classes.items()}
    assert counts["float"] == points == 7
    assert sum(counts.values()) < most
    excess = result.costs[0].excess_sectors
    assert excess == 0 if layout != "cubes" else excess > 0  # a warp reads rows of 32 elements


def test_what_the_example_says_of_its_instructions() -> None:
    counts = {}
    for shape, radius in (("star", 1), ("cube", 1), ("cube", 2)):
        for staged in (True, False):
            result, points = checked(shape, radius, "rows", staged=staged, costs=True)
            issued = sum(count.warps for count in result.costs[0].classes.values())
            counts[points, staged] = issued * 32 / N**3
    text = re.sub(r"\s+", " ", EXAMPLE.read_text())
    said = re.search(
        r"(\d+) and (\d+) for the star of radius 1, (\d+) and (\d+) for its cube, but (\d+) and "
        r"(\d+) for the cube of radius 2",
        text,
    )
    assert said is not None
    for number, count in zip(map(int, said.groups()), counts.values(), strict=True):
        assert abs(number - count) <= 0.05 * count + 1
