"""Grouped GEMMs in the simulator, compared with NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gemm_kernels import encoded

import lego_mlir as lg
from lego_mlir import Col, GenP, OrderBy
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import MmaConfig, grouped_matmul
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.runtime.simulator import Simulator

SMALL = WgmmaConfig((64, 64, 64), 1, 3)
SHAPES = [(128, 64, 128), (72, 136, 64), (64, 64, 320), (8, 8, 8)]
"""Whole tiles and partial ones, one iteration of the K loop and many."""


ORDERS = ("late", "early", "random")


def check(
    kernel: lg.Kernel,
    shapes: Sequence[tuple[int, int, int]],
    dtype: str = "f16",
    order: str = "late",
    target: str = "sm_90a",
) -> None:
    """Check that a kernel computes what NumPy does, on small integers, whose sums are exact."""
    random = np.random.default_rng(0)
    kind = np.int32 if dtype == "i8" else np.float16
    given, expected = [], {}
    for index, (m, n, k) in enumerate(shapes):
        a, b = random.integers(-2, 3, (m, k)), random.integers(-2, 3, (k, n))
        given += [encoded(a, dtype), encoded(b, dtype), np.zeros((m, n), kind)]
        if m:
            expected[f"c{index}"] = (a @ b).astype(kind)
    result = lg.run(kernel.compile(target), given, Simulator(order=(order, 0)))
    assert list(result.outputs) == list(expected)
    for name, exact in expected.items():
        np.testing.assert_array_equal(result.outputs[name], exact)


@pytest.mark.parametrize(
    ("config", "persistent_ctas", "order"),
    [
        (SMALL, 0, "early"),
        (SMALL, 3, "late"),
        (SMALL, 3, "random"),
    ],
)
def test_gemms_of_any_sizes(config: WgmmaConfig, persistent_ctas: int, order: str) -> None:
    config = replace(config, persistent_ctas=persistent_ctas)
    kernel = grouped_matmul(SHAPES, config=config, target="sm_90a")
    assert kernel.schedule == "persistent"
    assert len(kernel.compile("sm_90a").launches) == 1
    check(kernel, SHAPES, order=order)


def test_a_group_of_one_gemm_is_correct() -> None:
    check(grouped_matmul(SHAPES[:1], config=SMALL, target="sm_90a"), SHAPES[:1])


def test_two_consumers_and_a_chosen_config() -> None:
    config = WgmmaConfig((128, 64, 64), 2, 3)
    check(grouped_matmul(SHAPES, config=config, target="sm_90a"), SHAPES)
    check(grouped_matmul(SHAPES[:2], target="sm_90a"), SHAPES[:2])


MANY = [(7 * i % 10 * 8, 8 + 8 * (i % 3), 64 + 8 * (i % 5)) for i in range(64)]
"""GEMMs of many sizes, some of them empty."""


def test_more_gemms_than_ctas_are_correct() -> None:
    config = WgmmaConfig((64, 16, 128), 1, 2, persistent_ctas=3)
    check(grouped_matmul(MANY, config=config, target="sm_90a"), MANY)


def test_the_code_does_not_grow_with_the_number_of_gemms() -> None:
    """Neither a jump table nor a call stands beside wgmma: the build would fail."""

    def code(count: int) -> list[str]:
        shapes = [(64 * (1 + i % 5), 128, 64 * (1 + i % 3)) for i in range(count)]
        ptx = grouped_matmul(shapes, config=SMALL, target="sm_90a").compile("sm_90a").ptx
        assert "brx.idx" not in ptx
        body = ptx[ptx.index(".entry") :]
        return [line for line in body.splitlines() if line.startswith(("\t", "\t@"))]

    few, more, many = (len(code(count)) for count in (5, 9, 64))
    assert many - more <= 3 * (more - few) + 30  # the steps of a longer search


def test_gemms_without_rows() -> None:
    every = [(0, 64, 64), (40, 72, 64), (0, 8, 8), (8, 8, 200)]
    for shapes in (every, every[:2]):
        kernel = grouped_matmul(shapes, config=SMALL, target="sm_90a")
        for order in ORDERS:
            check(kernel, shapes, order=order)


def test_column_major_operands() -> None:
    shapes = SHAPES[:2]
    a = [OrderBy(Col(m, k)) for m, _, k in shapes]
    b = [OrderBy(Col(k, n)) for _, n, k in shapes]
    check(grouped_matmul(shapes, a=a, b=b, config=SMALL, target="sm_90a"), shapes)


def test_integers() -> None:
    shapes = [(64, 48, 384), (72, 16, 128)]
    b = [OrderBy(Col(k, n)) for _, n, k in shapes]
    config = WgmmaConfig((64, 32, 128), 1, 3)
    check(grouped_matmul(shapes, "i8", b=b, config=config, target="sm_90a"), shapes, "i8")


def test_8_bit_floats_with_promotion() -> None:
    shapes = [(64, 48, 384), (72, 16, 128)]
    b = [OrderBy(Col(k, n)) for _, n, k in shapes]
    config = WgmmaConfig((64, 24, 128), 1, 3)
    kernel = grouped_matmul(shapes, "f8E4M3FN", b=b, config=config, promote=2, target="sm_90a")
    check(kernel, shapes, "f8E4M3FN")


def test_an_epilogue() -> None:
    shapes = SHAPES[:2]
    kernel = grouped_matmul(shapes, epilogue=lambda x: -x, config=SMALL, target="sm_90a")
    ones = [np.ones(s, np.float16) for m, n, k in shapes for s in ((m, k), (k, n), (m, n))]
    result = lg.run(kernel.compile("sm_90a"), ones, Simulator())
    for found, (_, _, k) in zip(result.outputs.values(), shapes, strict=True):
        np.testing.assert_array_equal(found, -k)


# ---------------------------------------------------------------------------- without TMA
OTHERS = [(40, 33, 60), (32, 32, 64), (0, 5, 5), (1, 35, 77)]
"""Sizes whose rows TMA cannot copy, and one whose rows it can."""

WARPS = MmaConfig((32, 32, 32), (2, 2), 3)


def test_gemms_of_any_sizes_by_mma() -> None:
    kernel = grouped_matmul(OTHERS, config=WARPS, target="sm_80")
    for order in ORDERS:
        check(kernel, OTHERS, order=order, target="sm_80")


def test_whole_tiles_by_mma() -> None:
    shapes = [(64, 32, 32), (32, 96, 96)]
    kernel = grouped_matmul(shapes, config=WARPS, target="sm_80")
    assert "cp.async.cg" in kernel.compile("sm_80").ptx  # by 16 bytes
    check(kernel, shapes, target="sm_80")


def test_column_major_operands_by_mma() -> None:
    shapes = [(64, 48, 40), (72, 8, 64)]
    a = [OrderBy(Col(m, k)) for m, _, k in shapes]
    b = [OrderBy(Col(k, n)) for _, n, k in shapes]
    check(grouped_matmul(shapes, a=a, b=b, target="sm_80"), shapes, target="sm_80")


def test_8_bit_floats_and_integers_by_mma() -> None:
    shapes = [(64, 48, 64), (40, 16, 96)]
    b = [OrderBy(Col(k, n)) for _, n, k in shapes]
    for dtype in ("f8E4M3FN", "i8"):
        kernel = grouped_matmul(shapes, dtype, b=b, target="sm_89")
        check(kernel, shapes, dtype, target="sm_89")


def test_one_gemm_that_tma_cannot_copy_makes_all_fall_back_to_cp_async() -> None:
    with pytest.warns(
        UserWarning, match=r"GEMM 1, 64×64×60: A: .*'cp_async', not 'persistent'"
    ) as caught:
        kernel = grouped_matmul([(64, 64, 64), (64, 64, 60)], target="sm_90a")
    assert caught[0].filename == __file__
    assert kernel.schedule == "cp_async"
    check(kernel, [(64, 64, 64), (64, 64, 60)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grouped_matmul([(64, 64, 60)], schedule="cp_async", target="sm_90a")


def test_a_warning_for_8_bit_elements_that_are_not_along_k() -> None:
    with pytest.warns(UserWarning, match="grouped_matmul: tensor cores multiply i8 along k"):
        grouped_matmul([(64, 64, 64)], "i8", target="sm_80")


def test_an_epilogue_by_mma() -> None:
    shapes = [(40, 24, 16), (8, 8, 8)]
    kernel = grouped_matmul(shapes, epilogue=lambda x: -x, target="sm_80")
    ones = [np.ones(s, np.float16) for m, n, k in shapes for s in ((m, k), (k, n), (m, n))]
    result = lg.run(kernel.compile("sm_80"), ones, Simulator())
    for found, (_, _, k) in zip(result.outputs.values(), shapes, strict=True):
        np.testing.assert_array_equal(found, -k)


# ------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("shapes", "given", "message"),
    [
        (5, {}, "shapes is a sequence, not 5"),
        ([5], {}, "5 is not the \\(m, n, k\\)"),
        ([(64, 64)], {}, r"\(64, 64\) is not the \(m, n, k\)"),
        ([(64, 64, 64)], {"a": 5}, "a is a sequence or None, not 5"),
        ([], {}, "none of the 0 GEMMs has a row of C"),
        ([(0, 8, 8)], {}, "none of the 1 GEMMs has a row of C"),
        ([(64, 64, 64)], {"dtype": "f64"}, "do not multiply 'f64'"),
        ([(64, 0, 64)], {}, r"\(64, 0, 64\) is not the \(m, n, k\)"),
        ([(64, 64, 64), (64, 64, 60)], {"schedule": "persistent"}, "GEMM 1, 64×64×60: A: "),
        (SHAPES, {"b": [OrderBy(Col(8, 8))]}, "1 layouts b for 4 GEMMs"),
        ([(64, 64, 64)], {"dtype": "i8", "schedule": "persistent"}, "GEMM 0, .* only along k"),
        (SHAPES, {"config": WgmmaConfig((64, 64, 64), 1, 3, cluster=(2, 1))}, "cluster 2×1"),
        (SHAPES, {"schedule": "fast"}, "no schedule 'fast'"),
        (SHAPES, {"schedule": "cp_async", "config": SMALL}, "is for the schedule 'persistent'"),
        (
            [(8, 8, 8)],
            {"a": [OrderBy(GenP([8, 8], lg.antidiagonal))]},
            "neither row-major nor",
        ),
        ([(8, 8, 8)], {"out": "i32"}, "C of i32 from f32 accumulators"),
    ],
)
def test_wrong_arguments_are_refused(shapes: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        grouped_matmul(shapes, target="sm_90a", **given)


def test_too_many_tensor_maps_are_refused() -> None:
    shapes = [(8, 8, 8)] * 86
    message = "86 GEMMs have 258 tensor maps, and a kernel takes those of 85"
    with pytest.raises(LegoError, match=message) as caught:
        grouped_matmul(shapes, config=SMALL, target="sm_90a")
    assert caught.value.hint == "fewer GEMMs in one launch"
    with pytest.warns(UserWarning, match=message):
        assert grouped_matmul(shapes, target="sm_90a").schedule == "cp_async"


def test_gemms_of_different_orders_are_refused() -> None:
    shapes = SHAPES[:2]
    b = [OrderBy(Col(k, n)) if n == 64 else lg.OrderBy(lg.Row(k, n)) for _, n, k in shapes]
    with pytest.raises(LegoError, match="GEMM 1 has an A by row and a B by row"):
        grouped_matmul(shapes, b=b, target="sm_90a")
