"""Products of matrices of several sizes in one launch, on Hopper.

Blocks are numbered through all products, those of the deepest first. A block finds its product by
its number, and its tile by that product's layout; from there on all do the same: fetch tiles into
the same slots, multiply them, and store the result. Only where tiles come from and go to is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter, Signature
from math import prod
from typing import Any, TypeAlias

from lego_mlir import runtime
from lego_mlir.algebra import Layout
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.compiler.targets import Target
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import (
    Kernel,
    TensorType,
    Value,
    block_id,
    choose,
    dot,
    fold,
    kernel,
    segment,
    select,
    zeros,
)
from lego_mlir.kernels import hopper_choice
from lego_mlir.kernels.configuration import Problem
from lego_mlir.kernels.hopper import HopperConfig
from lego_mlir.kernels.machines import machine_of
from lego_mlir.kernels.matmul import ALIGNMENT
from lego_mlir.kernels.matrices import contiguous_dimension, layout_of, tiled
from lego_mlir.kernels.plan import HOPPER, plan

Shape: TypeAlias = tuple[int, int, int]
"""Rows of A, columns of B, and the depth that they have in common."""

_OUTPUTS = {"f16": "f16", "bf16": "bf16", "f8E4M3FN": "f16", "f8E5M2": "f16"}
"""By the type of A and B that of C, if nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One of the products.

    Attributes:
        place: among those that were asked for.
        problem: what is multiplied.
        matrices: where the elements of A, B and C lie.
    """

    place: int
    problem: Problem
    matrices: tuple[Layout, Layout, Layout]


def grouped_matmul(
    shapes: Sequence[Shape],
    dtype: str = "f16",
    *,
    out: str | None = None,
    a: Sequence[Layout] | None = None,
    b: Sequence[Layout] | None = None,
    epilogue: Callable[[Value], Value] | None = None,
    config: HopperConfig | None = None,
    target: str | None = None,
    promote: int = 0,
) -> Kernel:
    """A kernel that writes C = A B for several products at once, of any sizes.

        grouped_matmul([(512, 1024, 256), (64, 4096, 4096)])(a0, b0, c0, a1, b1, c1)

    Args:
        shapes: (m, n, k) of each product.
        dtype: of all A and B: f16, bf16, f8E4M3FN or f8E5M2.
        out: of all C; by default that of A and B, and f16 of the 8-bit floats.
        a: where the elements of each A lie; row-major by default.
        b: the same of each B. C is row-major.
        epilogue: what becomes of the sums, a tile of f32, before they are stored.
        config: how all products are divided: `cluster`, `deferred`, `parts` and `swap` stay as they
            are by default. Chosen for the largest of them by default.
        target: sm_90a.
        promote: as of `matmul`.

    Raises:
        LegoError: there is nothing to multiply, or TMA or `wgmma` cannot.
    """
    if not shapes or dtype not in _OUTPUTS:
        raise LegoError(
            f"grouped_matmul: {len(shapes)} products of {dtype}",
            hint=f"one or more, of {', '.join(_OUTPUTS)}",
        )
    goal = Target.parse(target or runtime.select().target or DEFAULT_TARGET)
    members = _members(shapes, dtype, out or _OUTPUTS[dtype], a, b, goal)
    config = config or _chosen(members, goal, promote)
    config = replace(config, promote=promote or config.promote)
    _check(members, config, goal)
    count = sum(prod(config.tiles(member.problem)) for member in members)
    settings = dict(config.settings(members[0].problem))
    return kernel(
        grid=count,
        block=config.threads,
        parameters=_parameters(members),
        schedule=HOPPER,
        settings={**settings, "blocks": config.resident or count},
        strict=True,
        explanation=lambda: f"{len(members)} products in {count} tiles\ndivision   {config}",
    )(_body(members, config, epilogue))


def _members(
    shapes: Sequence[Shape],
    dtype: str,
    out: str,
    a: Sequence[Layout] | None,
    b: Sequence[Layout] | None,
    target: Target,
) -> list[_Member]:
    """The products, the deepest first: what begins last is then soon done."""
    for what, layouts in (("a", a), ("b", b)):
        if layouts is not None and len(layouts) != len(shapes):
            raise LegoError(
                f"grouped_matmul: {len(layouts)} layouts {what} for {len(shapes)} products"
            )
    found = []
    for place, shape in enumerate(shapes):
        if any(type(size) is not int or size < 1 for size in shape):
            raise LegoError(
                f"grouped_matmul: {shape} is no product's (m, n, k)",
                hint="sizes are positive integers",
            )
        m, n, k = shape
        matrices = (
            layout_of(f"a[{place}]", None if a is None else a[place], (m, k)),
            layout_of(f"b[{place}]", None if b is None else b[place], (k, n)),
            layout_of("c", None, (m, n)),
        )
        order_a, order_b = (
            "col" if contiguous_dimension(layout) == 0 else "row" for layout in matrices[:2]
        )
        problem = Problem(m, n, k, dtype, out, order_a, order_b)
        plan(problem, matrices, target, HOPPER)  # raises what stands in the way of TMA
        found.append(_Member(place, problem, matrices))
    first = found[0].problem
    for member in found:
        if (member.problem.a, member.problem.b) != (first.a, first.b):
            raise LegoError(
                f"grouped_matmul: product {member.place} has an A by {member.problem.a} and a B by "
                f"{member.problem.b}, the first by {first.a} and {first.b}",
                hint="products of one launch are alike row- or column-major",
            )
    return sorted(found, key=lambda member: -member.problem.k)


def _chosen(members: Sequence[_Member], target: Target, promote: int) -> HopperConfig:
    """The division that suits the largest product, of those that all can be divided by."""
    largest = max((m.problem for m in members), key=lambda p: p.m * p.n * p.k)
    processors = machine_of(target).multiprocessors
    for found in hopper_choice.estimates(largest, target):
        plain = HopperConfig(
            found.config.tile, found.config.consumers, found.config.stages, promote=promote
        )
        count = sum(prod(plain.tiles(member.problem)) for member in members)
        candidate = replace(plain, resident=processors if count > processors else 0)
        try:
            _check(members, candidate, target)
        except LegoError:
            continue
        return candidate
    raise LegoError("grouped_matmul: no division suits all products")


def _check(members: Sequence[_Member], config: HopperConfig, target: Target) -> None:
    """Check that all products can be divided so."""
    plain = HopperConfig((64, 16, 128), 1, 2)
    kept = ("cluster", "deferred", "swap", "parts")
    if any(getattr(config, name) != getattr(plain, name) for name in kept):
        raise LegoError(
            f"grouped_matmul: {config}", hint=f"leave {', '.join(kept)} as they are by default"
        )
    for member in members:
        config.check(member.problem, target.optin_shared_bytes)


def _parameters(members: Sequence[_Member]) -> dict[str, TensorType]:
    """The kernel's parameters, product by product as they were asked for."""
    types = {}
    for member in sorted(members, key=lambda m: m.place):
        kinds = (member.problem.dtype, member.problem.dtype, member.problem.out)
        for name, kind, layout in zip("abc", kinds, member.matrices, strict=True):
            types[f"{name}{member.place}"] = TensorType(kind, layout, ALIGNMENT)
    return types


def _body(
    members: Sequence[_Member],
    config: HopperConfig,
    epilogue: Callable[[Value], Value] | None,
) -> Callable[..., None]:
    """The function of the kernel."""
    m, n, k = config.tile
    problem = members[0].problem
    staged = config.staging(problem)
    orders = [config.blocks(member.problem) for member in members]
    sizes = [prod(config.tiles(member.problem)) for member in members]

    def grouped(**tensors: Any) -> None:
        def view(name: str, which: int, member: _Member, tile: tuple[int, int]) -> Any:
            tensor = tensors[f"{name}{member.place}"]
            return tensor.view(tiled(member.matrices[which], tile)).staged(staged[which])

        views = [
            (view("a", 0, x, (m, k)), view("b", 1, x, (k, n)), view("c", 2, x, (m, n)))
            for x in members
        ]
        number, inside = segment(block_id(), sizes)

        def load(which: int, factor: int, at: tuple[Any, Any]) -> Any:
            return views[which][factor][*at, :, :]

        def keep(which: int, result: Value, at: tuple[Any, Any]) -> None:
            views[which][2][*at, :, :] = result

        every = range(len(members))
        # Cases would do: but LLVM makes one division of theirs, by a divisor that it chooses, which
        # is a call, and beside a call the assembler lets wgmma wait (C7509).
        i, j = (select(number, [order.inv(inside)[dim] for order in orders]) for dim in (0, 1))
        steps = select(number, [config.steps(member.problem) for member in members])

        @fold(steps, zeros((m, n), "f32"))
        def total(step: Any, total: Any) -> Value:
            left = choose(number, [partial(load, which, 0, (i, step)) for which in every])
            right = choose(number, [partial(load, which, 1, (step, j)) for which in every])
            return dot(left, right, total, warps=config.warp_layout)

        result = total if epilogue is None else epilogue(total)
        stored = result.to(problem.out)
        choose(number, [partial(keep, which, stored, (i, j)) for which in every])

    names = [f"{name}{place}" for place in range(len(members)) for name in "abc"]
    grouped.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return grouped
