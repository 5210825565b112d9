"""GEMMs by `mma.sync`: copies of any width, short loops, and rows that only the launch knows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import Col, OrderBy, Row, runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import MmaConfig, matmul

CONFIG = MmaConfig((64, 64, 32), (2, 2), 3)
SMALL = replace(CONFIG, tile=(32, 32, 32))
BYTES = replace(CONFIG, tile=(64, 64, 64))


def layouts(transposes: str, m: int, n: int, k: int) -> dict[str, lg.Layout]:
    """Return the layouts of A and B in BLAS notation: `NT` is A row-major and B column-major."""
    a, b = (Row if letter == "N" else Col for letter in transposes)
    return {"a": OrderBy(a(m, k)), "b": OrderBy(b(k, n))}


@pytest.mark.filterwarnings("ignore:.*bytes are copied one by one")
@pytest.mark.parametrize(
    ("sizes", "options", "config", "order", "width"),
    [
        ((72, 40, 200), layouts("NN", 72, 40, 200), CONFIG, "late", 16),
        ((100, 64, 92), {**layouts("TT", 100, 64, 92), "dtype": "bf16"}, CONFIG, "early", 8),
        # cp.async copies 4 bytes of a row at a time; registers copy single elements.
        ((34, 34, 70), layouts("TN", 34, 34, 70), SMALL, "random:1", 4),
        ((33, 35, 37), layouts("NT", 33, 35, 37), SMALL, "late", None),
        ((33, 35, 37), {**layouts("TN", 33, 35, 37), "dtype": "i8"}, SMALL, "early", None),
        (
            (64, 64, 128),
            {**layouts("NT", 64, 64, 128), "dtype": "f8E4M3FN"},
            replace(BYTES, warps=(4, 1)),
            "random:2",
            16,
        ),
        ((40, 48, 64), {"batch": 2, "out": "f32"}, SMALL, "late", 16),
        ((64, 80, 64), {"c": OrderBy(Col(64, 80)), "alignment": 4}, CONFIG, "early", 4),
    ],
)
def test_tiles_are_multiplied_however_they_are_copied(
    sizes: tuple[int, int, int],
    options: dict[str, Any],
    config: MmaConfig,
    order: str,
    width: int | None,
) -> None:
    kernel = matmul(*sizes, config=config, target="sm_89", **options)
    widths = re.findall(r"cp\.async\.c[ag]\S+ \[\S+\], \[\S+\], (\d+)", kernel.compile("sm_89").ptx)
    assert {int(n) for n in widths} == ({width} - {None})
    result = kernel.run(device=runtime.select("sim", order=order))
    assert result.comparison is not None
    assert result.comparison.equal, str(result.comparison)


def test_short_loops_are_unrolled() -> None:
    """That of three iterations is, whose ring has three stages; that of four is not."""
    for k, unrolled, multiplied in ((96, 3, 3), (128, 0, 1)):
        kernel = matmul(64, 64, k, config=CONFIG, target="sm_80")
        assert kernel.params == {"stages": 3, "unroll": unrolled}
        ptx = kernel.compile("sm_80").ptx
        assert ptx.count("mma.sync") == multiplied * 16


def test_two_ctas_fit_on_a_multiprocessor() -> None:
    """The tile of C lies where tiles of A and B lay, because registers allow two CTAs."""
    kernel = matmul(128, 128, 256, config=MmaConfig((128, 128, 64), (2, 2), 3), target="sm_90")
    (launch,) = kernel.compile("sm_90").launches
    assert launch.shared_bytes == 3 * (128 + 128) * 64 * 2


def test_an_epilogue_of_any_rows() -> None:
    n, k = 72, 72
    kernel = matmul(
        None, n, k,
        epilogue=lambda x, bias, old, beta: x + bias + beta * old.to("f32"),
        operands={
            "bias": lg.Tensor["f32", OrderBy(Row(n))],
            "old": lg.Tensor["f16", f"M, {n}"],
            "beta": lg.Scalar["f32"],
        },
        config=CONFIG,
        target="sm_80",
    )  # fmt: skip
    rng = np.random.default_rng(5)
    for m in (8, 136):
        a, b, old = (rng.integers(-2, 3, s).astype("f2") for s in ((m, k), (k, n), (m, n)))
        bias = rng.integers(-2, 3, n).astype("f4")
        c = np.full((m, n), np.nan, "f2")
        kernel(a, b, c, bias, old, 0.5, device="sim")
        expected = a.astype("f4") @ b.astype("f4") + bias + 0.5 * old.astype("f4")
        np.testing.assert_array_equal(c, expected.astype("f2"))


def test_a_schedule_without_steps_for_tiles_is_refused() -> None:
    with pytest.raises(LegoError, match="the schedule 'unroll', which has no steps for kernels on"):
        matmul(64, 64, 64, config=CONFIG, schedule="unroll", target="sm_80")
