"""Ring buffers of kernels of threads: what TMA brings, who may read it when, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import Col, GenP, OrderBy, Row, bricks, runtime
from lego_mlir.diagnostics import LegoError

Z, N, TILE = 5, 32, 16
FIELD = OrderBy(Row(Z, N, N))
PLANE = OrderBy(Row(TILE + 2, TILE // 4 + 2, 4))
WHOLE = (slice(None),) * 3
OUTSIDE = ("zero", "zero", "zero", "inside")


def kernel_of(body: Callable[[Any, Any], None], layout: Any = FIELD, block: int = 64) -> Any:
    kinds = {name: lg.TensorType("f32", layout, 16) for name in "ab"}
    return lg.kernel(grid=(2, 2), block=block, parameters=kinds)(body)


def sums(stages: int, *, waits: bool = True, releases: bool = True) -> Callable[[Any, Any], None]:
    """Return a body that adds to each word those above, below and in the plane before."""

    def body(a: Any, b: Any) -> None:
        t, cta = lg.thread_id(), (lg.block_id("y"), lg.block_id("x"))
        words = a.view(FIELD.GroupBy([Z, N, N // 4, 4]))
        near = words.window(
            (Z + 1, 2, 2, *PLANE.dims),
            lambda z, cy, cx, y, x, e: (z - 1, TILE * cy + y - 1, TILE // 4 * cx + x - 1, e),
            OUTSIDE,
        )
        ring = lg.ring("f32", PLANE, stages)
        out = b.view(FIELD.GroupBy([Z, 2, TILE, 2, TILE // 4, 4]))
        y, x = OrderBy(Row(TILE, TILE // 4)).inv(t)

        @lg.if_(t == 0)
        def _() -> None:
            for z in range(stages):
                ring.copy(z, near, (z, *cta, *WHOLE))

        @lg.fold(Z + 1, lg.zeros((4,), "f32"))
        def _(z: Any, before: Any) -> Any:
            stage = ring.wait(z) if waits else z % stages
            plane = ring.tensor[stage, y + 1, x + 1, :]
            total = before + ring.tensor[stage, y, x + 1, :] + ring.tensor[stage, y + 2, x + 1, :]
            if releases:
                ring.release(z)

            @lg.if_((t == 0) & (z + stages < Z + 1))
            def _() -> None:
                ring.copy(z + stages, near, (z + stages, *cta, *WHOLE))

            @lg.if_(z > 0)
            def _() -> None:
                out[(z - 1, cta[0], y, cta[1], x, slice(None))] = total

            return plane

    return body


@pytest.mark.parametrize(("stages", "order"), [(1, "early"), (3, "late"), (3, "random:1")])
def test_planes_arrive_stages_ahead(stages: int, order: str) -> None:
    """A plane is no multiple of 128 bytes, and what is outside of the field arrives as zeros."""
    x = np.random.default_rng(0).random((Z, N, N), np.float32)
    y, kernel = np.full_like(x, np.nan), kernel_of(sums(stages))
    kernel(x, y, device=runtime.select("sim", order=order))
    rows = np.pad(x, ((1, 0), (1, 1), (0, 0)))
    np.testing.assert_array_equal(y, rows[:-1, 1:-1] + rows[1:, :-2] + rows[1:, 2:])
    if stages == 1:
        ptx = kernel.compile("sm_90a").ptx
        assert "cp.async.bulk.tensor.3d" in ptx  # words of a row are one dimension of the map
        assert "ld.global" not in ptx


@pytest.mark.parametrize(
    ("missing", "says"),
    [("waits", "which nothing has written"), ("releases", "deadlock|no thread")],
)
def test_who_does_not_wait_or_release_is_told(missing: str, says: str) -> None:
    x = np.zeros((Z, N, N), np.float32)
    kernel = kernel_of(sums(2, **{missing: False}))
    with pytest.raises(LegoError, match=says):
        kernel(x, np.zeros_like(x), device=runtime.select("sim", order="late"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: lg.ring("f32", PLANE, 0), "ring: stages is 0"),
        (lambda a: lg.ring("f32", PLANE, 2, warps=3), "ring: warps is 3, and the CTA has 2"),
        (lambda a: lg.ring("f32", OrderBy(Col(3, 5)), 2), "60 bytes, no multiple of 128"),
        (
            lambda a: lg.ring("f32", OrderBy(Row(8, N)), 2).copy(0, a, (0, slice(None), 0)),
            r"ring.copy: the slice of tensor 'a' has sizes \[32\], and that of 'ring' \[8, 32\]",
        ),
        (
            lambda a: lg.ring("f32", OrderBy(Col(N, N)), 2).copy(0, a, (0, *WHOLE[1:])),
            "TMA cannot write .32, 32. elements",
        ),
        (
            lambda a: lg.ring("f32", OrderBy(Row(4, N)), 2).copy(
                0, a.window((Z, 4, N), lambda z, y, x: (z, 2 * y, x)), (0, *WHOLE[1:])
            ),
            "dimension 1 of .* is none of its tensor's",
        ),
        (
            lambda a: lg.ring("f32", OrderBy(Row(4, N)), 2).copy(
                0, a.window((Z, 4, N), lambda z, y, x: (z, y - 1, x), "clamp"), (0, *WHOLE[1:])
            ),
            "copies zeros of what lies outside",
        ),
    ],
)
def test_what_is_no_copy(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        kernel_of(lambda a, b: make(a) and None).compile("sm_90a")


def test_what_no_tensor_map_has() -> None:
    def body(a: Any, b: Any) -> None:
        lg.ring("f32", OrderBy(Row(N, N)), 2).copy(0, a, (0, *WHOLE[1:]))

    with pytest.raises(LegoError, match="does not have one stride per dimension"):
        kernel_of(body, OrderBy(GenP([4, N, N], bricks(2, 4, 8)))).compile("sm_90a")
    with pytest.raises(LegoError, match=r"(?s)sm_80 has no TMA.*--target=sm_90a"):
        kernel_of(body).compile("sm_80")


def test_slices_as_wide_as_the_tensor_begin_anywhere() -> None:
    """They are whole rows of the window, but none of the tensor."""

    def body(a: Any, b: Any) -> None:
        t, ring = lg.thread_id(), lg.ring("f32", OrderBy(Row(N, N)), 1)
        moved = a.window((Z, N, N), lambda z, y, x: (z, y + 1, x - 4), ("inside", "zero", "zero"))

        @lg.if_(t == 0)
        def _() -> None:
            ring.copy(0, moved, (1, *WHOLE[1:]))

        stage = ring.wait(0)
        for y in range(N):
            b[0, y, t] = ring.tensor[stage, y, t]

    x = np.random.default_rng(0).random((Z, N, N), np.float32)
    y = np.empty_like(x)
    kernel_of(body, block=N)(x, y, device="sim")
    np.testing.assert_array_equal(y[0], np.pad(x[1], ((0, 1), (4, 0)))[1:, :N])


def test_sizes_that_the_launch_knows() -> None:
    """Rows of any number of columns, which the launch's tensor map has."""

    def body(x: Any, y: Any) -> None:
        row, t = lg.block_id(), lg.thread_id()
        ring = lg.ring("f32", OrderBy(Row(64)), 1)
        shown = x.window((x.dims[0], 64), lambda m, n: (m, n), ("inside", "zero"))

        @lg.if_(t == 0)
        def _() -> None:
            ring.copy(0, shown, (row, slice(None)))

        stage = ring.wait(0)
        for k in range(2):
            y[row, t + 32 * k] = ring.tensor[stage, t + 32 * k]

    sizes = {"x": "M, N/4*4", "y": "M, 64"}
    kinds = {
        name: lg.TensorType("f32", lg.parse_layout(f"OrderBy(Row({text}))"))
        for name, text in sizes.items()
    }
    heads = lg.kernel(grid=lambda x: x.shape[0], block=32, parameters=kinds)(body)
    for columns in (16, 96):
        x = np.random.default_rng(0).random((3, columns), np.float32)
        y = np.full((3, 64), np.nan, np.float32)
        heads(x, y, device="sim")
        np.testing.assert_array_equal(y, np.pad(x, ((0, 0), (0, 64)))[:, :64])
