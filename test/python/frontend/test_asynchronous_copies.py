"""Asynchronous copies of threads: what they bring, who may read it when, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import OrderBy, Row, runtime
from lego_mlir.diagnostics import LegoError

PLANES = OrderBy(Row(6, 32, 4))
ROWS = OrderBy(Row(32, 4))
WHOLE = slice(None)


def kernel_of(body: Callable[[Any, Any], None], layout: Any, dtype: str = "f32") -> Any:
    kinds = {name: lg.TensorType(dtype, layout, 16) for name in "ab"}
    return lg.kernel(grid=1, block=32, parameters=kinds)(body)


@pytest.mark.parametrize("order", ["late", "early", "random:1"])
def test_planes_arrive_one_ahead(order: str) -> None:
    """Outside of the window's tensor there are zeros: below plane 0, and behind the last one."""

    def body(a: Any, b: Any) -> None:
        t = lg.thread_id()
        turns, buffer = OrderBy(Row(4, 2)), lg.shared("f32", OrderBy(Row(2, 32, 4)))
        around = a.window((8, 32, 4), lambda z, i, e: (z - 1, i, e), ("zero", "inside", "inside"))

        def copy(z: Any) -> None:
            _, stage = turns.inv(z)
            lg.copy_async(buffer, (stage, t, WHOLE), around, (z, t, WHOLE))
            lg.commit_group()

        copy(0)

        @lg.fold(6, lg.zeros((4,), "f32"))
        def _(z: Any, before: Any) -> Any:
            copy(z + 1)
            lg.wait_group(1)
            lg.barrier()
            _, stage = turns.inv(z)
            plane = buffer[stage, 31 - t, :]
            b[z, t, :] = before + plane
            lg.barrier()
            return plane

    x = np.random.default_rng(0).random((6, 32, 4), np.float32)
    y = np.full_like(x, np.nan)
    kernel = kernel_of(body, PLANES)
    kernel(x, y, device=runtime.select("sim", order=order))
    padded = np.concatenate([np.zeros((2, 32, 4), np.float32), x])[:, ::-1]
    np.testing.assert_array_equal(y, padded[1:-1] + padded[:-2])
    ptx = kernel.compile("sm_80").ptx  # also of what lies below plane 0, of which nothing is read
    assert "cp.async.cg" in ptx
    assert "cp.async.ca" not in ptx


@pytest.mark.parametrize(
    ("waits", "meets", "other", "says"),
    [
        (True, True, True, ""),
        (True, False, False, ""),  # its own elements
        (True, False, True, "data race"),
        (False, True, True, "data race"),
        (False, False, False, "data race"),
    ],
)
def test_who_waits_sees_what_was_copied(waits: bool, meets: bool, other: bool, says: str) -> None:
    def body(a: Any, b: Any) -> None:
        t, buffer = lg.thread_id(), lg.shared("f32", ROWS)
        lg.copy_async(buffer, (t, WHOLE), a, (t, WHOLE))
        lg.commit_group()
        if waits:
            lg.wait_group()
        if meets:
            lg.barrier()
        b[t, :] = buffer[31 - t if other else t, :]

    x = np.arange(128, dtype="f4").reshape(32, 4)
    y, kernel = np.full_like(x, np.nan), kernel_of(body, ROWS)
    early = runtime.select("sim", order="early")
    if says:
        with pytest.raises(LegoError, match=says):
            kernel(x, y, device=early)
        return
    kernel(x, y, device=early)
    np.testing.assert_array_equal(y, x[::-1] if other else x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a, b: lg.copy_async(a, 0, b, 0), "copies from global to shared memory"),
        (lambda a, b: lg.copy_async(3, 0, b, 0), "target is 3, which is no tensor"),
        (
            lambda a, b: lg.copy_async(lg.shared("f16", ROWS), (0, WHOLE), b, (0, WHOLE)),
            "tensor 'b' has elements of f32, and 'shared' of f16",
        ),
        (
            lambda a, b: lg.copy_async(lg.shared("f32", ROWS), (WHOLE, 0), b, (0, WHOLE)),
            r"the slice of tensor 'b' has sizes \[4\], and that of 'shared' \[32\]",
        ),
        (lambda a, b: lg.wait_group(-1), "wait_group: pending is -1"),
        (lambda a, b: lg.wait_group(a[0, 0]), "wait_group: pending is "),
    ],
)
def test_what_is_no_copy(make: Callable[[Any, Any], None], message: str) -> None:
    def body(a: Any, b: Any) -> None:
        make(a, b)

    with pytest.raises(LegoError, match=message):
        kernel_of(body, ROWS).compile("sm_80")


def test_what_cannot_be_copied() -> None:
    def body(a: Any, b: Any) -> None:
        lg.copy_async(lg.shared("f16", odd), (0, WHOLE), a, (0, WHOLE))
        lg.commit_group()

    odd = OrderBy(Row(32, 3))
    with pytest.raises(LegoError, match=r"(?s)copies 4 bytes or more at a time.*else by a load"):
        kernel_of(body, odd, "f16").compile("sm_80")
    with pytest.raises(LegoError, match=r"(?s)sm_75 has no cp.async.*--target=sm_80 or later"):
        kernel_of(lambda a, b: lg.commit_group(), ROWS).compile("sm_75")

    kinds = {"a": lg.TensorType("f32", ROWS, 16)}
    tiles = lg.kernel(grid=1, warps=4, parameters=kinds)(lambda a: lg.commit_group())
    with pytest.raises(LegoError, match="'commit_group' is for kernels of threads"):
        tiles.compile("sm_80")
