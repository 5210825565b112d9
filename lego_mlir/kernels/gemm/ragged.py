"""Products of runs of A's rows with one matrix of B each, where the runs end only the launch knows.

    offsets = 96, 96, 200      rows 0 to 95 by B[0], none by B[1], rows 96 to 199 by B[2]

Tiles are those of the whole of A and of C. Where a run ends within a tile, the tile is multiplied
once for each run that has rows in it, and each time only that run's rows are stored. Such a piece
of work, a run and a tile, has the number

    row of tiles + run

for the next piece is of the next run, of the next row of tiles, or both: no two have the same
number, and the run is found among those where they begin, by halves. The few numbers that stand
for nothing take one step over k, and store nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from lego_mlir import runtime
from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, TensorType, Value, block_id, dot, fold, kernel, search, zeros
from lego_mlir.hardware.targets import Target
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.gemm.grouped_config import (
    Division,
    check_plain,
    division_of,
    promoting,
    schedule_of,
)
from lego_mlir.kernels.gemm.matmul import ALIGNMENT, sums_of
from lego_mlir.kernels.gemm.matrices import contiguous_dimension, layout_of, tiled
from lego_mlir.kernels.gemm.planner import refusal_of
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.rasterization import grouped
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig


def ragged_matmul(
    m: int,
    n: int,
    k: int,
    runs: int,
    dtype: str = "f16",
    *,
    out: str | None = None,
    a: Layout | None = None,
    b: Layout | None = None,
    epilogue: Callable[[Value], Value] | None = None,
    config: Division | None = None,
    schedule: str | None = None,
    target: str | None = None,
    promote: int = 0,
) -> Kernel:
    """A kernel that multiplies each run of A's rows by its own matrix, as in a mixture of experts.

        ragged_matmul(8192, 4096, 1024, runs=64)(a, b, c, offsets)

    `offsets`, of i32 on the device, says where the runs end: run g is of the rows from
    offsets[g - 1], or 0, up to offsets[g], exclusive. They do not descend, and are at most m: that
    is the caller's to see to. Rows of C behind the last run stay as they are.

    Args:
        m: rows of A and C.
        n: columns of C and of each matrix of B.
        k: columns of A, rows of each matrix of B.
        runs: how many; any may be empty.
        dtype: of A and B: f16, bf16, i8, f8E4M3FN or f8E5M2.
        out: of C; by default that of A and B, i32 of i8, and f16 of the 8-bit floats.
        a: where A's elements lie, m×k; row-major by default.
        b: where B's elements lie, runs×k×n. C is row-major.
        epilogue: what becomes of the sums, a tile of them, before they are stored.
        config: how the product is divided, by default as if it were one of m×n×k. Of a
            `WgmmaConfig`, `cluster`, `overlap_epilogue`, `split_k` and `swap_ab` stay as they are by default.
        schedule: `wgmma` or `hmma`; by default `wgmma` for sm_90a, and `hmma` elsewhere and, with a
            warning, where TMA cannot copy the matrices.
        target: the GPU architecture; by default that of the GPU that is here, and sm_90a without
            one.
        promote: as of `matmul`.

    Raises:
        LegoError: a size, a type or a layout is not what it should be, or the schedule that is
            asked for cannot.
    """
    what = "ragged_matmul"
    name = target or runtime.select().target or DEFAULT_TARGET
    goal = Target.parse(name)
    if any(type(size) is not int or size < 1 for size in (m, n, k, runs)):
        raise LegoError(
            f"{what}: {[m, n, k, runs]} are no sizes", hint="sizes are positive integers"
        )
    sums, out = sums_of(what, dtype, out, name, promote)
    shapes = {"a": (m, k), "b": (runs, k, n), "c": (m, n)}
    places = {
        matrix: layout_of(matrix, layout, shapes[matrix])
        for matrix, layout in {"a": a, "b": b, "c": None}.items()
    }
    order_a = "col" if contiguous_dimension(places["a"]) == 0 else "row"
    order_b = "col" if contiguous_dimension(places["b"]) == 1 else "row"
    problem = Problem(m, n, k, dtype, out, order_a, order_b)

    def check(division: Division) -> None:
        check_plain(what, division)
        division.check(problem, goal.optin_shared_bytes)

    def count_of(division: Division) -> int:
        return prod(_numbers(problem, division, runs))

    def refusal() -> LegoError | None:
        return refusal_of(problem, list(places.values()))

    chosen = schedule_of(what, problem, refusal, goal, schedule, config)
    if config is None:
        config = division_of(what, [problem], goal, chosen, promote, count_of, check)
    config = promoting(config, promote)
    check(config)
    count = count_of(config)
    types = {
        matrix: TensorType(kind, places[matrix], ALIGNMENT)
        for matrix, kind in {"a": dtype, "b": dtype, "c": out}.items()
    }
    params = dict(config.params(problem))
    if isinstance(config, WgmmaConfig):
        # What runs before on the stream may write the offsets, which are read at once.
        params |= {"persistent_ctas": config.persistent_ctas or count, "pdl": 0}
    return kernel(
        grid=count,
        block=config.threads,
        parameters={**types, "offsets": TensorType("i32", OrderBy(Row(runs)))},
        schedule=config.schedule,
        params=params,
        strict=True,
        explanation=lambda: (
            f"{runs} runs of {m} rows, at most {count} pieces of work\n"
            f"schedule   {config.schedule}\ndivision   {config}"
        ),
    )(_body(problem, config, runs, places, sums, epilogue))


def _numbers(problem: Problem, config: Division, runs: int) -> tuple[int, int]:
    """The numbers of pieces of work, and the columns of tiles."""
    down, across = config.tiles(problem)
    return down + runs - 1, across


def _body(
    problem: Problem,
    config: Division,
    runs: int,
    places: dict[str, Layout],
    sums: str,
    epilogue: Callable[[Value], Value] | None,
) -> Callable[..., None]:
    """The function of the kernel."""
    m, n, k = config.tile
    views = tiled(places["a"], (m, k)), tiled(places["b"], (1, k, n)), tiled(places["c"], (m, n))
    staged_a, staged_b, staged_c = config.staging(problem)
    pieces = grouped(*_numbers(problem, config, runs), config.raster_group)
    down, _ = config.tiles(problem)
    # One tile more than there are: a run may begin where the last tile ends.
    rows = OrderBy(Row(down + 1, m))

    def ragged(a: Any, b: Any, c: Any, offsets: Any) -> None:
        def end(run: Any) -> Any:
            return offsets[run].below(problem.m + 1)

        def start(run: Any) -> Any:  # the first run begins at 0, the others where one has ended
            return end(maximum(run - 1, 0)) * minimum(run, 1)

        piece, j = pieces.inv(block_id())
        run = search(piece, runs, lambda r: rows.inv(start(r))[0] + r)
        # A number that stands for nothing may be one row of tiles further.
        i = minimum(piece - run, down - 1).below(down)
        lower = maximum(start(run), rows.apply(i, 0))
        upper = minimum(end(run), rows.apply(i, 0) + m)
        full = config.steps(problem)
        steps = minimum(1 + maximum(upper - lower, 0) * full, full).below(full + 1)

        @fold(steps, zeros((m, n), sums))
        def total(step: Any, total: Any) -> Value:
            left = a.view(views[0]).staged(staged_a)[i, step, :, :]
            right = b.view(views[1]).staged(staged_b)[run, step, j, 0, :, :]
            return dot(left, right, total, warps=config.warp_layout)

        result = total if epilogue is None else epilogue(total)
        if not isinstance(result, Value):
            raise LegoError(f"the epilogue of a product returned {result!r}, no kernel value")
        c.view(views[2]).staged(staged_c).rows(lower, upper)[i, j, :, :] = result.to(problem.out)

    return ragged
