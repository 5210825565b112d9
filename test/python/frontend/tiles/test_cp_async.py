"""Kernels on tiles that all warps copy into rings: cp.async and mma.sync, in the simulator."""

import re
from typing import Any

import numpy as np
import pytest
from tile_attention import attention, check_against_numpy

import lego_mlir as lg
from lego_mlir import runtime
from lego_mlir.compiler.driver import Options
from lego_mlir.hardware.targets import Target
from lego_mlir.step_checks import check_each_step

ORDERS = ("late", "early", "random")


def _gemm(
    shape: tuple[int, int, int],
    tile: tuple[int, int, int] = (64, 64, 64),
    alignment: int = 16,
    dtype: str = "f16",
    schedule: str = "cp_async",
    **params: int,
) -> Any:
    """Return a GEMM whose tensors' addresses are multiples of `alignment` bytes."""
    m, n, k = shape
    rows, columns, depth = tile
    total, out = ("i32", "i32") if dtype == "i8" else ("f32", "f16")
    a_matrix, b_matrix = (lg.Tensor[dtype, s, alignment] for s in ((m, k), (k, n)))
    c_matrix = lg.Tensor[out, (m, n), 16]

    @lg.kernel(grid=(-(-n // columns), -(-m // rows)), warps=4, schedule=schedule, params=params)
    def gemm(a: a_matrix, b: b_matrix, c: c_matrix) -> None:
        i, j = lg.block_id("y"), lg.block_id("x")

        @lg.fold(-(-k // depth), lg.zeros((rows, columns), total))
        def sums(step: Any, sums: Any) -> Any:
            return lg.dot(a.tile(rows, depth)[i, step], b.tile(depth, columns)[step, j], sums)

        c.tile(rows, columns)[i, j] = sums.to(out)

    return gemm


def _compilation(kernel: Any, target: str) -> Any:
    return kernel.compilation(Options(target=Target.parse(target)))


def _check(kernel: Any, target: str) -> None:
    """Check each step, and what the simulator computes in all orders."""
    lines = check_each_step(_compilation(kernel, target))
    assert [line.partition(":")[0] for line in lines][-4:] == [
        "the schedule",
        *(f"lowering, run in the simulator ({order})" for order in ORDERS),
    ]
    errors = [line.split()[-1] for line in lines[-3:]]
    assert all(error == "same" or float(error) < 2e-3 for error in errors)


@pytest.mark.parametrize(
    ("shape", "stages", "target"),
    [
        ((64, 128, 320), 4, "sm_80"),  # more iterations than stages
        ((128, 64, 192), 2, "sm_90"),
        ((104, 72, 136), 3, "sm_80"),  # padded in every dimension, in whole chunks
        ((64, 64, 64), 4, "sm_90"),  # one iteration, with fewer tiles than are copied ahead
    ],
)
def test_a_gemm_in_all_orders(shape: tuple[int, int, int], stages: int, target: str) -> None:
    _check(_gemm(shape, stages=stages), target)


@pytest.mark.parametrize(
    ("columns", "alignment", "size"),
    [
        (72, 16, 16),
        (68, 16, 8),  # rows of 136 bytes
        (66, 16, 4),
        (64, 4, 4),
    ],
)
def test_copies_are_as_wide_as_rows_are_aligned(columns: int, alignment: int, size: int) -> None:
    kernel = _gemm((64, columns, 128), alignment=alignment, stages=3)
    ptx = _compilation(kernel, "sm_80").ptx
    found = re.findall(r"cp\.async\.c[ag]\.shared\.global \[[^]]*\], \[[^]]*\], (\d+)", ptx)
    assert str(size) in found
    _check(kernel, "sm_80")


@pytest.mark.parametrize("shape", [(64, 65, 128), (63, 64, 67)])
def test_rows_of_odd_length_are_copied_through_registers(shape: tuple[int, int, int]) -> None:
    kernel = _gemm(shape, stages=3)
    assert 'engine = "plain"' in str(_compilation(kernel, "sm_80").placed)
    _check(kernel, "sm_80")


@pytest.mark.parametrize(("schedule", "target"), [("cp_async", "sm_80"), ("pipelined", "sm_90a")])
def test_rings_hold_tiles_whose_size_along_k_is_rounded_up(schedule: str, target: str) -> None:
    """40 elements along k are 64 in registers; the ring has those of the next tile there."""
    kernel = _gemm((64, 64, 104), tile=(64, 64, 40), schedule=schedule, stages=3)
    assert str(_compilation(kernel, target).placed).count("lego.make_ring") == 2
    _check(kernel, target)


@pytest.mark.parametrize("dtype", ["bf16", "i8"])
def test_other_types(dtype: str) -> None:
    _check(_gemm((64, 64, 256), dtype=dtype, stages=3), "sm_80")


@pytest.mark.parametrize("shape", [(70, 96, 160), (10, 32, 16)])
def test_sizes_that_only_the_launch_knows(shape: tuple[int, int, int]) -> None:
    a_matrix, b_matrix, c_matrix = (
        lg.Tensor["f16", sizes] for sizes in ("M, K{16}", "K{16}, N{16}", "M, N{16}")
    )

    @lg.kernel(
        grid=lambda a, b: (-(-b.shape[1] // 64), -(-a.shape[0] // 64)),
        warps=4,
        schedule="cp_async",
        params={"stages": 3},
    )
    def gemm(a: a_matrix, b: b_matrix, c: c_matrix) -> None:
        i, j = lg.block_id("y"), lg.block_id("x")

        @lg.fold((a.shape[1] + 63) // 64, lg.zeros((64, 64), "f32"))
        def sums(k: Any, sums: Any) -> Any:
            return lg.dot(a.tile(64, 64)[i, k], b.tile(64, 64)[k, j], sums)

        c.tile(64, 64)[i, j] = sums.to("f16")

    m, n, k = shape
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, s).astype(np.float16) for s in ((m, k), (k, n)))
    for order in ORDERS:
        c = np.full((m, n), np.nan, np.float16)
        gemm(a, b, c, device=runtime.select("sim", order=order))
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_dots_are_divided_by_the_depth() -> None:
    text = str(_compilation(_gemm((64, 64, 256), stages=3, depth=32), "sm_80").placed)
    assert "tensor<64x32xf16" in text
    with pytest.raises(lg.LegoError, match="dots of 24 along k do not divide one of 64"):
        _compilation(_gemm((64, 64, 256), stages=3, depth=24), "sm_80").placed  # noqa: B018


def test_a_ring_of_one_stage_holds_no_tile_that_is_copied_ahead() -> None:
    with pytest.raises(lg.LegoError, match="a ring of 1 stages holds no tile") as found:
        _compilation(_gemm((64, 64, 256), stages=1), "sm_80").placed  # noqa: B018
    assert "--param stages=2" in str(found.value.hint) or "stages" in str(found.value.hint)


@pytest.mark.parametrize(
    ("shape", "warps", "target"),
    [
        ((1, 192, 64), 4, "sm_80"),
        ((1, 136, 32), 4, "sm_90"),
        ((1, 128, 32), 8, "sm_80"),  # pairs of warps exchange probabilities through shared memory
    ],
)
def test_attention(shape: tuple[int, int, int], warps: int, target: str) -> None:
    kernel = attention(shape, warps=warps, schedule="cp_async", params={"stages": 2})
    text = str(_compilation(kernel, target).placed)
    assert text.count('engine = "cp.async"') == 4  # keys and values, before the loop and in it
    _check(kernel, target)
    check_against_numpy(kernel, shape)


def test_one_thread_of_a_cta_updates_what_is_no_tile() -> None:
    operand, result = lg.Tensor["f16", (32, 32)], lg.Tensor["f32", (16, 16)]
    count = lg.Tensor["i32", (1,)]

    @lg.kernel(grid=2, warps=1, schedule="cp_async")
    def counted(a: operand, c: result, n: count) -> None:
        @lg.fold(2, lg.zeros((16, 16), "f32"))
        def sums(k: Any, sums: Any) -> Any:
            return lg.dot(a.tile(16, 16)[0, k], a.tile(16, 16)[k, 0], sums)

        c.tile(16, 16)[0, 0] = sums
        lg.atomic_add(n, 0, 1)

    n = np.zeros(1, np.int32)
    counted(np.ones((32, 32), np.float16), np.zeros((16, 16), np.float32), n, device="sim")
    assert n[0] == 2
