"""The cost model of `wgmma` GEMMs: the time of many configs of one GEMM at once.

CTAs compute tiles of C in waves. An iteration of the K loop, a step, reads 128 bytes of k, or
fewer, of each row of A and of each column of B. It takes about as long as the slowest of

- the tensor cores,
- the ports of shared memory: the tiles are written once, and every consumer warpgroup reads its
  rows of A and all of B,
- the L2 cache, from which all CTAs read lines of 128 bytes; a cluster reads what it shares once, a
  row whose pitch is no multiple of a line touches two, and segments narrower than a line cost
  nearly as much as one,
- the port of a multiprocessor to the L2 cache,
- the part of the L2 cache that has a line which many CTAs read: it serves one after the other,
- device memory, from which every byte of A and B is read once, and brought to both halves of the
  cache if CTAs read it that share no multicast,
- the latency of a copy, which begins when a stage has been multiplied, divided by the stages.

CTAs that lie side by side on a multiprocessor share the first, the second and the fourth. After its
last step a tile is stored, unless the epilogue overlaps the next main loop. Long launches are
limited by power. Launches follow each other closely: the next one starts on multiprocessors that
have room for its CTAs.

Limits are joined by a p-norm, which is smooth where two of them are close. The constants are
`GpuSpec.wgmma_model`; `python -m bench calibrate` fits them to timings on a card.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.gemm_models import WgmmaModel
from lego_mlir.hardware.limits import (
    CACHE_LINE_BYTES,
    KIB,
    RESERVED_SHARED_BYTES,
    SM_REGISTERS,
    WARPGROUP_THREADS,
    WGMMA_ROWS,
)
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.shared_layouts import epilogue_columns
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

Numbers = npt.NDArray[np.float64]

_FLOP_BYTES_PER_CLOCK = 4096
"""m n (bytes of k) that the tensor cores of a multiprocessor multiply in a clock: 8192
floating-point operations on 16-bit elements, twice as many on 8-bit ones."""

SEGMENT_BYTES = 16
"""TMA fills what is outside of a tensor with zeros, and leaves it out of stores, by segments."""

_BARRIER_BYTES = 1024
"""Shared memory for barriers, and for aligning what follows them, as in `WgmmaConfig`."""

_LIMIT_NORM = 12.0
"""The exponent that joins the time of the waves with the limits of power and of memory."""

LIMITS = (
    "tensor cores",
    "shared memory",
    "cache",
    "cache port",
    "memory",
    "zeros",
    "latency",
    "shared lines",
)
"""What may limit a step, in the order of `Steps`."""


@dataclass(frozen=True, slots=True)
class ConfigTable:
    """Configs as columns of numbers; a row is a config, and its fields are `WgmmaConfig`'s.

    Attributes:
        k_bytes: bytes of k in a tile; all other columns are fields of the config.
    """

    m: Numbers
    n: Numbers
    k_bytes: Numbers
    consumers: Numbers
    stages: Numbers
    down: Numbers
    across: Numbers
    persistent_ctas: Numbers
    overlap: Numbers
    alone: Numbers
    swap: Numbers
    split_k: Numbers
    through_l2: Numbers
    ping_pong: Numbers

    @staticmethod
    def of(configs: Iterable[WgmmaConfig], element_bytes: int) -> ConfigTable:
        """Return the table of configs for elements of A and B of that many bytes."""
        rows = [
            (
                *c.tile[:2],
                c.tile[2] * element_bytes,
                c.consumers,
                c.stages,
                *c.cluster,
                c.persistent_ctas,
                c.overlap_epilogue,
                c.one_cta_per_sm,
                c.swap_ab,
                c.split_k,
                c.sums_through_l2,
                c.ping_pong,
            )
            for c in configs
        ]
        columns = np.array(rows, float).reshape(-1, len(fields(ConfigTable))).T
        return ConfigTable(*columns)

    def __len__(self) -> int:
        return len(self.m)

    @property
    def split_in_cluster(self) -> Numbers:
        """The split-K slices whose CTAs form a cluster; 1 if they add up through the L2 cache."""
        return np.where(self.through_l2 > 0, 1.0, self.split_k)

    def take(self, rows: Any) -> ConfigTable:
        """Return some rows, by a mask or by their numbers."""
        return ConfigTable(*(getattr(self, f.name)[rows] for f in fields(self)))

    def replaced(self, **columns: Any) -> ConfigTable:
        """Return the table with other columns; a number stands in all rows."""
        ones = np.ones(len(self))
        old = {f.name: getattr(self, f.name) for f in fields(self)}
        return ConfigTable(**{**old, **{name: x * ones for name, x in columns.items()}})

    @staticmethod
    def joined(tables: Sequence[ConfigTable]) -> ConfigTable:
        """Return the rows of all tables, one behind the other."""
        names = [f.name for f in fields(ConfigTable)]
        return ConfigTable(*(np.concatenate([getattr(t, n) for t in tables]) for n in names))


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
        readers: CTAs or clusters that read the same line of A, or of B if those are more.
        zeros: segments of 16 bytes that a step fills with zeros, because they are outside of rows
            of A or B that go along m or n.
        last_zeros: the same of a tile's last step, outside of rows that go along k.
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
        added: bytes of accumulators that a CTA adds up through the L2 cache.
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
    width = np.where(
        swap, WGMMA_ROWS, _epilogue_widths(out)[(t.n / t.split_in_cluster).astype(int)]
    )
    width = width * out
    tile_bytes = t.m * t.n / t.split_in_cluster
    operand_bytes = (problem.m + problem.n) * problem.k * size * problem.batch
    # Clusters that read the same rows of A, and those that read the same columns of B.
    together = busy / t.split_k
    readers = (
        np.maximum(1.0, np.minimum(together, across) / t.across),
        np.maximum(1.0, np.minimum(together, down) / t.down),
    )
    in_both_halves = (
        extent * (1 - 0.5 ** (r - 1)) for extent, r in zip((rows, columns), readers, strict=True)
    )
    crossing = sum(in_both_halves) * problem.k * size * problem.batch
    flops = 2.0 * t.m * t.n * problem.k * tiles * size / 2
    return Work(
        flop_bytes=t.m * t.n * t.k_bytes,
        written=(t.m + t.n) * lines_of_k,
        read=t.m / WGMMA_ROWS * (WGMMA_ROWS + t.n) * lines_of_k,
        lines=lines[0],
        half_lines=lines[1],
        quarter_lines=lines[2],
        straddling=lines[3],
        readers=np.maximum(*readers),
        zeros=lines[4],
        last_zeros=lines[5],
        clipped=np.where(swap, n * (t.m - m), m * (t.n - n) / t.split_in_cluster)
        * out
        // SEGMENT_BYTES,
        busy=busy,
        side_by_side=np.minimum(per_sm, np.ceil(busy / room)),
        fresh=operand_bytes / (ctas * steps),
        crossing=crossing / (ctas * steps),
        blocked=np.clip((busy + ctas - slots) / ctas, 0.0, 1.0),
        waited=np.maximum(0.0, 1 / t.stages - 1 / steps),
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
        added=t.m * t.n * ELEMENT_BYTES["f32"] * t.through_l2,
        flops=flops,
        bytes=np.full(len(t), operand_bytes + problem.m * problem.n * out * float(problem.batch)),
    )


def tiles_of(problem: Problem, table: ConfigTable) -> tuple[Numbers, Numbers]:
    """Return the tiles of C down and across, filled up to whole clusters."""
    swap = table.swap > 0
    rows, columns = np.where(swap, problem.n, problem.m), np.where(swap, problem.m, problem.n)
    down = np.ceil(np.ceil(rows / table.m) / table.down) * table.down
    across = np.ceil(np.ceil(columns / table.n) / table.across) * table.across
    return down, across


def _requests(problem: Problem, m: Numbers, n: Numbers, t: ConfigTable) -> list[Numbers]:
    """Return the requests of a step: whole, half and quarter lines, straddling ones, and zeros.

    A tile whose k is contiguous has a row for each row of A or column of B. One whose rows run
    along m or n has, for each k, as many segments as its width takes; the swizzle that divides the
    width is a segment.
    """
    size = ELEMENT_BYTES[problem.dtype]
    found = [np.zeros(len(t)) for _ in range(6)]
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
        for column, bytes_ in zip(found, (128, 64, 32), strict=False):
            column += segments * (width == bytes_)
        if is_straddling:
            found[3] += segments * width / CACHE_LINE_BYTES
    return found


@functools.cache
def _epilogue_widths(out_bytes: int) -> npt.NDArray[np.int64]:
    """Return the columns of an epilogue tile by the columns that a CTA stores."""
    widths = np.full(257, 8)
    for columns in range(8, 257, 8):
        try:
            widths[columns] = epilogue_columns(columns, out_bytes)
        except LegoError:
            continue
    return widths


def ctas_per_sm(problem: Problem, table: ConfigTable) -> Numbers:
    """Return the CTAs that a multiprocessor holds, by its shared memory and its registers."""
    t = table
    shared = shared_bytes_of(problem, table) + RESERVED_SHARED_BYTES
    by_shared = np.floor(228 * KIB / shared)
    registers = np.where(t.consumers == 1, np.maximum(64, t.n / 2 + 56), 168)
    by_registers = np.floor(SM_REGISTERS / (registers * WARPGROUP_THREADS * (t.consumers + 1)))
    ctas: Numbers = np.maximum(1, np.minimum(by_shared, by_registers))
    return ctas


def shared_bytes_of(problem: Problem, table: ConfigTable) -> Numbers:
    """Return the shared memory of a CTA of each config, at most; see `WgmmaConfig.shared_bytes`."""
    t, out = table, ELEMENT_BYTES[problem.out]
    ring = t.stages * (t.m + t.n) * t.k_bytes
    columns = (t.n / t.split_in_cluster).astype(int)
    by_row = _epilogue_widths(out)[columns]
    by_column = _swapped_widths()[columns]
    row = np.where(t.swap > 0, by_column, by_row) * out
    epilogue = t.consumers * 2 * WGMMA_ROWS * row
    accumulators = (t.split_in_cluster - 1) * t.m * columns * ELEMENT_BYTES["f32"]
    total: Numbers = ring + epilogue + accumulators + _BARRIER_BYTES
    return total


@functools.cache
def _swapped_widths() -> npt.NDArray[np.int64]:
    """Return what `_epilogue_widths` does for 2-byte elements that are stored transposed."""
    widths = np.full(257, 8)
    for columns in range(8, 257, 8):
        widths[columns] = epilogue_columns(columns, 2, by_row=False)
    return widths


@dataclass(frozen=True, slots=True)
class Times:
    """The model's times of the configs of a table, in microseconds.

    Attributes:
        total: of the launch.
        steps: of one step by what may limit it, in the order of `LIMITS`.
        power: of the launch if power were the only limit.
        memory: of the launch if device memory were the only limit.
    """

    total: Numbers
    steps: tuple[Numbers, ...]
    power: Numbers
    memory: Numbers

    def limit(self, row: int) -> str:
        """Return what limits a config: a name of `LIMITS`, or `power`."""
        if self.power[row] > 0.9 * self.total[row]:
            return "power"
        if self.memory[row] > 0.9 * self.total[row]:
            return "memory"
        return LIMITS[int(np.argmax([step[row] for step in self.steps]))]


def times_of(work: Work, model: WgmmaModel) -> Times:
    """Return the times of configs.

    Args:
        work: what they do.
        model: the card's constants.
    """
    w, x = work, model
    side = w.side_by_side
    requests = (
        w.lines
        + x.half_line * w.half_lines
        + x.quarter_line * w.quarter_lines
        + x.straddling_line * w.straddling
    )
    tensor = side * w.flop_bytes / _FLOP_BYTES_PER_CLOCK / x.clocks_per_us
    shared = side * (x.shared_write * w.written + x.shared_read * w.read) / x.clocks_per_us
    steps = (
        tensor,
        shared,
        w.busy * requests / x.l2_lines_per_us,
        side * requests / x.sm_lines_per_us,
        w.busy * (w.fresh + x.crossing_cost * w.crossing) / x.memory_bytes_per_us,
        side * w.zeros * x.zero_us,
        w.waited * (x.copy_us + x.copy_wait * np.maximum(tensor, shared)),
        x.reader_us * w.readers,
    )
    norm = x.step_norm
    step = sum(s**norm for s in steps) ** (1 / norm)
    step = step + x.cluster_step_us * np.log2(w.cluster)
    factor = np.where(w.narrow > 0, x.narrow_store, 1.0) * np.where(w.swap > 0, x.swapped_store, 1)
    stores = (side * w.stored * x.store_us_per_byte, w.busy * w.stored / x.l2_store_bytes_per_us)
    store = factor * sum(s**norm for s in stores) ** (1 / norm) + x.tile_us
    store = store + side * w.clipped * x.clipped_us
    main_loop = w.steps * step + side * w.last_zeros * x.zero_us
    overlapped = (main_loop**norm + store**norm) ** (1 / norm)
    is_overlapped = w.overlap > 0
    time = w.waves * np.where(is_overlapped, overlapped, main_loop + store)
    time = time + np.where(is_overlapped, store, 0.0) + x.launch_us
    time = time + x.blocked_us * w.blocked + x.cta_us * (side - 1)
    time = time + np.where(w.persistent > 0, 0.0, x.next_wave_us * (w.waves - 1))
    time = time + np.where(w.cluster > 1, x.cluster_us, 0.0)
    parts = x.split_k_us + x.split_k_us_per_doubling * np.log2(w.split_k)
    parts = parts + x.split_k_us_per_byte * w.reduced
    through_l2 = x.l2_sum_us + x.l2_sum_us_per_byte * w.added
    parts = np.where(w.added > 0, through_l2, parts)
    time = time + np.where(w.split_k > 1, parts, 0.0)
    power = w.flops * x.power_us_per_flop + x.launch_us
    memory = w.bytes / x.memory_bytes_per_us + x.launch_us
    limits = (time, power, memory)
    total = sum(limit**_LIMIT_NORM for limit in limits) ** (1 / _LIMIT_NORM)
    return Times(total, steps, power, memory)


def model_of(gpu: GpuSpec) -> WgmmaModel:
    """Return the constants of a card.

    Raises:
        LegoError: the card has none.
    """
    if gpu.wgmma_model is None:
        raise LegoError(f"there is no cost model of wgmma for {gpu.name}")
    return gpu.wgmma_model
