"""Conditions on indices and sizes: proven, an error, checked by the launch, or in the kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import OrderBy, Row, parse_layout
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import matmul, transpose
from lego_mlir.runtime import launch

SQUARE = lg.Tensor["f32", OrderBy(Row(4, 4))]
LINE = lg.Tensor["f32", OrderBy(Row(8))]
NUMBERS = lg.Tensor["i32", OrderBy(Row(8))]
TILED = OrderBy(Row(10)).TileBy([3], [4])
ROWS = parse_layout("OrderBy(Row(M/16, 16))")


def kernel_of(body: Any, **types: Any) -> lg.Kernel:
    return lg.kernel(grid=1, block=8, parameters=types)(body)


def ptx(kernel: lg.Kernel, *, check: bool) -> str:
    return kernel.compilation(Options(check=check)).text("ptx")


def test_an_index_beyond_its_row_is_found() -> None:
    """It never leaves the buffer, so no check of memory sees it."""

    def body(a: Any, b: Any) -> None:
        t = lg.thread_id()
        b[t] = a[0, t % 8]

    kernel, b = kernel_of(body, a=SQUARE, b=LINE), np.zeros(8, np.float32)
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    with pytest.raises(LegoError, match="index 1 of 'a' is 4, its size is 4, in thread") as caught:
        kernel(a, b, device="sim")
    location = caught.value.location
    assert location is not None
    assert location.file.endswith("test_index_checks.py")
    assert location.line == body.__code__.co_firstlineno + 2
    kernel(a, b, device="sim", check=False)
    assert list(b) == list(range(8))


def test_a_negative_index_is_found() -> None:
    def body(a: Any) -> None:
        a[0, lg.thread_id() - 1] = 1.0

    with pytest.raises(LegoError, match="index 1 of 'a' is -1, its size is 4"):
        kernel_of(body, a=SQUARE)(np.zeros((4, 4), np.float32), device="sim")


def test_an_index_that_is_surely_outside_is_an_error() -> None:
    def body(a: Any) -> None:
        a[0, lg.thread_id() + 4] = 1.0

    with pytest.raises(LegoError, match="index 1 of 'a' is 4 to 11, its size is 4"):
        kernel_of(body, a=SQUARE).compile()


def test_the_index_of_an_apply_is_checked() -> None:
    square = OrderBy(Row(4, 4))

    def body(b: Any) -> None:
        b[square.apply(0, lg.thread_id())] = 1.0

    with pytest.raises(LegoError, match="index 1 is 4, its size is 4"):
        kernel_of(body, b=LINE)(np.zeros(8, np.float32), device="sim")


def test_a_masked_access_is_checked_only_where_its_element_exists() -> None:
    def body(a: Any, n: Any, b: Any) -> None:
        t = lg.thread_id()
        b[t] = a[n[t].below(100), t % 4]

    kernel = kernel_of(body, a=lg.Tensor["f32", TILED], n=NUMBERS, b=LINE)
    a, b = np.arange(10, dtype=np.float32), np.zeros(8, np.float32)
    tiles = np.array([0, 1, 2, 9, 0, 1, 2, 50], np.int32)
    kernel(a, tiles, b, device="sim")
    assert list(b) == [0, 5, 0, 0, 0, 5, 0, 0]


def test_a_condition_of_the_program_is_not_checked_again() -> None:
    """The prefetch of the products by `mma.sync` is behind `k + 3 < steps`."""
    kernel = matmul(256, 256, 256, target="sm_80")
    assert ptx(kernel, check=True) == ptx(kernel, check=False)


@pytest.mark.parametrize("variant", ["naive", "shared", "vector"])
def test_a_proven_index_has_no_check(variant: Any) -> None:
    kernel = transpose(256, 128, variant=variant)
    assert ptx(kernel, check=True) == ptx(kernel, check=False)


def sized_by_argument() -> lg.Kernel:
    def body(a: Any, m: Any) -> None:
        rows = lg.sized(ROWS, M=m * 2)
        lg.pick(0, [a], rows)[0, lg.thread_id()] = 1.0

    return kernel_of(body, a=lg.Tensor["f32", OrderBy(Row(64))], m=lg.Scalar["index"])


@pytest.mark.parametrize("check", [False, True])
def test_a_value_the_launch_computes_is_checked_by_it(check: bool, tmp_path: Any) -> None:
    kernel, a = sized_by_argument(), np.zeros(64, np.float32)
    kernel(a, 16, device="sim", check=check)
    with pytest.raises(LegoError, match=r"\(m \* 2\) is 40, but the layout .* 16 divides it"):
        kernel(a, 20, device="sim", check=check)
    with pytest.raises(LegoError, match=r"\(m \* 2\) is 0, but the layout .* 1 at least"):
        kernel(a, 0, device="sim", check=check)
    kernel.compile().save(tmp_path / "t.lego")
    with pytest.raises(LegoError, match="16 divides it"):
        launch(Artifact.load(tmp_path / "t.lego"), a, 20, device="sim")


def test_a_check_names_its_argument() -> None:
    def body(a: Any, n: Any) -> None:
        a[n] = 1.0

    kernel, a = kernel_of(body, a=LINE, n=lg.Scalar["index"]), np.zeros(8, np.float32)
    kernel(a, 7, device="sim")
    for n in (8, -1):
        with pytest.raises(LegoError, match=f"argument 'n' is {n}, but is index 0 of 'a': .* 8"):
            kernel(a, n, device="sim", check=False)


def test_an_argument_in_a_branch_is_not_checked_by_the_launch() -> None:
    """Only what surely runs is a fact of the launch."""

    def body(a: Any, n: Any) -> None:
        def nothing() -> None:
            a[0] = 1.0

        def far() -> None:
            a[n] = 1.0

        lg.choose(lg.thread_id() // 8, [nothing, far])

    kernel_of(body, a=LINE, n=lg.Scalar["index"])(np.zeros(8, np.float32), 99, device="sim")


def test_a_size_that_only_the_kernel_knows_is_checked_in_the_kernel() -> None:
    def body(a: Any, sizes: Any) -> None:
        rows = lg.sized(ROWS, M=sizes[0].below(65))
        lg.pick(0, [a], rows)[0, lg.thread_id()] = 1.0

    kernel = kernel_of(body, a=lg.Tensor["f32", OrderBy(Row(64))], sizes=NUMBERS)
    a = np.zeros(64, np.float32)
    kernel(a, np.full(8, 32, np.int32), device="sim")
    for size, message in ((40, "16 divides it"), (0, "1 at least"), (80, "below 65")):
        with pytest.raises(LegoError, match=rf"is {size}, .*{message}"):
            kernel(a, np.full(8, size, np.int32), device="sim")


def test_a_fact_that_is_no_expression_is_refused() -> None:
    kernel = sized_by_argument()
    artifact = kernel.compile()
    for wrong in ("", "+", "a9", "x", "1 2", "a0 %"):
        broken = replace(artifact, facts=(replace(artifact.facts[0], condition=wrong),))
        with pytest.raises(LegoError, match="not understood"):
            launch(broken, np.zeros(64, np.float32), 16, device="sim")
