"""Attention forward: loops of two dots, without a pipeline and by several schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.tiles.case import WITHOUT_WGMMA, TileCase

if TYPE_CHECKING:
    from lego_mlir import Kernel

_SCHEDULES = Path(__file__).parents[1] / "schedules"
_REGISTERS = {"producer_registers": 24, "consumer_registers": 240}
_LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class _Sizes:
    """The sizes of a problem.

    Attributes:
        heads: how many there are.
        length: rows of the queries, and of the keys and values.
        depth: their columns.
    """

    heads: int
    length: int
    depth: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of each argument."""
        return self.heads * self.length, self.depth

    @property
    def flops(self) -> int:
        """The floating-point operations of the dots."""
        return 4 * self.heads * self.length * self.length * self.depth


def attention_case(
    heads: int, length: int, depth: int, rows: int, columns: int, warps: int
) -> TileCase:
    """Return attention forward without a pipeline.

    Args:
        heads: how many there are.
        length: rows of the queries, and of the keys and values.
        depth: their columns.
        rows: of queries of a CTA.
        columns: of scores of a step: rows of keys and values.
        warps: of a CTA.
    """
    sizes = _Sizes(heads, length, depth)
    make = partial(_kernel, sizes, rows, columns, warps, is_fused=False)
    return _case(sizes, "", make, ("torch attention",))


def pipelined_attention(heads: int, length: int, depth: int) -> TileCase:
    """Return attention forward by the schedule of that name, and by the steps that lead to it.

    Args:
        heads: how many there are.
        length: rows of the queries, and of the keys and values.
        depth: their columns.
    """
    sizes = _Sizes(heads, length, depth)
    make = partial(_kernel, sizes, 128, 128, 8)
    return _case(
        sizes,
        "_pipelined",
        partial(make, "attention", _REGISTERS),
        (f"cudnn attention {length}", f"flash attention {length}"),
        programs={
            "no pipeline": make,
            "a producer": partial(make, "pipelined", _REGISTERS),
            "skewed": partial(make, str(_SCHEDULES / "skewed.mlir"), _REGISTERS),
        },
        flops=sizes.flops,
    )


def cp_async_attention(heads: int, length: int, depth: int) -> TileCase:
    """Return attention forward by the schedule `cp_async`, beside FlashAttention-2.

    Args:
        heads: how many there are.
        length: rows of the queries, and of the keys and values.
        depth: their columns.
    """
    sizes = _Sizes(heads, length, depth)
    make = partial(_kernel, sizes, 128, 64, 4 if depth <= 64 else 8)
    return _case(
        sizes,
        "_cp_async",
        partial(make, "cp_async", {"stages": 2}),
        (f"flash attention {length}",),
        programs={"no pipeline": make},
        flops=sizes.flops,
        target=WITHOUT_WGMMA,
    )


def _case(
    sizes: _Sizes, suffix: str, make: Callable[[], Kernel], peers: tuple[str, ...], **more: Any
) -> TileCase:
    """Return the case of a kernel.

    Args:
        sizes: of the problem.
        suffix: of the case's name, after the sizes.
        make: returns the kernel.
        peers: as `TileCase` has them.
        more: further attributes of `TileCase`.
    """
    return TileCase(
        f"attention_f16_{sizes.heads}x{sizes.length}x{sizes.depth}{suffix}",
        make,
        (sizes.shape,) * 4,
        ("float16",) * 4,
        partial(_reference, sizes),
        peers,
        1e-2,
        **more,
    )


def _kernel(
    sizes: _Sizes,
    rows: int,
    columns: int,
    warps: int,
    schedule: str | None = None,
    params: Mapping[str, int] | None = None,
    *,
    is_fused: bool = True,
) -> Kernel:
    """Return a kernel whose CTAs have some rows of queries of a head.

    Args:
        sizes: of the problem.
        rows: of queries of a CTA.
        columns: of scores of a step.
        warps: of a CTA.
        schedule: none for loops without a pipeline.
        params: of the schedule.
        is_fused: whether scores are scaled where their exponentials are computed, by an fma.
    """
    import lego_mlir as lg

    length, depth = sizes.length, sizes.depth
    scale = depth**-0.5 * _LOG2_E

    def attention(q: Any, k: Any, v: Any, o: Any) -> None:
        m, head = lg.block_id("x"), lg.block_id("y")
        queries = q.tile(rows, depth)[head * (length // rows) + m, 0]
        first = head * (length // columns)
        start = (lg.full((rows, 1), -1e30, "f32"), lg.zeros((rows, 1), "f32"),
                 lg.zeros((rows, depth), "f32"))  # fmt: skip

        @lg.fold(length // columns, start)
        def state(n: Any, most: Any, total: Any, sums: Any) -> Any:
            scores = lg.dot(queries, k.tile(columns, depth)[first + n, 0].T)
            if is_fused:
                larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True) * scale)
                p, old = lg.exp2(lg.fma(scores, scale, -larger)), lg.exp2(most - larger)
            else:
                scores = scores * scale
                larger = lg.maximum(most, lg.max(scores, axis=1, keepdims=True))
                p, old = lg.exp2(scores - larger), lg.exp2(most - larger)
            sums = lg.dot(p.to("f16"), v.tile(columns, depth)[first + n, 0], sums * old)
            return larger, total * old + lg.sum(p, axis=1, keepdims=True), sums

        o.tile(rows, depth)[head * (length // rows) + m, 0] = (state[2] / state[1]).to("f16")

    attention.__annotations__ = dict.fromkeys("qkvo", lg.Tensor["f16", sizes.shape, 16])
    options: dict[str, Any] = {"schedule": schedule, "params": params} if schedule else {}
    return lg.kernel(grid=(length // rows, sizes.heads), warps=warps, **options)(attention)


def _reference(sizes: _Sizes, q: Any, k: Any, v: Any) -> Any:
    import torch

    parts = (x.view(sizes.heads, sizes.length, sizes.depth) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*parts).reshape(sizes.shape)
