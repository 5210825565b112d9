"""Products of matrices of several sizes in one launch.

Blocks are numbered through all products, those of the deepest first. A block finds its product by
its number, and its tile by that product's layout. Sizes come from tables, and so do the places of
matrices: the code is one product's, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature
from math import gcd, prod
from typing import Any, TypeAlias

from lego_mlir import runtime
from lego_mlir.algebra import Col, Layout, OrderBy, Row, ceildiv, size_symbol
from lego_mlir.artifact.model import MOST_PARAMETER_BYTES
from lego_mlir.artifact.tensor_maps import MAP_BYTES
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
    zeros,
)
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.grouped_config import (
    Division,
    check_plain,
    division_of,
    promoting,
    schedule_of,
)
from lego_mlir.kernels.gemm.matmul import ALIGNMENT, sums_of
from lego_mlir.kernels.gemm.matrices import contiguous_dimension, layout_of
from lego_mlir.kernels.gemm.planner import refusal_of
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.rasterization import GROUPED, grouped_sizes
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

Shape: TypeAlias = tuple[int, int, int]
"""Rows of A, columns of B, and the depth that they have in common."""


_MOST_PRODUCTS = MOST_PARAMETER_BYTES // (3 * MAP_BYTES)
"""In one launch by TMA: the tensor maps of each are parameters of the kernel."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One of the products.

    Attributes:
        place: among those that were asked for.
        problem: what is multiplied.
    """

    place: int
    problem: Problem


def grouped_matmul(
    shapes: Sequence[Shape],
    dtype: str = "f16",
    *,
    out: str | None = None,
    a: Sequence[Layout] | None = None,
    b: Sequence[Layout] | None = None,
    epilogue: Callable[[Value], Value] | None = None,
    config: Division | None = None,
    schedule: str | None = None,
    target: str | None = None,
    promote: int = 0,
) -> Kernel:
    """A kernel that writes C = A B for several products at once, of any sizes.

        grouped_matmul([(512, 1024, 256), (64, 4096, 4096)])(a0, b0, c0, a1, b1, c1)

    Args:
        shapes: (m, n, k) of each product; one of m = 0 has nothing to write.
        dtype: of all A and B: f16, bf16, i8, f8E4M3FN or f8E5M2.
        out: of all C; by default that of A and B, i32 of i8, and f16 of the 8-bit floats.
        a: where the elements of each A lie, all by rows or all by columns; row-major by default.
        b: the same of each B. C is row-major.
        epilogue: what becomes of the sums, a tile of them, before they are stored.
        config: how all products are divided, by default as suits the largest of them. Of a
            `WgmmaConfig`, `cluster`, `overlap_epilogue`, `split_k` and `swap_ab` stay as they are by default.
        schedule: `wgmma` or `hmma`; by default `wgmma` for sm_90a, and `hmma` elsewhere and, with a
            warning, where TMA cannot copy the matrices of one of the products.
        target: the GPU architecture; by default that of the GPU that is here, and sm_90a without
            one.
        promote: as of `matmul`.

    Raises:
        LegoError: there is nothing to multiply, a type or a layout is not what it should be, or
            the schedule that is asked for cannot.
    """
    what = "grouped_matmul"
    shapes = _checked(shapes)
    name = target or runtime.select().target or DEFAULT_TARGET
    goal = Target.parse(name)
    sums, out = sums_of(what, dtype, out, name, promote)
    every = _members(shapes, dtype, out, a, b)
    members = sorted((x for x in every if x.problem.m), key=lambda x: -x.problem.k)
    if not members:
        raise LegoError(
            f"grouped_matmul: {len(shapes)} products without a row of C",
            hint="one product or more, of m > 0",
        )

    def check(division: Division) -> None:
        check_plain(what, division)
        for member in members:
            division.check(member.problem, goal.optin_shared_bytes)

    def refusal() -> LegoError | None:
        if len(members) > _MOST_PRODUCTS:
            return LegoError(
                f"{len(members)} products have {3 * len(members)} tensor maps, and a kernel takes "
                f"those of {_MOST_PRODUCTS}",
                hint="fewer products in one launch",
            )
        return next(filter(None, map(_refusal, members)), None)

    chosen = schedule_of(what, members[0].problem, refusal, goal, schedule, config)
    if config is None:
        problems, count = [x.problem for x in members], partial(_count, members)
        config = division_of(what, problems, goal, chosen, promote, count, check)
    config = promoting(config, promote)
    check(config)
    return _kernel(every, members, config, sums, epilogue)


def _checked(shapes: object) -> list[Shape]:
    """The sizes of the products.

    Raises:
        LegoError: they are none.
    """
    if not isinstance(shapes, Sequence):
        raise LegoError(
            f"grouped_matmul: {shapes!r} are no products", hint="a list of (m, n, k), one a product"
        )
    for shape in shapes:
        sizes = tuple(shape) if isinstance(shape, Sequence) else ()
        are_sizes = len(sizes) == 3 and all(type(size) is int for size in sizes)
        if not are_sizes or sizes[0] < 0 or min(sizes[1:]) < 1:
            raise LegoError(
                f"grouped_matmul: {shape!r} is no product's (m, n, k)",
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
    """The products, as they were asked for."""
    for what, layouts in (("a", a), ("b", b)):
        if layouts is not None and not isinstance(layouts, Sequence):
            raise LegoError(
                f"grouped_matmul: {what} is a list of layouts, one a product, not {layouts!r}"
            )
        if layouts is not None and len(layouts) != len(shapes):
            raise LegoError(
                f"grouped_matmul: {len(layouts)} layouts {what} for {len(shapes)} products"
            )
    found = []
    for place, (m, n, k) in enumerate(shapes):
        orders = ("row", "row")
        if m:
            first = _order(f"a[{place}]", None if a is None else a[place], (m, k))
            orders = first, _order(f"b[{place}]", None if b is None else b[place], (k, n))
        found.append(_Member(place, Problem(m, n, k, dtype, out, *orders)))
    there = [x for x in found if x.problem.m]
    for x in there:
        leader = there[0].problem
        if (x.problem.a, x.problem.b) != (leader.a, leader.b):
            raise LegoError(
                f"grouped_matmul: product {x.place} has an A by {x.problem.a} and a B by "
                f"{x.problem.b}, the first by {leader.a} and {leader.b}",
                hint="products of one launch are alike row- or column-major",
            )
    return found


def _order(what: str, given: Layout | None, shape: tuple[int, int]) -> str:
    """Whether a matrix lies by rows or by columns.

    Raises:
        LegoError: neither.
    """
    layout = layout_of(what, given, shape)
    order = "col" if contiguous_dimension(layout) == 0 else "row"
    if given is not None and not layout.equals(_matrix(order, *shape)):
        raise LegoError(
            f"grouped_matmul: {what} = '{given}' lies neither by rows nor by columns",
            hint=f"OrderBy(Row{shape}) or OrderBy(Col{shape})",
        )
    return order


def _matrix(order: str, rows: Any, columns: Any) -> Layout:
    return OrderBy((Row if order == "row" else Col)(rows, columns))


def _refusal(member: _Member) -> LegoError | None:
    """Why `wgmma` cannot compute a product, and which one it is; `None` if it can."""
    p = member.problem
    places = _matrix(p.a, p.m, p.k), _matrix(p.b, p.k, p.n), _matrix(p.c, p.m, p.n)
    found = refusal_of(p, places)
    if found is None:
        return None
    return LegoError(f"product {member.place}, {p.m}×{p.n}×{p.k}: {found.message}", hint=found.hint)


def _count(members: Sequence[_Member], config: Division) -> int:
    """The tiles of all products."""
    return sum(prod(config.tiles(member.problem)) for member in members)


def _kernel(
    every: Sequence[_Member],
    members: Sequence[_Member],
    config: Division,
    sums: str,
    epilogue: Callable[[Value], Value] | None,
) -> Kernel:
    """The kernel of the products, and of those without a row."""
    count = _count(members, config)
    params = dict(config.params(members[0].problem))
    if isinstance(config, WgmmaConfig):
        params["persistent_ctas"] = config.persistent_ctas or count
    return kernel(
        grid=count,
        block=config.threads,
        parameters=_parameters(every),
        schedule=config.schedule,
        params=params,
        strict=True,
        explanation=lambda: (
            f"{len(members)} products in {count} tiles\nschedule   {config.schedule}\n"
            f"division   {config}"
        ),
    )(_body(every, members, config, sums, epilogue))


def _parameters(every: Sequence[_Member]) -> dict[str, TensorType | EmptyType]:
    """The kernel's parameters, product by product as they were asked for."""
    types: dict[str, TensorType | EmptyType] = {}
    for member in every:
        p = member.problem
        matrices = (
            ("a", p.dtype, p.a, (p.m, p.k)),
            ("b", p.dtype, p.b, (p.k, p.n)),
            ("c", p.out, p.c, (p.m, p.n)),
        )
        for name, kind, order, shape in matrices:
            types[f"{name}{member.place}"] = (
                TensorType(kind, _matrix(order, *shape), ALIGNMENT)
                if all(shape)
                else EmptyType(kind, shape)
            )
    return types


def _body(
    every: Sequence[_Member],
    members: Sequence[_Member],
    config: Division,
    sums: str,
    epilogue: Callable[[Value], Value] | None,
) -> Callable[..., None]:
    """The function of the kernel."""
    m, n, k = config.tile
    problem = members[0].problem
    staged_a, staged_b, staged_c = config.staging(problem)
    counts = [config.tiles(member.problem) for member in members]
    orders = [grouped_sizes(*tiles, config.raster_group) for tiles in counts]

    def grouped(**tensors: Any) -> None:
        number, inside = segment(block_id(), [prod(tiles) for tiles in counts])
        sizes = {name: table(number, [getattr(x.problem, name) for x in members]) for name in "mnk"}

        def view(name: str, order: str, dims: str, tile: tuple[int, int]) -> Any:
            matrix = _tiles(order, dims, tile, members)
            known = {s.name: sizes[s.name] for s in matrix.symbols}
            of_each = [tensors[f"{name}{x.place}"] for x in members]
            return pick(number, of_each, sized(matrix, **known))

        a = view("a", problem.a, "mk", (m, k)).staged(staged_a)
        b = view("b", problem.b, "kn", (k, n)).staged(staged_b)
        c = view("c", problem.c, "mn", (m, n)).staged(staged_c)
        order = sized(GROUPED, **{s: table(number, [o[s] for o in orders]) for s in orders[0]})
        i, j = order.inv(inside)
        steps = table(number, [config.steps(x.problem) for x in members])

        @fold(steps, zeros((m, n), sums))
        def total(step: Any, total: Any) -> Value:
            return dot(a[i, step, :, :], b[step, j, :, :], total, warps=config.warp_layout)

        result = total if epilogue is None else epilogue(total)
        if not isinstance(result, Value):
            raise LegoError(f"the epilogue of a product returned {result!r}, no kernel value")
        c[i, j, :, :] = result.to(problem.out)

    names = [f"{name}{x.place}" for x in every for name in "abc"]
    grouped.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return grouped


def _tiles(order: str, dims: str, tile: tuple[int, int], members: Sequence[_Member]) -> Layout:
    """The tiles of a matrix whose sizes, those named m, n and k, only the kernel knows.

    What divides the sizes of all products is known of them: whole tiles, or how rows are aligned.
    """
    sizes = []
    for name, extent in zip(dims, tile, strict=True):
        common = gcd(extent, *(getattr(x.problem, name) for x in members))
        sizes.append(size_symbol(name, [common] if common > 1 else []))
    counts = [ceildiv(size, extent) for size, extent in zip(sizes, tile, strict=True)]
    return _matrix(order, *sizes).TileBy(counts, list(tile))
