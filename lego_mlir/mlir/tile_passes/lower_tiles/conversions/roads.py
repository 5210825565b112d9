"""A conversion takes the road of its plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lego_mlir.analysis.distributed import DistributedLayout, plan_conversion
from lego_mlir.analysis.distributed.conversions.clusters import Kind, of_cluster
from lego_mlir.analysis.distributed.conversions.exchange import WORD_BYTES
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.tile_ir.dots import matrix_instructions
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.clusters import gather
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
    (found,) = convert_together([tile], layout, threads)
    return found


def convert_together(
    held: Sequence[Fragment], layout: DistributedLayout, threads: Threads
) -> list[Fragment]:
    """Build several tiles of one layout in another layout, in one round trip to other threads.

    Args:
        held: the tiles.
        layout: of the results.
        threads: those of the kernel.

    Raises:
        LegoError: as `convert`.
    """
    source = held[0].layout
    if source == layout:
        return list(held)
    if source.ctas > 1:
        pieces = of_cluster(source, layout)
        if pieces.kind in (Kind.WITHIN, Kind.GATHER):
            parts = [tile.renamed(pieces.source) for tile in held]
            if pieces.kind is Kind.GATHER:
                found = gather(parts, pieces, threads)
            else:
                found = _convert(parts, pieces.target, threads)
            return [tile.renamed(layout) for tile in found]
    return _convert(held, layout, threads)


def _convert(
    held: Sequence[Fragment], layout: DistributedLayout, threads: Threads
) -> list[Fragment]:
    """Build conversions in which nothing leaves its CTA: what all store, then what all load."""
    begun = [_begun(tile, layout, threads) for tile in held]
    return [finish() for finish in begun]


def _begun(tile: Fragment, layout: DistributedLayout, threads: Threads) -> Callable[[], Fragment]:
    """Build the first half of a conversion, its stores; return what builds the other one."""
    if tile.layout == layout:
        return lambda: tile
    instructions = matrix_instructions(threads.kernel.target)
    plan = plan_conversion(tile.layout, layout, bytes_of(tile.element), instructions)
    if plan.registers is not None:
        return partial(tile.picked, layout, plan.registers)
    if plan.exchange is not None:
        return partial(exchange, tile, layout, plan.exchange, threads)
    assert plan.shared is not None
    if plan.shared.shared_bytes % WORD_BYTES:
        return _by_words(tile, layout, threads)
    if layout.ctas > 1:
        pieces = of_cluster(tile.layout, layout)
        if pieces.kind is not Kind.SPLIT:
            raise LegoError(
                f"a tile {list(layout.shape)} would be exchanged between the CTAs of a cluster, "
                f"from '{tile.layout}' to '{layout}'; CTAs gather tiles, and nothing else",
                hint="let loads, stores and reductions divide tiles among CTAs along the same "
                "dimension, store the tile and load it again, or launch without a cluster",
            )
        tile = tile.renamed(pieces.source)
    return through_shared(tile, layout, plan.shared, threads)


def _by_words(
    tile: Fragment, layout: DistributedLayout, threads: Threads
) -> Callable[[], Fragment]:
    """Begin a conversion with a word for each element.

    LLVM reads whole words, and of a memory that ends inside of one it would read what nobody wrote.
    """
    words = [to_words(element)[0] for element in tile.elements()]
    finish = _begun(of_elements(tile.layout, words), layout, threads)

    def elements() -> Fragment:
        found = finish()
        return of_elements(layout, [from_words([w], tile.element) for w in found.elements()])

    return elements
