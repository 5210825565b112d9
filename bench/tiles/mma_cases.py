"""Programs on tiles for GPUs without wgmma: mma.sync, from ring buffers that cp.async fills."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.tiles.case import TileCase

if TYPE_CHECKING:
    from lego_mlir import Kernel

_TARGET = "sm_90"
"""An H200 without what only it has: no wgmma."""


def cp_async_gemm(
    m: int,
    n: int,
    k: int,
    tile: tuple[int, int, int] = (128, 256, 64),
    warps: tuple[int, int] = (2, 4),
    stages: int = 4,
) -> TileCase:
    """Return a GEMM of f16 by the schedule `cp_async`, beside `hmma` with the same tiles.

    Args:
        m: rows of A.
        n: columns of B.
        k: columns of A.
        tile: the sizes of a CTA's tile.
        warps: rows and columns of warps of a CTA.
        stages: of the rings.
    """
    rows, columns, depth = tile

    def make() -> Kernel:
        import lego_mlir as lg
        from lego_mlir.kernels.gemm.rasterization import raster_groups

        order = raster_groups(m // rows, n // columns, 8)

        def gemm(a: Any, b: Any, c: Any) -> None:
            i, j = order.inv(lg.block_id())

            @lg.fold(k // depth, lg.zeros((rows, columns), "f32"))
            def sums(step: Any, sums: Any) -> Any:
                return lg.dot(a.tile(rows, depth)[i, step], b.tile(depth, columns)[step, j], sums)

            c.tile(rows, columns)[i, j] = sums.to("f16")

        shapes = zip("abc", ((m, k), (k, n), (m, n)), strict=True)
        gemm.__annotations__ = {name: lg.Tensor["f16", shape, 16] for name, shape in shapes}
        options: dict[str, Any] = {"schedule": "cp_async", "params": {"stages": stages}}
        grid = (m // rows) * (n // columns)
        return lg.kernel(grid=grid, warps=warps[0] * warps[1], pdl=True, **options)(gemm)

    def hmma() -> Kernel:
        from lego_mlir.kernels import matmul
        from lego_mlir.kernels.gemm.mma.config import MmaConfig

        return matmul(m, n, k, config=MmaConfig(tile, warps, stages), target=_TARGET)

    return TileCase(
        f"gemm_f16_{m}x{n}x{k}_cp_async",
        make,
        ((m, k), (k, n), (m, n)),
        ("float16",) * 3,
        lambda a, b: a @ b,
        ("torch mm",),
        2e-3,
        programs={"hmma": hmma},
        flops=2 * m * n * k,
        target=_TARGET,
    )


def cp_async_attention(heads: int, length: int, depth: int) -> TileCase:
    """Return attention forward by the schedule `cp_async`, beside FlashAttention-2.

    Args:
        heads: how many there are.
        length: rows of the queries, and of the keys and values.
        depth: their columns.
    """
    rows, columns = 128, 64

    def make(schedule: str | None) -> Kernel:
        import lego_mlir as lg

        tensor = lg.Tensor["f16", (heads * length, depth), 16]
        scale = depth**-0.5 * 1.4426950408889634

        def attention(q: Any, k: Any, v: Any, o: Any) -> None:
            m, head = lg.block_id("x"), lg.block_id("y")
            queries = q.tile(rows, depth)[head * (length // rows) + m, 0]
            first = head * (length // columns)
            start = (lg.full((rows, 1), -1e30, "f32"), lg.zeros((rows, 1), "f32"),
                     lg.zeros((rows, depth), "f32"))  # fmt: skip

            @lg.fold(length // columns, start)
            def state(n: Any, most: Any, total: Any, sums: Any) -> Any:
                scores = lg.dot(queries, k.tile(columns, depth)[first + n, 0].T)
                larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True) * scale)
                p, old = lg.exp2(lg.fma(scores, scale, -larger)), lg.exp2(most - larger)
                sums = lg.dot(p.to("f16"), v.tile(columns, depth)[first + n, 0], sums * old)
                return larger, total * old + lg.sum(p, axis=1, keepdims=True), sums

            o.tile(rows, depth)[head * (length // rows) + m, 0] = (state[2] / state[1]).to("f16")

        attention.__annotations__ = dict.fromkeys("qkvo", tensor)
        options: dict[str, Any] = {}
        if schedule:
            options = {"schedule": schedule, "params": {"stages": 2}}
        warps = 4 if depth <= 64 else 8
        return lg.kernel(grid=(length // rows, heads), warps=warps, **options)(attention)

    def reference(q: Any, k: Any, v: Any) -> Any:
        import torch

        parts = (x.view(heads, length, depth) for x in (q, k, v))
        found = torch.nn.functional.scaled_dot_product_attention(*parts)
        return found.reshape(heads * length, depth)

    without: Callable[[], Kernel] = partial(make, None)
    return TileCase(
        f"attention_f16_{heads}x{length}x{depth}_cp_async",
        partial(make, "cp_async"),
        ((heads * length, depth),) * 4,
        ("float16",) * 4,
        reference,
        (f"flash attention {length}",),
        1e-2,
        programs={"no pipeline": without},
        flops=4 * heads * length * length * depth,
        target=_TARGET,
    )
