"""Grouped GEMM: several GEMMs of any sizes in one launch.

CTA ids run through the tiles of all GEMMs, those with the largest k first. A CTA finds its GEMM by
its id, and its tile by that GEMM's rasterization. Sizes and addresses of matrices come from tables,
so the code does not grow with the number of GEMMs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature
from math import gcd, prod
from typing import Any, TypeAlias

from lego_mlir import runtime
from lego_mlir.algebra import Col, Layout, OrderBy, Row, size_symbol
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import (
    EmptyType,
    Kernel,
    TensorType,
    Value,
    block_id,
    dot,
    fold,
    kernel,
    pick,
    segment,
    sized,
    table,
)
from lego_mlir.hardware.limits import MAX_PARAMETER_BYTES, TENSOR_MAP_BYTES
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.arguments import check_types
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.kernel import check_epilogue_result
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, layout_of, order_of
from lego_mlir.kernels.gemm.planner import plan_grouped, why_not_wgmma
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.rasterization import RASTER_GROUPS, raster_group_sizes
from lego_mlir.kernels.gemm.several.steps import steps_of
from lego_mlir.kernels.gemm.tile_program import first_sums, instruction_of
from lego_mlir.kernels.public import public

Shape: TypeAlias = tuple[int, int, int]
"""m, n and k of a GEMM."""

_MAX_GEMMS = MAX_PARAMETER_BYTES // (3 * TENSOR_MAP_BYTES)
"""GEMMs in one launch by `wgmma`: the tensor maps of each are parameters of the kernel."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One of the GEMMs.

    Attributes:
        index: its position in the caller's list.
        problem: the GEMM.
    """

    index: int
    problem: Problem


@public
def grouped_matmul(
    shapes: Sequence[Shape],
    dtype: str = "f16",
    *,
    out: str | None = None,
    a: Sequence[Layout] | None = None,
    b: Sequence[Layout] | None = None,
    epilogue: Callable[[Value], Value] | None = None,
    config: GemmConfig | None = None,
    schedule: str | None = None,
    target: str | None = None,
    promote: int = 0,
) -> Kernel:
    """Return a kernel that computes several GEMMs, each C = A B, of any sizes.

        grouped_matmul([(512, 1024, 256), (64, 4096, 4096)])(a0, b0, c0, a1, b1, c1)

    Args:
        shapes: (m, n, k) of each GEMM; one with m = 0 writes nothing.
        dtype: element type of every A and B: f16, bf16, i8, f8E4M3FN or f8E5M2.
        out: element type of every C; by default that of A and B, i32 for i8, f16 for 8-bit floats.
        a: layouts of the As, all row-major or all column-major; row-major by default.
        b: layouts of the Bs, likewise. Every C is row-major.
        epilogue: a function that computes a tile of C from the accumulator's tile.
        config: one config for all GEMMs; by default chosen for the largest of them. The fields
            `cluster`, `overlap_epilogue`, `split_k` and `swap_ab` of a `WgmmaConfig` keep their
            defaults.
        schedule: `persistent` or `cp_async`. By default `persistent` for sm_90a, else `cp_async`.
            If TMA cannot copy the matrices of one of the GEMMs it is `cp_async` too, with a
            warning.
        target: the GPU architecture; by default that of the GPU in this machine, and sm_90a
            without one.
        promote: as in `matmul`.

    Raises:
        LegoError: no GEMM writes anything, a type or a layout is wrong, or the given schedule
            cannot compute the GEMMs.
    """
    what = "grouped_matmul"
    shapes = _checked(shapes)
    name = target or runtime.select().target or DEFAULT_TARGET
    accumulator, out = check_types(what, dtype, out, name, promote)
    every = _members(shapes, dtype, out, a, b)
    members = sorted((x for x in every if x.problem.m), key=lambda x: -x.problem.k)
    if not members:
        raise LegoError(
            f"grouped_matmul: none of the {len(shapes)} GEMMs has a row of C",
            hint="one GEMM or more with m > 0",
        )

    def reason() -> LegoError | None:
        if len(members) > _MAX_GEMMS:
            return LegoError(
                f"{len(members)} GEMMs have {3 * len(members)} tensor maps, and a kernel takes "
                f"those of {_MAX_GEMMS}",
                hint="fewer GEMMs in one launch",
            )
        return next(filter(None, map(_why_not_wgmma, members)), None)

    parsed = Target.parse(name)
    config = plan_grouped(
        what,
        [x.problem for x in members],
        reason,
        parsed,
        schedule,
        config,
        promote,
        partial(_count_tiles, members),
    )
    return _kernel(every, members, config, parsed, accumulator, epilogue)


def _checked(shapes: Sequence[Any]) -> list[Shape]:
    """Return the sizes of the GEMMs.

    Raises:
        LegoError: they are not sizes.
    """
    for shape in shapes:
        sizes = tuple(shape) if isinstance(shape, Sequence) else ()
        are_sizes = len(sizes) == 3 and all(type(size) is int for size in sizes)
        if not are_sizes or sizes[0] < 0 or min(sizes[1:]) < 1:
            raise LegoError(
                f"grouped_matmul: {shape!r} is not the (m, n, k) of a GEMM",
                hint="sizes are positive integers; m may be 0",
            )
    return [(m, n, k) for m, n, k in shapes]


def _members(
    shapes: Sequence[Shape],
    dtype: str,
    out: str,
    a: Sequence[Layout] | None,
    b: Sequence[Layout] | None,
) -> list[_Member]:
    """Return the GEMMs in the caller's order, all with the same orders of A and B.

    Raises:
        LegoError: layouts are missing, or differ in their order.
    """
    for what, layouts in (("a", a), ("b", b)):
        if layouts is not None and len(layouts) != len(shapes):
            raise LegoError(
                f"grouped_matmul: {len(layouts)} layouts {what} for {len(shapes)} GEMMs"
            )
    found = []
    for index, (m, n, k) in enumerate(shapes):
        orders = ("row", "row")
        if m:
            order_a = _order(f"a[{index}]", None if a is None else a[index], (m, k))
            orders = order_a, _order(f"b[{index}]", None if b is None else b[index], (k, n))
        found.append(_Member(index, Problem(m, n, k, dtype, out, *orders)))
    nonempty = [x for x in found if x.problem.m]
    for x in nonempty:
        leader = nonempty[0].problem
        if (x.problem.a, x.problem.b) != (leader.a, leader.b):
            raise LegoError(
                f"grouped_matmul: GEMM {x.index} has an A by {x.problem.a} and a B by "
                f"{x.problem.b}, the first by {leader.a} and {leader.b}",
                hint="in one launch all As, and all Bs, are row-major or all column-major",
            )
    return found


def _order(what: str, user_layout: Layout | None, shape: tuple[int, int]) -> str:
    """Return the contiguous dimension of a matrix.

    Raises:
        LegoError: it is neither row-major nor column-major.
    """
    layout = layout_of(what, user_layout, shape)
    order = order_of(layout)
    if user_layout is not None and not layout.equals(_matrix(order, *shape)):
        raise LegoError(
            f"grouped_matmul: {what} = '{user_layout}' is neither row-major nor column-major",
            hint=f"OrderBy(Row{shape}) or OrderBy(Col{shape})",
        )
    return order


def _matrix(order: str, rows: Any, columns: Any) -> Layout:
    return OrderBy((Row if order == "row" else Col)(rows, columns))


def _why_not_wgmma(member: _Member) -> LegoError | None:
    """Return why `wgmma` cannot compute a GEMM, and which one it is; `None` if it can."""
    p = member.problem
    layouts = _matrix(p.a, p.m, p.k), _matrix(p.b, p.k, p.n), _matrix(p.c, p.m, p.n)
    found = why_not_wgmma(p, layouts)
    if found is None:
        return None
    return LegoError(f"GEMM {member.index}, {p.m}×{p.n}×{p.k}: {found.message}", hint=found.hint)


def _count_tiles(members: Sequence[_Member], config: GemmConfig) -> int:
    """Return the tiles of all GEMMs."""
    return sum(prod(config.tiles(member.problem)) for member in members)


def _kernel(
    every: Sequence[_Member],
    members: Sequence[_Member],
    config: GemmConfig,
    target: Target,
    accumulator: str,
    epilogue: Callable[[Value], Value] | None,
) -> Kernel:
    """Return the kernel of the GEMMs `members`, with parameters for `every` one."""
    tiles = _count_tiles(members, config)
    # Threads would choose among the addresses of every C: code that grows with their number.
    steps = steps_of(config, members[0].problem, target, stores_by_tma=True)
    return kernel(
        grid=tiles,
        parameters=_parameters(every),
        strict=True,
        explanation=lambda: (
            f"{len(members)} GEMMs in {tiles} tiles\nschedule   {steps['schedule']}\n"
            f"config     {config}"
        ),
        **steps,
    )(_body(every, members, config, accumulator, epilogue))


def _parameters(every: Sequence[_Member]) -> dict[str, TensorType | EmptyType]:
    """Return the kernel's parameters, GEMM by GEMM in the caller's order."""
    types: dict[str, TensorType | EmptyType] = {}
    for member in every:
        p = member.problem
        matrices = (
            ("a", p.dtype, p.a, (p.m, p.k)),
            ("b", p.dtype, p.b, (p.k, p.n)),
            ("c", p.out, p.c, (p.m, p.n)),
        )
        for name, kind, order, shape in matrices:
            types[f"{name}{member.index}"] = (
                TensorType(kind, _matrix(order, *shape), ALIGNMENT)
                if all(shape)
                else EmptyType(kind, shape)
            )
    return types


def _body(
    every: Sequence[_Member],
    members: Sequence[_Member],
    config: GemmConfig,
    accumulator: str,
    epilogue: Callable[[Value], Value] | None,
) -> Callable[..., None]:
    """Return the function of the kernel."""
    m, n, k = config.tile
    problem = members[0].problem
    counts = [config.tiles(member.problem) for member in members]
    instruction = instruction_of(config)
    groups = [raster_group_sizes(*tiles, config.raster_group) for tiles in counts]

    def grouped(**tensors: Any) -> None:
        index, tile_id = segment(block_id(), [prod(tiles) for tiles in counts])
        sizes = {name: table(index, [getattr(x.problem, name) for x in members]) for name in "mnk"}

        def tiles_of(name: str, order: str, dims: str, tile: tuple[int, int]) -> Any:
            matrix = _symbolic(order, dims, tile, members)
            known = {s.name: sizes[s.name] for s in matrix.symbols}
            of_each = [tensors[f"{name}{x.index}"] for x in members]
            return pick(index, of_each, sized(matrix, **known)).tile(*tile)

        a = tiles_of("a", problem.a, "mk", (m, k))
        b = tiles_of("b", problem.b, "kn", (k, n))
        c = tiles_of("c", problem.c, "mn", (m, n))
        symbols = {s: table(index, [sizes[s] for sizes in groups]) for s in groups[0]}
        i, j = sized(RASTER_GROUPS, **symbols).inv(tile_id)
        # Tiles of so many iterations are proven to begin within k, which a table does not say.
        iterations = (sizes["k"] + (k - 1)) // k

        @fold(iterations, first_sums(config, accumulator))
        def total(step: Any, total: Any) -> Value:
            return dot(a[i, step], b[step, j], total, **instruction)

        result = total if epilogue is None else epilogue(total)
        check_epilogue_result(result)
        c[i, j] = result.to(problem.out)

    names = [f"{name}{x.index}" for x in every for name in "abc"]
    grouped.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return grouped


def _symbolic(order: str, dims: str, tile: tuple[int, int], members: Sequence[_Member]) -> Layout:
    """Return the layout of a matrix with the symbolic sizes m, n and k.

    A symbol carries what divides that size of all GEMMs: whole tiles, or the alignment of rows.
    """
    sizes = []
    for name, extent in zip(dims, tile, strict=True):
        common = gcd(extent, *(getattr(x.problem, name) for x in members))
        sizes.append(size_symbol(name, [common] if common > 1 else []))
    return _matrix(order, *sizes)
