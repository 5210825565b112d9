"""GEMM on tensor cores, one or a batch: the kernel names no instruction, a schedule finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from lego_mlir import runtime
from lego_mlir.algebra import Layout
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelChoice, KernelSequence, TensorType
from lego_mlir.hardware.specs import card_named
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tuner
from lego_mlir.kernels.gemm.any_rows.matmul import matmul_of_any_rows
from lego_mlir.kernels.gemm.any_rows.problem import rows_of
from lego_mlir.kernels.gemm.arguments import (
    check_operands,
    check_sizes,
    check_types,
    epilogue_kind,
)
from lego_mlir.kernels.gemm.build import Request, build
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.empty import empty_matmul
from lego_mlir.kernels.gemm.kernel import Epilogue, Operand
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, layout_of, order_of
from lego_mlir.kernels.gemm.planner import byte_copy_warning, fallback_warning, plan, ways
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.public import public, warn_user
from lego_mlir.kernels.tuning import is_wanted

_ALTERNATIVES = 8
"""Configs that are tried after one whose machine code spills registers."""


@public
def matmul(
    m: int | None,
    n: int,
    k: int,
    dtype: str = "f16",
    *,
    out: str | None = None,
    a: Layout | None = None,
    b: Layout | None = None,
    c: Layout | None = None,
    batch: int | None = None,
    epilogue: Epilogue | None = None,
    operands: Mapping[str, Operand] | None = None,
    config: GemmConfig | None = None,
    rasterization: Layout | None = None,
    schedule: str | None = None,
    target: str | None = None,
    promote: int = 0,
    alignment: int = ALIGNMENT,
    tune: bool | None = None,
    configs: int | None = None,
) -> Kernel | KernelSequence | KernelChoice:
    """Return a kernel that computes C = A B, or a batch of such GEMMs.

        matmul(4096, 4096, 4096)(a, b, c)

    Accumulators are f32, of integers i32. Any sizes work. On sm_90a, an operand whose rows are not
    multiples of 16 bytes is first copied to a workspace, unless the GEMM is small; elsewhere such
    a kernel is slower, because a wide access cannot start at every row.

    Args:
        m: rows of A and C. Without rows or columns nothing is launched. `None` if only a launch
            knows them; layouts and operands then call them M.
        n: columns of B and C.
        k: columns of A, rows of B. If it is 0, C is zeros, or what the epilogue makes of them.
        dtype: element type of A and B: f16, bf16, i8, f8E4M3FN or f8E5M2.
        out: element type of C; by default that of A and B, i32 for i8, f16 for 8-bit floats.
        a: layout of A, m×k, in a batch batch×m×k; row-major by default.
        b: layout of B, k×n.
        c: layout of C, m×n.
        batch: the number of GEMMs, for a batch.
        epilogue: a function that computes a tile of C from the accumulator's tile and, by name, the
            tiles of the operands.
        operands: parameters of the kernel for the epilogue: numbers, `lg.Scalar["f32"]`, and
            tensors of sizes m×n, m×1, 1×n or n, `lg.Tensor["f16", OrderBy(Row(n))]`.
        config: tile sizes, stages and so on; by default chosen for the sizes and the target. A
            `WgmmaConfig` is for the schedule `persistent`, a `GemvConfig` for `gemv`, a `MmaConfig`
            for the others.
        rasterization: the layout from a CTA's id to its tile of C, (down, across), or in a batch
            with `wgmma` (GEMM, down, across). If C is column-major or the config says `swap_ab`,
            the tiles are those of the transpose of C. By default raster groups of the config.
        schedule: a schedule's name or file, or `gemv` for a C of at most 32 rows or columns. By
            default `gemv` if it is estimated to be faster, `persistent` for sm_90a, else
            `cp_async`. If TMA cannot copy the matrices it is `cp_async` too, with a warning.
        target: the GPU architecture to choose a config for; by default that of the GPU in this
            machine, and sm_90a without one.
        promote: iterations after which `wgmma` accumulators are promoted to f32; 0 for none.
            Tensor cores accumulate products of 8-bit floats with 13 bits of fraction and truncate
            the rest. With 4, a tensor core accumulates 512 products. `cp_async` does not need it.
        alignment: bytes that the addresses of the matrices are a multiple of, a power of two. With
            less than 16, operands are copied first, as above.
        tune: whether the GPU in this machine times the best five configs by their estimates, unless
            it did before; see `kernels.gemm.tuner`. By default if `LEGO_MLIR_TUNE` is 1. Nothing is
            timed if the caller gives a config, a schedule or `promote`.
        configs: with m = `None` the configs that are compiled at most, each when rows first need
            it. By default as many as are estimated to save 2 % of the time for some rows.

    Raises:
        LegoError: a size, a type or a layout is wrong, or the target has no such instruction.
    """
    is_tuned = config is None and schedule is None and not promote and is_wanted(tune)
    target, model = _machine(target, is_needed=is_tuned)
    rows = rows_of(a) if m is None else m
    known = (1 if m is None else m, n, k)
    sizes = known if batch is None else (*known, batch)
    check_sizes("matmul", sizes, least=1 if m is None else 0)
    accumulator, out = check_types("matmul", dtype, out, target, promote)
    lead = () if batch is None else (batch,)
    if 0 in sizes:

        def of_zeros(k: int, a: Layout, b: Layout) -> Kernel | KernelSequence:
            made = matmul(
                m, n, k, dtype, out=out, a=a, b=b, c=c, batch=batch, epilogue=epilogue,
                operands=operands, config=config, rasterization=rasterization, schedule=schedule,
                target=target, promote=promote, alignment=alignment,
            )  # fmt: skip
            assert not isinstance(made, KernelChoice)  # m is known
            return made

        return empty_matmul(
            sizes, (dtype, out), {"a": a, "b": b, "c": c}, operands or {}, alignment, of_zeros
        )
    layouts = [
        layout_of(what, layout, (*lead, *shape))
        for what, layout, shape in (("a", a, (rows, k)), ("b", b, (k, n)), ("c", c, (rows, n)))
    ]
    types = {
        name: TensorType(kind, layout, alignment)
        for name, kind, layout in zip("abc", (dtype, dtype, out), layouts, strict=True)
    }
    extra = dict(operands or {})
    check_operands(extra, epilogue, (rows, n))
    request = Request(types, accumulator, batch, epilogue, extra, rasterization)
    parsed = Target.parse(target)
    if m is None:
        if tune:
            raise LegoError(
                "matmul: tune=True, and only the launch knows the rows",
                hint="tune=False, or give the number of rows",
            )
        return matmul_of_any_rows(request, n, k, parsed, schedule, config, promote, configs)
    order_a, order_b, order_c = map(order_of, layouts)
    problem = Problem(m, n, k, dtype, out, order_a, order_b, order_c, batch or 1)
    kind = epilogue_kind(extra, (m, n)) if epilogue is not None else None
    gpu = card_named(model) if model else None
    is_chosen = config is None and schedule is None and not promote

    def with_config(config: GemmConfig) -> Kernel | KernelSequence | KernelChoice:
        return matmul(
            m, n, k, dtype, out=out, a=a, b=b, c=c, batch=batch, epilogue=epilogue,
            operands=operands, config=config, rasterization=rasterization, target=target,
            alignment=alignment, tune=False,
        )  # fmt: skip

    def all_ways() -> list[GemmConfig]:
        return ways(problem, layouts, parsed, alignment, gpu, kind)

    if is_tuned:

        def compiled(config: GemmConfig) -> Artifact:
            return with_config(config).compile(target)

        config = _tuned(problem, all_ways(), model, compiled, tune)
    chosen = plan(problem, layouts, parsed, schedule, config, promote, alignment, gpu, kind)
    if chosen.why_not_wgmma is not None:
        warn_user(fallback_warning("matmul", chosen.why_not_wgmma))
    elif not problem.is_along_k:
        warn_user(byte_copy_warning("matmul", problem))
    made = build(request, chosen)

    def alternatives() -> Iterator[Kernel | KernelSequence | KernelChoice]:
        if is_chosen:
            others = (config for config in all_ways() if config != chosen.config)
            yield from map(with_config, islice(others, _ALTERNATIVES))

    made.alternatives = alternatives
    return made


def _machine(target: str | None, *, is_needed: bool) -> tuple[str, str | None]:
    """Return the target, and the name of the GPU in this machine if it is of the target.

    Args:
        target: what the caller says; with it the GPU is not asked, unless it is needed.
        is_needed: whether the GPU's name is needed.
    """
    if target is not None and not is_needed:
        return target, None
    device = runtime.select()
    model = device.model if target in (None, device.target) else None
    return target or device.target or DEFAULT_TARGET, model


def _tuned(
    problem: Problem,
    configs: Sequence[GemmConfig],
    model: str | None,
    build: Callable[[GemmConfig], Artifact],
    tune: bool | None,
) -> GemmConfig | None:
    """Return the tuned config of a GEMM; `None` if only the environment asks for one without a GPU.

    Args:
        problem: the GEMM.
        configs: the configs, those with the best estimates first.
        model: the GPU in this machine; `None` if there is none of the target.
        build: compiles the GEMM with a config.
        tune: what the caller says.

    Raises:
        LegoError: the caller wants to tune, and there is no GPU of the target.
    """
    if model is None:
        if tune:
            raise LegoError(
                "matmul: tune=True, and this machine has no GPU of the target",
                hint="tune=False: the config is chosen by the cost model",
            )
        return None
    return tuner.tuned_config(model, problem, configs, build)
