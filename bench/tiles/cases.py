"""The programs on tiles that are measured, each with what PyTorch computes for it."""

from __future__ import annotations

from bench.tiles.families.attention import attention_case, cp_async_attention, pipelined_attention
from bench.tiles.families.gemm import narrow_gemm, pipelined_gemm
from bench.tiles.families.linear_layouts import conversion_case, gather_case
from bench.tiles.families.rows import rows_case
from bench.tiles.families.transpose import transpose_case

_ONE_WARPGROUP = {"warps": 4, "stages": 8, "producer_registers": 0, "consumer_registers": 0}
"""Of a tile that one warpgroup holds."""

_IN_PARTS = {"store_stages": 2, "store_parts": 4}
"""Tiles of 128 x 256 are stored in four parts, so that a ring of operands has four stages."""

CASES = (
    *(rows_case("softmax", n, d) for d in ("f32", "f16", "bf16") for n in (1024, 4096, 8192)),
    rows_case("softmax", 5000, "f32"),
    rows_case("softmax", 3003, "f16"),
    *(
        rows_case(w, n, d)
        for w in ("rmsnorm", "layernorm")
        for d in ("f16", "f32")
        for n in (1024, 4096)
    ),
    transpose_case(8192, 64),
    attention_case(32, 4096, 64, 64, 64, 4),
    attention_case(32, 4096, 128, 128, 64, 8),
    *(pipelined_attention(32, n, 128) for n in (2048, 4096, 8192)),
    pipelined_gemm(*(1024,) * 3, (64, 128, 64), raster_group=1, **_ONE_WARPGROUP),
    pipelined_gemm(*(2048,) * 3, **_IN_PARTS),
    pipelined_gemm(
        *(3072,) * 3,
        (256, 144, 64),
        swap=True,
        cluster=2,
        cluster_rows=1,
        raster_group=12,
        store_stages=2,
        store_parts=9,
    ),
    pipelined_gemm(*(4096,) * 3, **_IN_PARTS),
    *(
        pipelined_gemm(n, n, n, (128, 224, 64), swap=True, store_stages=4, store_parts=7)
        for n in (5120, 8192)
    ),
    pipelined_gemm(*(6144,) * 3, **_IN_PARTS),
    pipelined_gemm(4096, 4096, 1024, **_IN_PARTS),
    pipelined_gemm(8192, 1024, 8192, **_IN_PARTS),
    pipelined_gemm(4864, 4096, 8192, (128, 176, 64), swap=True, store_stages=2, store_parts=2),
    pipelined_gemm(2112, 7168, 2048, (128, 240, 64), swap=True, store_stages=2, store_parts=5),
    pipelined_gemm(16384, 2048, 2048, **_IN_PARTS),
    pipelined_gemm(8192, 8192, 512, (128, 224, 64), store_stages=4, store_parts=7),
    *(
        pipelined_gemm(m, n, k, **_IN_PARTS)
        for m, n, k in (
            (8192, 2048, 768),
            (8192, 8192, 1024),
            (12288, 4096, 1024),
            (16384, 4096, 1536),
            (4096, 8192, 2048),
        )
    ),
    pipelined_gemm(512, 512, 16384, (64, 128, 64), split_k=4, **_ONE_WARPGROUP),
    pipelined_gemm(256, 256, 8192, (64, 64, 64), split_k=4, **_ONE_WARPGROUP),
    pipelined_gemm(128, 128, 16384, (64, 32, 64), split_k=16, **_ONE_WARPGROUP),
    pipelined_gemm(128, 4096, 4096, (64, 64, 64), **_ONE_WARPGROUP),
    *(
        narrow_gemm(m, n, k, store_stages=4, store_parts=4)
        for m, n, k in ((4096, 4096, 4096), (4096, 7168, 2048))
    ),
    narrow_gemm(*(8192,) * 3, (128, 192, 128), store_stages=2, store_parts=6),
    *(cp_async_attention(32, n, d) for n, d in ((2048, 128), (4096, 128), (4096, 64))),
    *(
        conversion_case(m, n, d)
        for d in ("f32", "f16", "i8")
        for m, n in ((32, 32), (64, 32), (128, 32), (128, 64))
    ),
    *(
        gather_case(m, n, d)
        for d in ("f32", "f16")
        for m, n in ((64, 8), (128, 16), (512, 16), (256, 32), (128, 64))
    ),
)
