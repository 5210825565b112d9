"""A conversion takes the road of its plan."""

from __future__ import annotations

from lego_mlir.analysis.distributed import DistributedLayout, plan_conversion
from lego_mlir.analysis.distributed.conversions.exchange import WORD_BYTES
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.tile_ir.dots import matrix_instructions
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.exchanges import exchange
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shared_memory import through_shared
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shuffles import from_words, to_words
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment, of_elements
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads


def convert(tile: Fragment, layout: DistributedLayout, threads: Threads) -> Fragment:
    """Build a tile in another layout.

    Args:
        tile: the tile.
        layout: of the result, of the same shape and threads.
        threads: those of the kernel.

    Raises:
        LegoError: no plan converts one layout into the other.
    """
    if tile.layout == layout:
        return tile
    instructions = matrix_instructions(threads.kernel.target)
    plan = plan_conversion(tile.layout, layout, bytes_of(tile.element), instructions)
    if plan.registers is not None:
        return tile.picked(layout, plan.registers)
    if plan.exchange is not None:
        return exchange(tile, layout, plan.exchange, threads)
    if layout.ctas > 1 or plan.shared is None:
        raise LegoError("a conversion between the CTAs of a cluster is not there yet")
    if plan.shared.shared_bytes % WORD_BYTES:
        return _by_words(tile, layout, threads)
    return through_shared(tile, layout, plan.shared, threads)


def _by_words(tile: Fragment, layout: DistributedLayout, threads: Threads) -> Fragment:
    """Build a conversion with a word for each element.

    LLVM reads whole words, and of a memory that ends inside of one it would read what nobody wrote.
    """
    words = [to_words(element)[0] for element in tile.elements()]
    found = convert(of_elements(tile.layout, words), layout, threads)
    return of_elements(layout, [from_words([w], tile.element) for w in found.elements()])
