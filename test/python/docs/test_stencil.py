"""docs/examples/stencil.py: right for every shape, radius and layout, and lean."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lego_mlir import GenP, OrderBy, Row, bricks, runtime

EXAMPLE = Path(__file__).parents[3] / "docs/examples/stencil.py"
STENCIL = runpy.run_path(str(EXAMPLE))
N = 32
LAYOUTS = {
    "rows": OrderBy(Row(N, N, N)),
    "bricks of a CTA": OrderBy(GenP([N, N, N], bricks(8, 4, 32))),
    "cubes": OrderBy(GenP([N, N, N], bricks(4, 4, 4))),
}
SWEEPS = [STENCIL["Sweep"](*sizes) for sizes in ((16, 4, 8, 2), (32, 2, 4, 4), (8, 16, 2, 1))]


def checked(
    shape: str, radius: int, layout: str, sweep: Any, *, costs: bool = False, order: str = "early"
) -> Any:
    taps = STENCIL["weights"](shape, radius)
    x = np.random.default_rng(radius).random((N, N, N), np.float32)
    kernel = STENCIL["stencil"](N, taps, LAYOUTS[layout], sweep)
    result = kernel.run(x, device=runtime.select("sim", order=order, costs=costs))
    np.testing.assert_allclose(result.outputs["b"], STENCIL["reference"](x, taps), rtol=1e-5)
    return result


@pytest.mark.parametrize(
    ("shape", "radius", "layout", "sweep"),
    [
        ("star", 2, "rows", SWEEPS[1]),
        ("star", 3, "bricks of a CTA", SWEEPS[2]._replace(alternating=True, short_ends=True)),
        ("star", 4, "rows", SWEEPS[0]._replace(stages=4, alternating=True)),
        ("cube", 1, "cubes", SWEEPS[2]._replace(ctas_per_sm=4, alternating=True, short_ends=True)),
        ("cube", 2, "bricks of a CTA", SWEEPS[1]),
        ("cube", 3, "rows", SWEEPS[2]),
        ("cube", 4, "rows", SWEEPS[2]._replace(stages=2)),
        # CTAs go on with the next tile, of which some have few planes.
        ("cube", 1, "rows", SWEEPS[0]._replace(planes=29, stages=2)),
        ("star", 3, "rows", SWEEPS[0]._replace(planes=70, stages=3, short_ends=True, together=3)),
    ],
)
def test_the_example(shape: str, radius: int, layout: str, sweep: Any) -> None:
    order = "late" if sweep.stages == 4 else "early"
    checked(shape, radius, layout, sweep, order=order)


@pytest.mark.parametrize(("layout", "logic"), [("rows", 1.3), ("cubes", 2.9)])
def test_seven_points_take_few_instructions(layout: str, logic: float) -> None:
    """A CTA of 16 planes computes with 18; positions take few operations."""
    result = checked("star", 1, layout, SWEEPS[0], costs=True)
    counts = {str(kind): count.lanes / N**3 for kind, count in result.costs[0].classes.items()}
    assert counts["float"] <= 7 * 18 / 16
    assert counts["integer"] < 3.5
    assert counts["logic"] < logic
    assert (
        counts["global memory"] < 0.61
    )  # by words of four: a load and a store, and what is around
    assert counts["shared memory"] < 1.6


def test_what_it_does_not_take_is_said() -> None:
    taps = STENCIL["weights"]("star", 1)
    with pytest.raises(ValueError, match="no stencil of radius 1 over 40³ elements by Sweep"):
        STENCIL["stencil"](40, taps, OrderBy(Row(40, 40, 40)), SWEEPS[0])
    with pytest.raises(ValueError, match="radius 5"):
        STENCIL["stencil"](N, STENCIL["weights"]("star", 5), LAYOUTS["rows"], SWEEPS[0])
    upwards = {(0, 0, 0): 1.0, (1, 0, 0): 2.0}
    alternating = SWEEPS[0]._replace(alternating=True)
    uneven = alternating._replace(planes=29, stages=2)
    for given, sweep in ((upwards, alternating), (taps, uneven)):
        with pytest.raises(ValueError, match="an alternating sweep needs the same weights"):
            STENCIL["stencil"](N, given, LAYOUTS["rows"], sweep)
