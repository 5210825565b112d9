"""Tensors that are passed as they lie: arrays whose strides are those of the layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dlpack_only import DlpackOnly

import lego_mlir as lg
from lego_mlir import Col, OrderBy, RegP, Row
from lego_mlir.artifact import Argument
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import matmul
from lego_mlir.runtime import select
from lego_mlir.runtime.tensor_strides import tensor_strides


def copier(layout: lg.Layout, shape: tuple[int, ...]) -> lg.Kernel:
    """A kernel that copies a tensor in a layout to a row-major one, element by element."""
    rows = OrderBy(Row(*shape))

    types = {"a": lg.Tensor["f32", layout], "b": lg.Tensor["f32", rows]}

    @lg.kernel(grid=1, block=int(np.prod(shape)), parameters=types)
    def copied(a: Any, b: Any) -> None:
        at = rows.inv(lg.thread_id())
        b[at] = a[at]

    return copied


@pytest.mark.parametrize("lend", [lambda x: x, DlpackOnly], ids=["numpy", "dlpack"])
@pytest.mark.parametrize(
    ("layout", "axes"),
    [(OrderBy(Col(8, 6)), (1, 0)), (OrderBy(RegP([4, 6, 2], [2, 0, 1])), (2, 0, 1))],
    ids=str,
)
def test_a_tensor_with_the_strides_of_the_layout(
    layout: lg.Layout, axes: tuple[int, ...], lend: Any
) -> None:
    shape = layout.dims
    x = np.arange(48, dtype=np.float32).reshape([shape[k] for k in axes])
    x = x.transpose(np.argsort(axes))  # dense, in the order of the layout
    assert x.shape == shape
    b = np.zeros(shape, np.float32)
    copier(layout, shape)(lend(x), lend(b), device="sim")
    np.testing.assert_array_equal(b, x)


def test_what_is_written_lands_in_the_tensor() -> None:
    by_columns, rows = OrderBy(Col(8, 6)), OrderBy(Row(8, 6))

    types = {"a": lg.Tensor["f32", rows], "b": lg.Tensor["f32", by_columns]}

    @lg.kernel(grid=1, block=48, parameters=types)
    def copied(a: Any, b: Any) -> None:
        i, j = rows.inv(lg.thread_id())
        b[i, j] = a[i, j]

    a = np.arange(48, dtype=np.float32).reshape(8, 6)
    b = np.zeros((8, 6), np.float32, order="F")
    copied(a, b, device="sim")
    np.testing.assert_array_equal(b, a)
    flat = np.zeros(48, np.float32)  # the buffer, as before
    copied(a, flat, device="sim")
    np.testing.assert_array_equal(flat.reshape(6, 8), a.T)


def test_a_column_major_operand_of_a_gemm() -> None:
    """The README's own: `matmul(..., b=OrderBy(Col(...)))(a, b, c)`."""
    a, b = np.random.default_rng(0).integers(-2, 3, (2, 64, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float16)
    kernel = matmul(64, 64, 64, b=OrderBy(Col(64, 64)), target="sm_80")
    kernel(a, np.asfortranarray(b), c, device="sim")
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize(
    ("layout", "array", "message", "hint"),
    [
        (
            OrderBy(Col(8, 8)),
            np.zeros((8, 8), np.float32),
            r"'a' does not lie in memory as OrderBy\(Col\(8, 8\)\): its strides are \[8, 1\], "
            r"those of the argument \[1, 8\]",
            "np.asfortranarray",
        ),
        (
            OrderBy(Row(8, 8)),
            np.zeros((8, 8), np.float32, order="F"),
            r"'a' is not dense and row-major: its strides are \[1, 8\]",
            "np.ascontiguousarray",
        ),
        (
            OrderBy(Col(8, 8)),
            np.zeros((16, 8), np.float32, order="F")[::2],
            r"its strides are \[2, 16\]",
            "np.asfortranarray",
        ),
        (
            OrderBy(Col(8, 8)),
            np.zeros((4, 16), np.float32),
            r"shape \[8, 8\], or as a buffer \[64\], the array has \[4, 16\]",
            "kernel.run",
        ),
    ],
)
def test_other_strides_are_errors(layout: lg.Layout, array: Any, message: str, hint: str) -> None:
    b = np.zeros((8, 8), np.float32)
    with pytest.raises(LegoError, match=message) as e:
        copier(layout, (8, 8))(array, b, device="sim")
    assert hint in str(e.value.hint)


@pytest.mark.parametrize(
    ("layout", "shape", "strides"),
    [
        ("OrderBy(Row(8, 6))", (8, 6), (6, 1)),
        ("OrderBy(Col(8, 6))", (8, 6), (1, 8)),
        ("OrderBy(Col(8, 6)).TileBy([4, 2], [2, 3])", (8, 6), (1, 8)),
        ("OrderBy(Col(8, 6)).TileBy([ceildiv(8, 3), 2], [3, 3])", (8, 6), (1, 8)),
        ("OrderBy(Row(8, 6)).GroupBy([4, 2, 6])", (4, 2, 6), (12, 6, 1)),
    ],
)
def test_strides_of_layouts(layout: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    found = tensor_strides(Argument("a", "f32", (48,), layout))
    assert found is not None
    assert (found.shape, found.strides) == (shape, strides)


def test_a_swizzle_has_no_strides() -> None:
    layout = "OrderBy(GenP([8, 8], swizzle(2, 1, 4)))"
    assert tensor_strides(Argument("a", "f32", (64,), layout)) is None


def test_run_copies_a_tensor_of_any_strides() -> None:
    x = np.arange(96, dtype=np.float32).reshape(6, 16)[:, ::-2].T
    result = copier(OrderBy(Col(8, 6)), (8, 6)).run(DlpackOnly(x), device="sim")
    np.testing.assert_array_equal(result.outputs["b"], x)


def test_a_device_that_was_selected() -> None:
    a, b = np.arange(48, dtype=np.float32).reshape(8, 6), np.zeros((8, 6), np.float32)
    chosen = select(order="random:3")
    kernel = copier(OrderBy(Row(8, 6)), (8, 6))
    kernel(a, b, device=chosen)
    np.testing.assert_array_equal(a, b)
    assert kernel.run(a, device=chosen).device == chosen.describe()
