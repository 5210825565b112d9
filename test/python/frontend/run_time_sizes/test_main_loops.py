"""Main loops in rings, of as many iterations as the launch knows: they run at least once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg

M, N, DEPTH = 64, 64, 1280
LONG_A, LONG_B, C = (lg.Tensor["f16", shape] for shape in ((M, DEPTH), (DEPTH, N), (M, N)))
COUNT = lg.Scalar["index"]


def operands(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers, whose sums of products are exact."""
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((M, k), (k, N)))
    return a, b


def strided_loop(schedule: str, times: int, stride: int) -> Any:
    """Return a kernel that runs a main loop to `times * n` twice, as one ring."""

    @lg.kernel(grid=1, warps=4, schedule=schedule)
    def twice(a: LONG_A, b: LONG_B, n: COUNT, c: C):
        @lg.fold(2, lg.zeros((M, N), "f32"))
        def total(_, total):
            @lg.fold(times * n, total, step=stride)
            def total(k, total):
                at = (k // stride).below(DEPTH // 32)
                return lg.dot(a.tile(M, 32)[0, at], b.tile(32, N)[at, 0], total)

            return total

        c[:, :] = total.to("f16")

    return twice


@pytest.mark.parametrize(
    ("schedule", "times", "stride"),
    [("cp_async", 5 * 32, 32), ("pipelined", 5 * 32, 32), ("cp_async", 5, 3), ("pipelined", 5, 3)],
)
def test_strides_that_divide_a_multiple_of_the_trips_or_not(
    schedule: str, times: int, stride: int
) -> None:
    a, b = operands(DEPTH)
    c = np.empty((M, N), np.float16)
    strided_loop(schedule, times, stride)(a, b, 2, c, device="sim")
    k = -(-times * 2 // stride) * 32
    assert (c == 2 * (a[:, :k].astype(np.float32) @ b[:k].astype(np.float32))).all()


def gemm(schedule: str, depth: str, tile: int) -> Any:
    """Return a kernel whose K is `depth` times as large as what `of` has elements."""
    types = {
        name: lg.Tensor["f16", s]
        for name, s in (("a", f"{M}, {depth}"), ("b", f"{depth}, {N}"), ("of", "K"))
    }

    def gemm(a: Any, b: Any, of: Any, c: Any) -> None:
        @lg.fold(a.tile(M, tile).shape[1], lg.zeros((M, N), "f32"))
        def total(k, total):
            return lg.dot(a.tile(M, tile)[0, k], b.tile(tile, N)[k, 0], total)

        c[:, :] = total.to("f16")

    gemm.__annotations__ = {**types, "c": C}
    return lg.kernel(grid=1, warps=4, schedule=schedule)(gemm)


@pytest.mark.parametrize(
    ("schedule", "depth", "tile", "size"),
    [("persistent", "K", 32, 40), ("overlapped", "K{64}", 64, 128), ("overlapped", "96*K", 64, 1)],
)
def test_a_loop_over_a_size_runs_at_least_once(
    schedule: str, depth: str, tile: int, size: int
) -> None:
    """Launches take no empty arrays, and a size is at least what divides it."""
    k = size * (96 if depth.startswith("96") else 1)
    a, b = operands(k)
    c = np.empty((M, N), np.float16)
    gemm(schedule, depth, tile)(a, b, np.zeros(size, np.float16), c, device="sim")
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_a_size_that_its_layout_s_divisor_does_not_divide() -> None:
    """The loop's first iteration relies on the promise, so the launch checks it."""
    a, b = operands(40)
    with pytest.raises(lg.LegoError, match=r"'a'.* is 40, .*says that 64 divides it"):
        gemm("overlapped", "K{64}", 64)(a, b, a[0], np.empty((M, N), np.float16), device="sim")
