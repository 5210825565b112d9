"""Ragged grouped GEMM: groups of A's rows, each multiplied by its own B; the launch knows the rows.

    offsets = 96, 96, 200      rows 0 to 95 by B[0], none by B[1], rows 96 to 199 by B[2]

Tiles are those of the whole of A and of C. If a group ends within a tile, the tile is multiplied
once for each group that has rows in it, and each time only that group's rows are stored. Such a
work item, a tile and a group, has the id

    tile_row + group

which is unique, because the next item has the next group, the next row of tiles, or both. A CTA
finds its group by binary search of the ids at which groups begin. The few ids that belong to no
item take one iteration of the K loop and store nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from lego_mlir import runtime
from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import (
    Kernel,
    TensorType,
    Value,
    arange,
    block_id,
    dot,
    fold,
    kernel,
    restrict,
    search,
)
from lego_mlir.hardware.targets import Target
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.gemm.arguments import check_sizes, check_types
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.kernel import check_epilogue_result
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, layout_of, order_of
from lego_mlir.kernels.gemm.planner import plan_grouped, why_not_wgmma
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.rasterization import raster_groups
from lego_mlir.kernels.gemm.several.steps import steps_of
from lego_mlir.kernels.gemm.tile_program import first_sums, instruction_of
from lego_mlir.kernels.public import public


@public
def ragged_matmul(
    m: int,
    n: int,
    k: int,
    groups: int,
    dtype: str = "f16",
    *,
    out: str | None = None,
    a: Layout | None = None,
    b: Layout | None = None,
    epilogue: Callable[[Value], Value] | None = None,
    config: GemmConfig | None = None,
    schedule: str | None = None,
    target: str | None = None,
    promote: int = 0,
) -> Kernel:
    """Return a kernel that multiplies each group of A's rows by its own B (mixture of experts).

        ragged_matmul(8192, 4096, 1024, groups=64)(a, b, c, offsets)

    `offsets`, i32 in device memory, holds the ends of the groups: group g has the rows from
    offsets[g - 1], or 0, up to offsets[g], exclusive. The caller makes sure that offsets do not
    decrease and are at most m; this is not checked. Rows of C after the last group are not written.

    Args:
        m: rows of A and C.
        n: columns of C and of each matrix of B.
        k: columns of A, rows of each matrix of B.
        groups: the number of groups; any of them may be empty.
        dtype: element type of A and B: f16, bf16, i8, f8E4M3FN or f8E5M2.
        out: element type of C; by default that of A and B, i32 for i8, f16 for 8-bit floats.
        a: layout of A, m×k; row-major by default.
        b: layout of B, groups×k×n. C is row-major.
        epilogue: a function that computes a tile of C from the accumulator's tile.
        config: the config; by default that of one GEMM of m×n×k. The fields `cluster`,
            `overlap_epilogue`, `split_k` and `swap_ab` of a `WgmmaConfig` keep their defaults.
        schedule: `persistent` or `cp_async`. By default `persistent` for sm_90a, else `cp_async`.
            If TMA cannot copy the matrices it is `cp_async` too, with a warning.
        target: the GPU architecture; by default that of the GPU in this machine, and sm_90a
            without one.
        promote: as in `matmul`.

    Raises:
        LegoError: a size, a type or a layout is wrong, or the given schedule cannot compute it.
    """
    what = "ragged_matmul"
    name = target or runtime.select().target or DEFAULT_TARGET
    check_sizes(what, (m, n, k, groups))
    accumulator, out = check_types(what, dtype, out, name, promote)
    shapes = {"a": (m, k), "b": (groups, k, n), "c": (m, n)}
    layouts = {
        matrix: layout_of(matrix, layout, shapes[matrix])
        for matrix, layout in {"a": a, "b": b, "c": None}.items()
    }
    problem = Problem(m, n, k, dtype, out, order_of(layouts["a"]), order_of(layouts["b"]))

    def count_items(config: GemmConfig) -> int:
        return prod(_item_grid(problem, config, groups))

    def reason() -> LegoError | None:
        return why_not_wgmma(problem, list(layouts.values()))

    parsed = Target.parse(name)
    config = plan_grouped(what, [problem], reason, parsed, schedule, config, promote, count_items)
    count = count_items(config)
    # No PDL: the kernel reads the offsets at once, and the work before it may write them.
    steps = steps_of(config, problem, parsed, pdl=False)
    types = {
        matrix: TensorType(kind, layouts[matrix], ALIGNMENT)
        for matrix, kind in {"a": dtype, "b": dtype, "c": out}.items()
    }
    return kernel(
        grid=count,
        parameters={**types, "offsets": TensorType("i32", OrderBy(Row(groups)))},
        strict=True,
        explanation=lambda: (
            f"{groups} groups of {m} rows, at most {count} work items\n"
            f"schedule   {steps['schedule']}\nconfig     {config}"
        ),
        **steps,
    )(_body(problem, config, groups, layouts, accumulator, epilogue))


def _item_grid(problem: Problem, config: GemmConfig, groups: int) -> tuple[int, int]:
    """Return the numbers of ids of work items, and of columns of tiles."""
    down, across = config.tiles(problem)
    return down + groups - 1, across


def _body(
    problem: Problem,
    config: GemmConfig,
    groups: int,
    layouts: dict[str, Layout],
    accumulator: str,
    epilogue: Callable[[Value], Value] | None,
) -> Callable[..., None]:
    """Return the function of the kernel."""
    m, n, k = config.tile
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    instruction = instruction_of(config)
    rasterization = raster_groups(*_item_grid(problem, config, groups), config.raster_group)
    down, _ = config.tiles(problem)
    # One tile more than there are: a group may begin at the end of the last tile.
    rows = OrderBy(Row(down + 1, m))

    def ragged(a: Any, b: Any, c: Any, offsets: Any) -> None:
        def tiles_of(name: str, tensor: Any) -> Any:
            return tensor.view(layouts[name]).tile(*shapes[name])

        def end(group: Any) -> Any:
            return offsets[group].below(problem.m + 1)

        def start(group: Any) -> Any:  # 0 for the first group, else the end of the one before
            return end(maximum(group - 1, 0)) * minimum(group, 1)

        item, j = rasterization.inv(block_id())
        group = search(item, groups, lambda g: rows.inv(start(g))[0] + g)
        # An item without rows to compute may be one row of tiles too far.
        i = minimum(item - group, down - 1).below(down)
        lower = maximum(start(group), rows.apply(i, 0))
        upper = minimum(end(group), rows.apply(i, 0) + m)
        full = config.k_iterations(problem)
        iterations = minimum(1 + maximum(upper - lower, 0) * full, full)

        @fold(iterations, first_sums(config, accumulator))
        def total(step: Any, total: Any) -> Value:
            left, right = tiles_of("a", a)[i, step], tiles_of("b", b)[group, step, j]
            return dot(left, right, total, **instruction)

        result = total if epilogue is None else epilogue(total)
        check_epilogue_result(result)
        row = i * m + arange(m)
        stored: Any = result.to(problem.out)
        own = restrict(stored, ((row >= lower) & (row < upper))[:, None])
        tiles_of("c", c)[i, j] = own

    return ragged
