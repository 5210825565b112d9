"""What the configs of a table do for a GEMM: copies, requests, waves, stores. `model` times it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.gemm_models import WgmmaModel
from lego_mlir.hardware.limits import CACHE_LINE_BYTES, WGMMA_ROWS
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config_table import (
    ConfigTable,
    Numbers,
    ctas_per_sm,
    epilogue_widths,
    tiles_of,
)

SEGMENT_BYTES = 16
"""TMA fills what is outside of a tensor with zeros, and leaves it out of stores, by segments."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the configs of a table do for a GEMM, in columns as the table's.

    Attributes:
        flop_bytes: m n (bytes of k) of a step.
        written: rows of 128 bytes that a step writes to shared memory.
        read: rows of 128 bytes that the warpgroups of a CTA read of it in a step.
        lines: requests of whole lines of 128 bytes in a step.
        half_lines: requests of 64 bytes.
        quarter_lines: requests of 32 bytes.
        straddling: lines that are touched besides, by rows whose pitch is no multiple of a line.
        readers: requests of CTAs or clusters for the same line of A, or of B if those are more.
        zeros: segments of 16 bytes that a step fills with zeros, because they are outside of rows
            of A or B that go along m or n.
        zero_rows: rows of a step that are partly such zeros, in a tile at the edge; the launch
            waits for its CTA if there is only one wave.
        last_zeros: segments of a tile's last step that are outside of rows that go along k.
        clipped: segments of 16 bytes of a tile that are outside of rows of C.
        busy: CTAs that run at the same time.
        side_by_side: CTAs on the busiest multiprocessor.
        fresh: bytes that a step reads from device memory.
        crossing: those of them that both halves of the cache get.
        blocked: fraction of the next launch's CTAs that find no room beside these.
        waited: copies that a step waits for: none if all its tile's copies are in flight at once.
        steps: steps of a CTA for one tile.
        waves: tiles that the busiest CTA slot computes, one after the other.
        stored: bytes of the tile of C that a CTA stores.
        narrow: whether they are stored by rows of less than 64 bytes.
        swap: whether C is stored transposed.
        overlap: whether the store overlaps the next main loop.
        persistent: whether CTAs are persistent.
        cluster: CTAs of a cluster without split-K.
        split_k: split-K slices.
        reduced: bytes of accumulators that a CTA of a cluster exchanges to add up its slices.
        added: bytes of accumulators that each CTA adds to a tile's in the L2 cache.
        gathered: bytes of accumulators that one CTA loads from there to add them in order.
        flops: operations of all CTAs, those on the empty parts of tiles too.
        bytes: bytes of the matrices.
    """

    flop_bytes: Numbers
    written: Numbers
    read: Numbers
    lines: Numbers
    half_lines: Numbers
    quarter_lines: Numbers
    straddling: Numbers
    readers: Numbers
    zeros: Numbers
    zero_rows: Numbers
    last_zeros: Numbers
    clipped: Numbers
    busy: Numbers
    side_by_side: Numbers
    fresh: Numbers
    crossing: Numbers
    blocked: Numbers
    waited: Numbers
    steps: Numbers
    waves: Numbers
    stored: Numbers
    narrow: Numbers
    swap: Numbers
    overlap: Numbers
    persistent: Numbers
    cluster: Numbers
    split_k: Numbers
    reduced: Numbers
    added: Numbers
    gathered: Numbers
    flops: Numbers
    bytes: Numbers

    @staticmethod
    def joined(works: Sequence[Work]) -> Work:
        """Return the rows of all, one behind the other."""
        names = [f.name for f in fields(Work)]
        return Work(*(np.concatenate([getattr(w, n) for w in works]) for n in names))


def work_of(problem: Problem, table: ConfigTable, gpu: GpuSpec) -> Work:
    """Return what configs do for a GEMM.

    Args:
        problem: the GEMM, with a row-major C.
        table: the configs; one with `swap` multiplies the transposes.
        gpu: a card with a model of `wgmma`.
    """
    t, model = table, model_of(gpu)
    size, out = ELEMENT_BYTES[problem.dtype], ELEMENT_BYTES[problem.out]
    swap = t.swap > 0
    rows, columns = np.where(swap, problem.n, problem.m), np.where(swap, problem.m, problem.n)
    lines_of_k = t.k_bytes / CACHE_LINE_BYTES
    down, across = tiles_of(problem, table)
    tiles = down * across * problem.batch
    steps = np.ceil(np.ceil(problem.k * size / t.k_bytes) / t.split_k)
    ctas = tiles * t.split_k
    members = t.down * t.across * t.split_in_cluster
    room = gpu.multiprocessors * np.interp(
        members, list(model.cluster_placement), list(model.cluster_placement.values())
    )
    per_sm = np.where((t.alone > 0) | (t.persistent_ctas > 0), 1, ctas_per_sm(problem, table))
    slots = np.floor(room) * per_sm
    slots = np.where(t.persistent_ctas > 0, np.minimum(slots, t.persistent_ctas), slots)
    waves = np.ceil(ctas / slots)
    busy = np.minimum(ctas, slots)
    # Rows and columns that exist: TMA fetches nothing for those outside of a matrix.
    m, n = np.minimum(t.m, rows / down), np.minimum(t.n, columns / across)
    transposed = problem.transpose
    straight = _requests(problem, m, n, t)
    swapped = _requests(transposed, m, n, t) if swap.any() else straight
    lines = [np.where(swap, y, x) for x, y in zip(straight, swapped, strict=True)]
    width = np.where(swap, WGMMA_ROWS, epilogue_widths(out)[(t.n / t.split_in_cluster).astype(int)])
    width = width * out
    tile_bytes = t.m * t.n / t.split_in_cluster
    operand_bytes = (problem.m + problem.n) * problem.k * size * problem.batch
    rows_in_line = _rows_in_line(problem)
    # Clusters that read the same rows of A, and those that read the same columns of B.
    together = busy / t.split_k
    readers = (
        np.maximum(1.0, np.minimum(together, across) / t.across),
        np.maximum(1.0, np.minimum(together, down) / t.down),
    )
    rows_of_line = np.where(swap, *(np.array([x]).T for x in (rows_in_line[::-1], rows_in_line)))
    in_both_halves = (
        extent * (1 - 0.5 ** (r - 1)) for extent, r in zip((rows, columns), readers, strict=True)
    )
    crossing = sum(in_both_halves) * problem.k * size * problem.batch
    accumulator_bytes = t.m * t.n * ELEMENT_BYTES["f32"]
    flops = 2.0 * t.m * t.n * problem.k * tiles * size / 2
    return Work(
        flop_bytes=t.m * t.n * t.k_bytes,
        written=(t.m + t.n) * lines_of_k,
        read=t.m / WGMMA_ROWS * (WGMMA_ROWS + t.n) * lines_of_k,
        lines=lines[0],
        half_lines=lines[1],
        quarter_lines=lines[2],
        straddling=lines[3],
        readers=np.maximum(*(r * rows for r, rows in zip(readers, rows_of_line, strict=True))),
        zeros=lines[4],
        zero_rows=lines[6] * (waves <= 1),
        last_zeros=lines[5],
        clipped=np.where(swap, n * (t.m - m), m * (t.n - n) / t.split_in_cluster)
        * out
        // SEGMENT_BYTES,
        busy=busy,
        side_by_side=np.minimum(per_sm, np.ceil(busy / room)),
        fresh=operand_bytes / (ctas * steps),
        crossing=crossing / (ctas * steps),
        blocked=np.clip((busy + ctas - slots) / ctas, 0.0, 1.0),
        waited=np.where(steps > t.stages, 1 / (t.stages - 1) - 1 / steps, 0.0),
        steps=steps,
        waves=waves,
        stored=tile_bytes * out,
        narrow=(width < CACHE_LINE_BYTES / 2).astype(float),
        swap=t.swap,
        overlap=np.maximum(t.overlap, t.ping_pong),
        persistent=(t.persistent_ctas > 0).astype(float),
        cluster=t.down * t.across,
        split_k=t.split_k,
        reduced=tile_bytes * (t.split_in_cluster - 1) * ELEMENT_BYTES["f32"],
        added=accumulator_bytes * t.through_l2 * (1 - t.deterministic),
        gathered=accumulator_bytes * t.split_k * t.deterministic,
        flops=flops,
        bytes=np.full(len(t), operand_bytes + problem.m * problem.n * out * float(problem.batch)),
    )


def _requests(problem: Problem, m: Numbers, n: Numbers, t: ConfigTable) -> list[Numbers]:
    """Return the requests of a step: whole, half and quarter lines, straddling ones, and zeros.

    Zeros are segments outside of rows along m or n, those outside of rows along k in the last step,
    and rows along m or n that are partly outside.

    A tile whose k is contiguous has a row for each row of A or column of B. One whose rows run
    along m or n has, for each k, as many segments as its width takes; the swizzle that divides the
    width is a segment.
    """
    size = ELEMENT_BYTES[problem.dtype]
    found = [np.zeros(len(t)) for _ in range(7)]
    missing = np.ceil(problem.k * size / t.k_bytes) * t.k_bytes - problem.k * size
    sides = (
        (m, t.m, t.across, problem.a == "row", problem.k if problem.a == "row" else problem.m),
        (n, t.n, t.down, problem.b == "col", problem.k if problem.b == "col" else problem.n),
    )
    for name, (extent, tile, sharers, is_along_k, pitch) in zip("ab", sides, strict=True):
        is_straddling = name not in problem.repitched and pitch * size % CACHE_LINE_BYTES != 0
        width, segments = t.k_bytes, extent / sharers
        if is_along_k:
            found[5] += tile / sharers * missing // SEGMENT_BYTES
        else:
            row = tile * size
            is_whole, is_half = row % CACHE_LINE_BYTES == 0, row % (CACHE_LINE_BYTES // 2) == 0
            width = np.where(is_whole, 128, np.where(is_half, 64, 32))
            depth = np.minimum(t.k_bytes / size, problem.k)
            segments = depth * np.ceil(extent * size / width) / sharers
            found[4] += depth * (tile - extent) * size / sharers // SEGMENT_BYTES
            found[6] += depth * (tile > extent) / sharers
        for column, bytes_ in zip(found, (128, 64, 32), strict=False):
            column += segments * (width == bytes_)
        if is_straddling:
            found[3] += segments * width / CACHE_LINE_BYTES
    return found


def _rows_in_line(problem: Problem) -> tuple[float, float]:
    """Return the rows of A, and those of B, that a line holds: copies ask for each by itself."""
    size = ELEMENT_BYTES[problem.dtype]
    pitches = (
        problem.k if problem.a == "row" else problem.m,
        problem.k if problem.b == "col" else problem.n,
    )
    a, b = (max(1.0, CACHE_LINE_BYTES / (pitch * size)) for pitch in pitches)
    return a, b


def model_of(gpu: GpuSpec) -> WgmmaModel:
    """Return the constants of a card.

    Raises:
        LegoError: the card has none.
    """
    if gpu.wgmma_model is None:
        raise LegoError(f"there is no cost model of wgmma for {gpu.name}")
    return gpu.wgmma_model
