"""Permutations by tiles that are copied as they are, whose words of the output are gathered.

A CTA takes a tile that has a long run of the input and a long run of the output, as in `runs`, and
the words that these touch, as in `by_words`. There a thread loads words into registers and puts
their units into shared memory one by one; here it takes them from there one by one.

- The words that the input's runs touch are copied to shared memory as they are, asynchronously: no
  thread waits for one of its loads, and none takes a register. There the tile is in the input's
  order, at pitches that equal the input's strides modulo a word, and shifted by the phase of the
  tile: so a word of shared memory is a word of the input, whatever the sizes are. Apart from this
  the pitches are free, and are such that lanes do not meet in banks.
- A thread takes the units of a word of the output from shared memory, and stores the word. It keeps
  its place in a run, and steps to runs that begin at the same part of a sector only (`traversal`):
  so all distances are known, and it finds out once where its units lie.
- The ends of runs are stored after them, by threads that have nothing else to do: elements of many
  runs at a time.
- A sector of device memory that two CTAs store a part of each costs far more than its bytes. So
  tiles may overlap along a row of the output by less than a sector: what each row needs up to the
  first sector that the next tile stores. Then only ends of rows are stored by parts of sectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, RegP, Row
from lego_mlir.frontend import Kernel, TensorType
from lego_mlir.kernels.permute.by_gathers.conditions import where
from lego_mlir.kernels.permute.by_gathers.config import (
    GatherConfig,
    loading,
    shared_units,
    sides_of,
    storing_ends,
    writing_of,
)
from lego_mlir.kernels.permute.by_gathers.tile import GatherTile
from lego_mlir.kernels.permute.by_words.config import tiled_modes
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import raster_order

_RESIDENT_THREADS = 1536
"""Threads for which a multiprocessor has registers at least."""


def gather_permutation(
    name: str,
    problem: PermuteProblem,
    config: GatherConfig,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation by gathers of tiles of whole runs.

    Args:
        name: name of the kernel.
        problem: the permutation of units.
        config: its tile.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    source, target = sides_of(problem, config)
    reading, writing = loading(source, config.threads), writing_of(target, config)
    assert reading is not None
    assert writing is not None
    has_ends = config.word > 1 and not target.is_aligned
    ends = storing_ends(target, config.threads) if has_ends else None
    modes = tiled_modes(problem, config.tile, config.sector)
    counts = [mode.count for mode in modes]
    rasterization = OrderBy(
        RegP(counts, raster_order(problem, config.tile, counts, config.unit_bytes))
    )
    units = shared_units(source.side, config.pitches, config.load)

    def permute(a: Any, b: Any) -> None:
        thread = lg.thread_id()
        blocks = rasterization.inv(lg.block_id())
        tile = GatherTile(source, target, config, modes, blocks, units // config.load)
        buffer = lg.shared(a.dtype, OrderBy(Row(units, config.unit)))
        stage = buffer.view(OrderBy(Row(units // config.load, config.load * config.unit)))
        x, y = a.view(source.flat_words(config.unit)), b.view(target.flat_words(config.unit))

        def by_first(count: int, phase: Callable[[], None]) -> None:
            """Let the first threads do something."""
            if count == config.threads:
                phase()
            else:
                lg.if_(thread < count)(phase)

        by_first(reading.count, lambda: tile.read(reading, thread, x, stage))
        tile.read_last(thread, a.view(OrderBy(Row(source.total, config.unit))), buffer)
        lg.commit_group()
        lg.wait_group()
        lg.barrier()
        by_first(writing.count, lambda: tile.write(writing, thread, buffer, y))
        if ends is not None:
            flat = b.view(OrderBy(Row(target.total, config.unit)))

            def write_ends() -> None:
                by_first(ends.count, lambda: tile.write_ends(ends, thread, buffer, flat))

            where(tile.has_ends, write_ends)

    permute.__name__ = name
    return lg.kernel(
        grid=rasterization.size,
        block=config.threads,
        reference=reference,
        parameters={"a": a, "b": b},
        ctas_per_sm=_RESIDENT_THREADS // config.threads,
    )(permute)
