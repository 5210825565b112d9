"""The programs on tiles that are measured, each with what PyTorch computes for it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.tiles.case import TileCase
from bench.tiles.mma_cases import cp_async_attention, cp_async_gemm

if TYPE_CHECKING:
    from lego_mlir import Kernel

BYTES = 1 << 28
"""The bytes of the input of a kernel on rows, beyond every cache."""


_SHORT = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
_TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2}


def _rows(what: str, columns: int, dtype: str) -> TileCase:
    size = 4 if dtype == "f32" else 2
    rows = BYTES // (columns * size)
    extra = {"softmax": 0, "rmsnorm": 1, "layernorm": 2}[what]
    shapes = ((rows, columns), *[(columns,)] * extra, (rows, columns))
    return TileCase(
        f"{what}_{dtype}_{rows}x{columns}",
        partial(_row_kernel, what, rows, columns, dtype),
        shapes,
        (_SHORT[dtype],) * len(shapes),
        {"softmax": _softmax, "rmsnorm": _rmsnorm, "layernorm": _layernorm}[what],
        (
            f"torch {what}",
            f"torch.compile {what}",
            *(["triton softmax"] if what == "softmax" else []),
        ),
        _TOLERANCE[dtype],
    )


def _row_kernel(what: str, rows: int, columns: int, dtype: str) -> Kernel:
    import lego_mlir as lg

    matrix, vector = lg.Tensor[dtype, (rows, columns), 16], lg.Tensor[dtype, (columns,), 16]
    warps = max(1, min(16, columns // 1024 * 2))
    decorate = lg.kernel(grid=rows, warps=warps)

    def softmax(x: matrix, y: matrix) -> None:  # type: ignore[valid-type]
        row = x[lg.block_id(), :].to("f32")
        e = lg.exp(row - lg.max(row))
        y[lg.block_id(), :] = (e / lg.sum(e)).to(dtype)

    def rmsnorm(x: matrix, w: vector, y: matrix) -> None:  # type: ignore[valid-type]
        row = x[lg.block_id(), :].to("f32")
        scale = lg.rsqrt(lg.sum(row * row) / columns + 1e-6)
        y[lg.block_id(), :] = (row * scale * w[:].to("f32")).to(dtype)

    def layernorm(x: matrix, w: vector, b: vector, y: matrix) -> None:  # type: ignore[valid-type]
        row = x[lg.block_id(), :].to("f32")
        centered = row - lg.sum(row) / columns
        scale = lg.rsqrt(lg.sum(centered * centered) / columns + 1e-6)
        y[lg.block_id(), :] = (centered * scale * w[:].to("f32") + b[:].to("f32")).to(dtype)

    body = {"softmax": softmax, "rmsnorm": rmsnorm, "layernorm": layernorm}[what]
    body.__annotations__ = dict(
        zip(body.__code__.co_varnames, _annotations(what, matrix, vector), strict=False)
    )
    return decorate(body)


def _annotations(what: str, matrix: Any, vector: Any) -> list[Any]:
    extra = {"softmax": 0, "rmsnorm": 1, "layernorm": 2}[what]
    return [matrix, *[vector] * extra, matrix]


def _softmax(x: Any) -> Any:
    return x.softmax(-1)


def _rmsnorm(x: Any, w: Any) -> Any:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def _layernorm(x: Any, w: Any, b: Any) -> Any:
    centered = x - x.mean(-1, keepdim=True)
    return centered * (centered.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w + b


# Movement and attention.
def _transpose(n: int, side: int) -> TileCase:
    def make() -> Kernel:
        import lego_mlir as lg

        matrix = lg.Tensor["f32", (n, n), 16]

        def transpose(x: Any, y: Any) -> None:
            i, j = lg.block_id("x"), lg.block_id("y")
            y.tile(side, side)[i, j] = x.tile(side, side)[j, i].T

        transpose.__annotations__ = {"x": matrix, "y": matrix}
        return lg.kernel(grid=(n // side, n // side), warps=8)(transpose)

    return TileCase(
        f"transpose_f32_{n}",
        make,
        ((n, n), (n, n)),
        ("float32",) * 2,
        lambda x: x.T.contiguous(),
        ("torch transpose", "copy"),
        0.0,
    )


def _attention(
    heads: int, length: int, depth: int, rows: int, columns: int, warps: int
) -> TileCase:
    def make() -> Kernel:
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
                scores = lg.dot(queries, k.tile(columns, depth)[first + n, 0].T) * scale
                larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True))
                p, old = lg.exp2(scores - larger), lg.exp2(most - larger)
                sums = lg.dot(p.to("f16"), v.tile(columns, depth)[first + n, 0], sums * old)
                return larger, total * old + lg.sum(p, axis=1, keepdims=True), sums

            o.tile(rows, depth)[head * (length // rows) + m, 0] = (state[2] / state[1]).to("f16")

        attention.__annotations__ = dict.fromkeys("qkvo", tensor)
        return lg.kernel(grid=(length // rows, heads), warps=warps)(attention)

    def reference(q: Any, k: Any, v: Any) -> Any:
        parts = (x.view(heads, length, depth) for x in (q, k, v))
        import torch

        found = torch.nn.functional.scaled_dot_product_attention(*parts)
        return found.reshape(heads * length, depth)

    return TileCase(
        f"attention_f16_{heads}x{length}x{depth}",
        make,
        ((heads * length, depth),) * 4,
        ("float16",) * 4,
        reference,
        ("torch attention",),
        1e-2,
    )


_STEPS = Path(__file__).parent / "schedules"
_REGISTERS = {"producer_registers": 24, "consumer_registers": 240}


def _pipelined_attention(heads: int, length: int, depth: int) -> TileCase:
    """Return attention forward by the schedule of that name, and by the steps that lead to it."""

    def make(schedule: str | None, params: dict[str, int]) -> Kernel:
        import lego_mlir as lg

        rows = columns = 128
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
        options = {"schedule": schedule, "params": params} if schedule else {}
        return lg.kernel(grid=(length // rows, heads), warps=8, **options)(attention)

    plain = _attention(heads, length, depth, 128, 128, 8)
    peers = (f"cudnn attention {length}", f"flash attention {length}")
    return replace(
        plain,
        name=f"attention_f16_{heads}x{length}x{depth}_pipelined",
        make=partial(make, "attention", _REGISTERS),
        peers=peers,
        programs={
            "no pipeline": partial(make, None, {}),
            "a producer": partial(make, "pipelined", _REGISTERS),
            "skewed": partial(make, str(_STEPS / "skewed.mlir"), _REGISTERS),
        },
        flops=4 * heads * length * length * depth,
    )


_IN_PARTS = {"store_stages": 2, "store_parts": 4}
"""Tiles of 128 x 256 are stored in four parts, so that a ring of operands has four stages."""


def _pipelined_gemm(
    m: int,
    n: int,
    k: int,
    tile: tuple[int, int, int] = (128, 256, 64),
    *,
    warps: int = 8,
    swap: bool = False,
    **params: int,
) -> TileCase:
    """Return a GEMM of f16 by the schedule `persistent`, beside that of `lego_mlir.kernels`.

    Args:
        m: rows of A.
        n: columns of B.
        k: columns of A.
        tile: the sizes of a CTA's tile.
        warps: that hold the tile.
        swap: whether the tile is one of the transpose of C, a product of transposes.
        params: parameters of the schedule.
    """
    given = {"stages": 4, "producer_registers": 40, "consumer_registers": 232} | params

    def make() -> Kernel:
        import lego_mlir as lg

        rows, columns, depth = tile
        down, across = (n, m) if swap else (m, n)
        a_matrix, b_matrix, c_matrix = (
            lg.Tensor["f16", shape, 16] for shape in ((m, k), (k, n), (m, n))
        )

        def gemm(a: Any, b: Any, c: Any) -> None:
            i, j = lg.block_id("y"), lg.block_id("x")

            @lg.fold(-(-k // depth), lg.zeros((rows, columns), "f32"))
            def sums(step: Any, sums: Any) -> Any:
                if swap:
                    first, second = b.tile(depth, rows)[step, i], a.tile(columns, depth)[j, step]
                    return lg.dot(first.T, second.T, sums)
                return lg.dot(a.tile(rows, depth)[i, step], b.tile(depth, columns)[step, j], sums)

            if swap:
                c.tile(columns, rows)[j, i] = sums.to("f16").T
            else:
                c.tile(rows, columns)[i, j] = sums.to("f16")

        gemm.__annotations__ = {"a": a_matrix, "b": b_matrix, "c": c_matrix}
        grid = (-(-across // columns), -(-down // rows))
        options = {"schedule": "persistent", "params": given, "pdl": True}
        return lg.kernel(grid=grid, warps=warps, **options)(gemm)

    def kernels() -> Kernel:
        from lego_mlir.kernels import matmul

        return matmul(m, n, k, target="sm_90a")

    shape = str(n) if m == n == k else f"{m}x{n}x{k}"
    return TileCase(
        f"gemm_f16_{shape}_pipelined",
        make,
        ((m, k), (k, n), (m, n)),
        ("float16",) * 3,
        lambda a, b: a @ b,
        ("torch mm",),
        2e-3,
        programs={"kernels.matmul": kernels},
        flops=2 * m * n * k,
    )


# The benchmarks of papers/linear_layouts, section 6.1: a tile by one CTA of four warps.
_REPEATS = 256
"""Conversions, or gathers, of one tile in a kernel: as many as make its loads and stores small."""


def _conversion(rows: int, columns: int, dtype: str) -> TileCase:
    def make() -> Kernel:
        import lego_mlir as lg
        from lego_mlir.analysis.distributed import DistributedLayout, Factor

        shape = (rows, columns)
        # A warp has the same rows in both; its lanes are in columns, or in rows first.
        down_lanes = min(32, rows // 4)
        across = 32 // down_lanes
        warps = [Factor(0, 4, rows // 4)]
        along = DistributedLayout.of(
            shape,
            warps=warps,
            lanes=[Factor(1, 32, 1)],
            registers=[Factor(0, rows // 4, 1), Factor(1, columns // 32, 32)],
        )
        down = DistributedLayout.of(
            shape,
            warps=warps,
            lanes=[Factor(1, across, columns // across), Factor(0, down_lanes, 1)],
            registers=[
                Factor(0, rows // 4 // down_lanes, down_lanes),
                Factor(1, columns // across, 1),
            ],
        )
        tensor = lg.Tensor[dtype, shape, 16]

        def conversion(x: Any, y: Any) -> None:
            start = lg.convert(x.tile(*shape)[0, 0], along)

            @lg.fold(_REPEATS, start)
            def end(_: Any, tile: Any) -> Any:
                there = lg.convert(tile, down) + 1
                return lg.convert(there, along) - 1

            y.tile(*shape)[0, 0] = end

        conversion.__annotations__ = {"x": tensor, "y": tensor}
        return lg.kernel(grid=132, warps=4)(conversion)

    names = {"f16": "float16", "f32": "float32", "i8": "int8"}
    return TileCase(
        f"convert_{dtype}_{rows}x{columns}",
        make,
        ((rows, columns),) * 2,
        (names[dtype],) * 2,
        lambda x: x,
        (),
        1e-2,
        {0: 100} if dtype == "i8" else {},
        {
            "shuffles": partial(_roads, shuffles=True),
            "shared memory": partial(_roads, shuffles=False),
        },
    )


def _gather(rows: int, columns: int, dtype: str) -> TileCase:
    def make() -> Kernel:
        import lego_mlir as lg

        tensor, at = lg.Tensor[dtype, (rows, columns), 16], lg.Tensor["i32", (rows, columns), 16]

        def gather(x: Any, indices: Any, y: Any) -> None:
            tile, index = x.tile(rows, columns)[0, 0], indices.tile(rows, columns)[0, 0]

            @lg.fold(_REPEATS, tile)
            def end(_: Any, values: Any) -> Any:
                return lg.take(values, index, 1)

            y.tile(rows, columns)[0, 0] = end

        gather.__annotations__ = {"x": tensor, "indices": at, "y": tensor}
        return lg.kernel(grid=132, warps=4)(gather)

    def reference(x: Any, indices: Any) -> Any:
        for _ in range(_REPEATS):
            x = x.gather(1, indices.long())
        return x

    return TileCase(
        f"gather_{dtype}_{rows}x{columns}",
        make,
        ((rows, columns),) * 3,
        (
            {"f16": "float16", "f32": "float32"}[dtype],
            "int32",
            {"f16": "float16", "f32": "float32"}[dtype],
        ),
        reference,
        (),
        0.0,
        {1: columns},
        {
            "shuffles": partial(_takes, shuffles=True),
            "shared memory": partial(_takes, shuffles=False),
        },
    )


def _roads(*, shuffles: bool) -> AbstractContextManager[Any]:
    """Return a context in which conversions inside of warps take one road, whatever it costs."""
    from unittest.mock import patch

    from lego_mlir.analysis.distributed.conversions import plan
    from lego_mlir.mlir.tile_passes.lower_tiles.conversions import roads

    plain = plan.plan_conversion.__wrapped__

    def planned(*arguments: Any) -> Any:
        # The estimate of a barrier's wait decides between roads of about the same throughput.
        with patch.object(plan, "BARRIER_CLOCKS", 1 << 30 if shuffles else -(1 << 30)):
            return plain(*arguments)

    return patch.object(roads, "plan_conversion", planned)


def _takes(*, shuffles: bool) -> AbstractContextManager[Any]:
    """Return a context in which takes inside of warps are made in one way, whatever it costs."""
    from unittest.mock import patch

    from lego_mlir.mlir.tile_passes.lower_tiles import takes

    return patch.object(takes, "_shuffles_pay", lambda *_: shuffles)


def as_chosen() -> AbstractContextManager[Any]:
    """Return a context in which the compiler chooses."""
    return nullcontext()


CASES = (
    *(_rows("softmax", n, d) for d in ("f32", "f16", "bf16") for n in (1024, 4096, 8192)),
    _rows("softmax", 5000, "f32"),
    _rows("softmax", 3003, "f16"),
    *(
        _rows(w, n, d)
        for w in ("rmsnorm", "layernorm")
        for d in ("f16", "f32")
        for n in (1024, 4096)
    ),
    _transpose(8192, 64),
    _attention(32, 4096, 64, 64, 64, 4),
    _attention(32, 4096, 128, 128, 64, 8),
    *(_pipelined_attention(32, n, 128) for n in (2048, 4096, 8192)),
    _pipelined_gemm(
        *(1024,) * 3,
        (64, 128, 64),
        warps=4,
        stages=8,
        producer_registers=0,
        consumer_registers=0,
    ),
    _pipelined_gemm(*(2048,) * 3, **_IN_PARTS),
    _pipelined_gemm(
        *(3072,) * 3, (256, 144, 64), cluster=2, raster_group=2, store_stages=2, store_parts=9
    ),
    _pipelined_gemm(*(4096,) * 3, **_IN_PARTS),
    *(
        _pipelined_gemm(n, n, n, (128, 224, 64), store_stages=4, store_parts=7)
        for n in (5120, 8192)
    ),
    _pipelined_gemm(*(6144,) * 3, **_IN_PARTS),
    _pipelined_gemm(4096, 4096, 1024, **_IN_PARTS),
    _pipelined_gemm(8192, 1024, 8192, **_IN_PARTS),
    _pipelined_gemm(4864, 4096, 8192, (128, 176, 64), swap=True, store_stages=2, store_parts=2),
    _pipelined_gemm(2112, 7168, 2048, (128, 240, 64), swap=True, store_stages=2, store_parts=5),
    _pipelined_gemm(16384, 2048, 2048, **_IN_PARTS),
    *(cp_async_gemm(n, n, n) for n in (2048, 4096, 8192)),
    cp_async_gemm(4096, 4096, 1024),
    cp_async_gemm(1024, 1024, 4096, (128, 128, 64), (2, 2), 3),
    *(cp_async_attention(32, n, d) for n, d in ((2048, 128), (4096, 128), (4096, 64))),
    *(
        _conversion(m, n, d)
        for d in ("f32", "f16", "i8")
        for m, n in ((32, 32), (64, 32), (128, 32), (128, 64))
    ),
    *(
        _gather(m, n, d)
        for d in ("f32", "f16")
        for m, n in ((64, 8), (128, 16), (512, 16), (256, 32), (128, 64))
    ),
)
