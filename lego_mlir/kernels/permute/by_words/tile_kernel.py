"""What kernels that pass tiles of whole runs through shared memory have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.frontend import Kernel, TensorType
from lego_mlir.index import Int
from lego_mlir.kernels.cache_hints import LINE_BYTES, eviction_of
from lego_mlir.kernels.permute.dependence import dependence, dependent_ctas
from lego_mlir.kernels.permute.problem import PermuteProblem


def tile_kernel(
    body: Callable[..., None],
    name: str,
    problem: PermuteProblem,
    *,
    ctas: Int,
    threads: int,
    ctas_per_sm: int,
    unit_bytes: int,
    tile_bytes: int,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a body whose CTAs have a tile each.

    Args:
        body: traces it, of the input and the output.
        name: of the kernel.
        problem: the permutation of units.
        ctas: of the grid.
        threads: of a CTA.
        ctas_per_sm: that a multiprocessor has registers for.
        unit_bytes: bytes of a unit.
        tile_bytes: bytes of a tile.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    body.__name__ = name
    return lg.kernel(
        grid=ctas,
        block=threads,
        reference=reference,
        parameters={"a": a, "b": b},
        ctas_per_sm=ctas_per_sm,
        eviction=eviction_of(problem.moved_bytes(unit_bytes), unit_bytes),
        prefetch=LINE_BYTES,
        pdl=dependence(tile_bytes),
        pdl_ctas=dependent_ctas(tile_bytes),
    )(body)


def by_first(thread: Any, threads: int, count: int, phase: Callable[[], None]) -> None:
    """Let the first `count` of a CTA's threads do something."""
    if count == threads:
        phase()
    else:
        lg.if_(thread < count)(phase)
