"""From the plan of a GEMM to the function that launches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelSequence, TensorType, kernel, sequence
from lego_mlir.hardware.limits import MAX_GRID_DIMS, WARP_THREADS
from lego_mlir.index import Int, Sym
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv.body import gemv_body
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.gemv.packing import PACKED, Packing, pack_kernel
from lego_mlir.kernels.gemm.kernel import Epilogue, Operand, TiledGemm
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, transposed
from lego_mlir.kernels.gemm.planner import GEMV, PERSISTENT, Plan
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.tile_program import tile_body, tile_multiple
from lego_mlir.kernels.gemm.unaligned.repitch import copy_name, repitch_kernel
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks of a GEMM, beside its config.

    Attributes:
        types: the parameters of the matrices by name, a, b and c. Rows of A and C may be a symbol.
        accumulator: the element type of the accumulator.
        batch: the number of GEMMs, if they are a batch.
        epilogue: computes C's tile from the accumulator; `None` to store the accumulator.
        operands: the parameters that only the epilogue uses.
        rasterization: from a CTA's id to its tile; `None` for the config's.
    """

    types: Mapping[str, TensorType]
    accumulator: str
    batch: int | None = None
    epilogue: Epilogue | None = None
    operands: Mapping[str, Operand] = field(default_factory=dict)
    rasterization: Layout | None = None

    @property
    def layouts(self) -> list[Layout]:
        """The layouts of A, B and C in memory."""
        return [kind.layout for kind in self.types.values()]


@dataclass(frozen=True, slots=True)
class RunTimeRows:
    """The rows of A and C that only the launch knows.

    Attributes:
        symbol: their number, as the layouts of A and C have it.
        most: the greatest number of any launch, if there is one.
    """

    symbol: Sym
    most: int | None

    @property
    def bounded(self) -> Sym:
        """The symbol, with what is known of its greatest value."""
        return Sym(self.symbol.name, self.symbol.lo, self.most, self.symbol.divisors)

    def within(self, chosen: Plan, rows: Int) -> Problem:
        """Return the problem of a plan with another number of rows of A."""
        changed: dict[str, Any] = {"n" if chosen.is_transposed else "m": rows}
        return replace(chosen.problem, **changed)


def build(
    request: Request, chosen: Plan, rows: RunTimeRows | None = None
) -> Kernel | KernelSequence:
    """Return the function that computes a GEMM as it is planned.

    Args:
        request: the GEMM.
        chosen: its plan, or that of typical sizes.
        rows: the rows of A and C, if only the launch knows them.

    Raises:
        LegoError: the rasterization does not fit, or C has too many tiles.
    """
    config, done, extra = chosen.config, chosen.remedies, dict(request.operands)
    problem = bounded = chosen.problem
    if rows is not None:
        problem, bounded = (rows.within(chosen, n) for n in (rows.symbol, rows.bounded))
    dtype = request.types["a"].dtype
    repitched = done.repitched
    given = {name: kind.layout for name, kind in request.types.items()}
    given |= {name: repitch.target for name, repitch in repitched.items()}
    layout_a, layout_b, layout_c = given.values()
    if chosen.is_transposed:
        layout_b, layout_a, layout_c = (transposed(layout) for layout in given.values())
    order = _rasterization(request, config, bounded)
    if rows is not None:
        order = order.substitute({rows.bounded: rows.symbol})
    tiles = prod(config.grid(problem))
    ctas: Int = tiles * problem.batch
    if isinstance(ctas, int) and ctas > MAX_GRID_DIMS[0]:
        raise LegoError(
            f"matmul: C has {ctas} tiles of {config.tile[0]}×{config.tile[1]}, and a grid at most "
            f"{MAX_GRID_DIMS[0]} CTAs",
            hint="multiply parts of the matrices",
        )
    workspaces = config.workspaces(problem, request.accumulator)
    gemm = TiledGemm(
        problem,
        config,
        order,
        0 if request.batch is None else 1,
        chosen.is_transposed,
        tuple(workspaces),
    )
    matrices = (layout_a, layout_b, layout_c)
    schedule, params = chosen.steps
    if isinstance(config, GemvConfig):
        body = gemv_body(gemm, config, matrices, request.accumulator, request.epilogue, extra)
    else:
        body = tile_body(gemm, matrices, request.accumulator, request.epilogue, extra)
    copies = {name: TensorType(dtype, r.target, ALIGNMENT) for name, r in repitched.items()}
    memory = {
        name: TensorType(w.dtype, OrderBy(Row(*w.shape)), ALIGNMENT)
        for name, w in workspaces.items()
    }
    reference = reference_of(dtype, chosen) if request.epilogue is None else None
    warps = config.threads // WARP_THREADS
    per_tile = 1  # CTAs of a tile
    is_gemv = isinstance(config, GemvConfig)
    threads: Any = {"block": config.threads} if is_gemv else {"warps": warps}
    if isinstance(config, WgmmaConfig):
        threads["tile_multiple"] = tile_multiple(config)
        threads |= {"cluster": config.column_slices, "own_programs": True}
        per_tile = config.column_slices
    multiply = kernel(
        grid=(ctas * per_tile,)
        if order.rank == 3
        else (tiles * per_tile, problem.batch, config.grid_slices),
        reference=reference,
        parameters={**request.types, **copies, **extra, **memory},
        schedule=None if schedule == GEMV else schedule,
        params=params,
        strict=True,
        explanation=lambda: chosen.explanation,
        pdl=True,
        **threads,
    )(body)
    if not repitched and not workspaces:
        return multiply
    names = {name: copy_name(name) for name in repitched}
    before = [repitch_kernel(repitched)] if repitched else []
    if PACKED in workspaces:
        name = "a" if chosen.is_transposed else "b"
        before.append(pack_kernel(Packing(problem), name, request.types[name], layout_b))
    return sequence(
        "matmul",
        [*before, multiply.on(**names)],
        parameters={**request.types, **extra},
        workspaces={
            **{names[name]: repitch.workspace for name, repitch in repitched.items()},
            **workspaces,
        },
        reference=reference,
    )


def reference_of(dtype: str, chosen: Plan) -> str:
    """Return the reference; that of `wgmma` on 8-bit floats allows for its short accumulators."""
    return "coarse_matmul" if chosen.schedule == PERSISTENT and dtype.startswith("f8") else "matmul"


def _rasterization(request: Request, config: GemmConfig, problem: Problem) -> Layout:
    """Return the rasterization: that of the request after a check, or the config's.

    Raises:
        LegoError: the layout does not have the sizes of C in tiles.
    """
    layout, batch = request.rasterization, request.batch
    if layout is None:
        return config.rasterization(problem, batch)
    tiles = config.grid(problem)
    has_batch = config.is_batch_rasterized and batch is not None
    if tuple(layout.dims) != ((batch, *tiles) if has_batch else tiles):
        also = f"the batch has {batch} GEMMs, and " if has_batch else ""
        raise LegoError(
            f"matmul: the layout rasterization = '{layout}' has the sizes "
            f"{sizes_text(layout.dims)}, but {also}the grid has {tiles[0]}×{tiles[1]} tiles of "
            f"{config.tile[0]}×{config.tile[1]}",
            hint="a layout of the tiles, such as OrderBy(Row("
            + ("batch, " if has_batch else "")
            + "down, across))",
        )
    return layout
