"""A launch of one thread gets the threads that the tiles of its kernel need.

    gpu.launch blocks(...) in (...) threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %zero = arith.constant dense<0.0> : tensor<128x128xf32>
      ...

becomes a launch of 128 threads along x. If the program gives a tile a layout, CTAs have the warps
of that. Else they have the fewest, at least four, a power of two, with which the largest tile takes
at most half of a thread's registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MAX_CTA_THREADS, MAX_THREAD_REGISTERS, WARP_THREADS
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.structure import set_size
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_ir.layout_rules import element_bits
from lego_mlir.mlir.tile_ir.types import is_register_tile, layout_of, shape_of

_LEAST_WARPS = 4
"""One for each quarter of a multiprocessor, and those of a warpgroup."""

_REGISTER_BITS = 32
_MOST_REGISTERS = (MAX_THREAD_REGISTERS + 1) // 2
_THREADS_ALONG_X = 3
"""Which of the six sizes of a launch it is."""


def choose_threads(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place.

    Raises:
        LegoError: a layout that the program gives is none.
    """
    if [constant_size(size) for size in launch_sizes(kernel.launch)[_THREADS_ALONG_X:]] != [1] * 3:
        return
    found = list(_tiles(kernel))
    given = (_given_warps(tile, op, kernel) for tile, op in found)
    warps = next((n for n in given if n is not None), None) or _enough_warps(kernel, found)
    set_size(kernel.launch, _THREADS_ALONG_X, warps * WARP_THREADS)


def _tiles(kernel: TileKernel) -> Iterator[tuple[Any, Any]]:
    """Yield the tiles in registers, with the operations that define them or begin their blocks."""
    for op in kernel.operations():
        arguments = [a for region in op.regions for b in region.blocks for a in b.arguments]
        yield from ((x, op) for x in (*op.results, *arguments) if is_register_tile(x))


def _given_warps(tile: Any, op: Any, kernel: TileKernel) -> int | None:
    """Return the warps of the layout that a tile's type gives; `None` if it gives none."""
    try:
        layout = layout_of(tile)
    except LegoError as e:
        raise kernel.source.error(e.message, op.location, hint=e.hint) from None
    return None if layout is None else layout.warps


def _enough_warps(kernel: TileKernel, found: list[tuple[Any, Any]]) -> int:
    """Return the fewest warps with whose registers each tile fits, or the most of a CTA."""
    bits = max((prod(shape_of(t)) * element_bits(t) for t, _ in found), default=0)
    of_warp = _MOST_REGISTERS * WARP_THREADS * _REGISTER_BITS * kernel.ctas
    warps = _LEAST_WARPS
    while warps * of_warp < bits and warps * WARP_THREADS < MAX_CTA_THREADS:
        warps *= 2
    return warps
