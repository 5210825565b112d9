"""The GEMM config for `wgmma`: clusters, CTAs, consumer warpgroups, and a ring buffer of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import (
    KIB,
    L2_PROMOTIONS,
    LEAST_ASYNC_BYTES,
    MMA_COLUMNS,
    PORTABLE_CLUSTER_CTAS,
    WARP_THREADS,
    WARPGROUP_THREADS,
    WGMMA_COLUMNS,
    WGMMA_INTEGER_COLUMNS,
    WGMMA_K_BYTES,
    WGMMA_ROWS,
)
from lego_mlir.hardware.swizzle import MODES
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.epilogue_tiles import (
    EPILOGUE_TILES,
    epilogue_columns,
)
from lego_mlir.kernels.gemm.matrices import copy_widths
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.rasterization import raster_groups
from lego_mlir.kernels.gemm.wgmma import registers

_ONE_CTA_BYTES = 117 * KIB
"""Shared memory of a CTA that has a multiprocessor to itself: more than half of its 228 KiB."""

_BARRIER_BYTES = 1024
"""Shared memory for the ring buffer's barriers, and for aligning what follows them."""


@dataclass(frozen=True, slots=True)
class WgmmaConfig(GemmConfig):
    """A GEMM config for warpgroups that multiply by `wgmma`.

    A producer warpgroup loads tiles of A and B by TMA into a ring buffer in shared memory; consumer
    warpgroups multiply them, each its rows of the tile of C.

    Attributes:
        tile: rows, columns and k of a CTA tile in one iteration of the K loop.
        consumers: consumer warpgroups, one below the other.
        stages: stages of the ring buffer.
        cluster: neighbouring tiles of C, down and across, whose CTAs form a cluster and load the
            tiles of A and of B that they share by multicast. If they do not divide C's tiles, the
            grid has tiles outside of C.
        raster_group: height in tiles of a raster group, at most.
        persistent_ctas: CTAs of a persistent kernel, each of which computes one tile of C after
            another; 0 for one CTA a tile.
        overlap_epilogue: whether a tile of C is stored during the main loop of the next one.
        one_cta_per_sm: whether a CTA takes so much shared memory that a multiprocessor holds only
            one; CTAs of the next launch then start on idle multiprocessors.
        swap_ab: whether the transposes are multiplied, C' = B' A', and stored transposed.
        promote: iterations after which accumulators are promoted: added to a second accumulator in
            f32. 0 for none. Tensor cores accumulate products of 8-bit floats in few bits.
        split_k: slices of k, each computed by one CTA.
        split_k_through: how the CTAs of a tile of C add up their accumulators. Through the shared
            memory of a `cluster`, which they are, and each stores a slice of the tile; or through
            the `l2` cache: any number of slices, and the last CTA stores the tile.
        deterministic: whether slices are added in order, so that C has the same bits in every
            launch. Through a cluster they always are.
        l2_promotion: bytes that a copy of A or B brings into the L2 cache at least: 64, 128 or 256;
            0 for 128.
        ping_pong: whether two consumers compute whole tiles in turns, one multiplying while the
            other stores, instead of each its rows of the same tile.
        copied_by_threads: the operands, `a`, `b`, `ab` or none, of which producer warps copy tiles
            if TMA does not take them; others are re-pitched first. They are those of the GEMM with
            a row-major C, before `swap_ab`.
    """

    tile: tuple[int, int, int]
    consumers: int
    stages: int
    cluster: tuple[int, int] = (1, 1)
    raster_group: int = 8
    persistent_ctas: int = 0
    overlap_epilogue: bool = False
    one_cta_per_sm: bool = False
    swap_ab: bool = False
    promote: int = 0
    split_k: int = 1
    split_k_through: str = "cluster"
    deterministic: bool = False
    l2_promotion: int = 0
    ping_pong: bool = False
    copied_by_threads: str = ""

    schedule: ClassVar[str] = "persistent"
    is_batch_rasterized: ClassVar[bool] = True
    ungrouped: ClassVar[tuple[str, ...]] = (
        *("cluster", "overlap_epilogue", "swap_ab", "ping_pong"),
        *("split_k", "split_k_through", "deterministic", "copied_by_threads"),
    )

    @property
    def threads(self) -> int:
        return WARPGROUP_THREADS * self.sharers

    @property
    def sharers(self) -> int:
        """The consumer warpgroups that divide the rows of a tile."""
        return 1 if self.ping_pong else self.consumers

    @property
    def column_slices(self) -> int:
        """The slices of columns into which the CTAs of a cluster divide their tile of C."""
        return self.split_k if self.split_k_through == "cluster" else 1

    @property
    def stored_tile(self) -> tuple[int, int]:
        """The rows and columns of C that a CTA stores at a time."""
        m, n, _ = self.tile
        return m, n // self.column_slices

    @property
    def received_bytes(self) -> int:
        """The shared memory for what the other CTAs of a cluster send of their accumulators."""
        m, n = self.stored_tile
        return (self.column_slices - 1) * m * n * ELEMENT_BYTES["f32"]

    @property
    def sums_through_l2(self) -> bool:
        """Whether CTAs add up their accumulators through the L2 cache, in a workspace."""
        return self.split_k > 1 and self.split_k_through == "l2"

    @property
    def is_swapped(self) -> bool:
        return self.swap_ab

    def params(self, problem: Problem) -> Mapping[str, int]:
        divided = registers.COPYING_SETMAXNREG if self.copied_by_threads else registers.SETMAXNREG
        producer, consumer = divided[self.consumers]
        more = {}
        is_alone = self.consumers == 1 and self.one_cta_per_sm
        if is_alone and self._copies_elements(problem):
            # Four warps load too few elements, where there is no other CTA on the multiprocessor.
            more = {"producer_warps": 2 * WARPGROUP_THREADS // WARP_THREADS}
            producer, consumer = registers.MORE_COPYING_SETMAXNREG
        return more | {
            "split_k": self.split_k,
            "stages": self.stages,
            "producer_registers": producer,
            "consumer_registers": consumer,
            "min_shared_bytes": _ONE_CTA_BYTES if self.one_cta_per_sm else 0,
            "promote": self.promote,
            "l2_promotion": self.l2_promotion,
        }

    def _copies_elements(self, problem: Problem) -> bool:
        """Return whether threads copy tiles by less than `cp.async` does, through registers."""
        widths = dict(zip("ba" if self.swap_ab else "ab", copy_widths(problem), strict=True))
        return any(widths[name] < LEAST_ASYNC_BYTES for name in self.copied_by_threads)

    def promoted(self, promote: int) -> WgmmaConfig:
        return replace(self, promote=promote or self.promote)

    def has_epilogue_registers(self, *, loads_tiles: bool) -> bool:
        m, n, _ = self.tile
        return registers.has_epilogue_registers(
            (m // self.sharers, n),
            self.consumers,
            is_overlapped=self.overlap_epilogue,
            loads_tiles=loads_tiles,
        )

    def padding(self, problem: Problem) -> tuple[int, int]:
        counts = zip(self.tiles(problem), self.cluster, strict=True)
        return (1, 1) if all(count % c == 0 for count, c in counts) else self.cluster

    def work_items(self, problem: Problem) -> int:
        """Return the number of work items: tiles of the grid, or split-K slices of them."""
        return prod(self.grid(problem)) * problem.batch * self.split_k

    def k_slice_iterations(self, problem: Problem) -> int:
        """Return the iterations of a split-K slice; those of the last may lie beyond the end."""
        return -(-self.k_iterations(problem) // self.split_k)

    def rasterization(self, problem: Problem, batch: int | None = None) -> Layout:
        return raster_groups(*self.grid(problem), self.raster_group, self.cluster, batch)

    def epilogue_tiles(self, problem: Problem) -> int:
        """Return the number of epilogue tiles that a warpgroup stores for each tile of C."""
        m, n, _ = self.tile
        columns = self._epilogue_columns(problem)
        return m // self.sharers // WGMMA_ROWS * (n // self.column_slices // columns)

    def shared_bytes(self, problem: Problem) -> int:
        """Return the shared memory of a CTA, at most.

        It holds the ring buffer, epilogue tiles, and accumulators of the other split-K slices.
        """
        m, n, k = self.tile
        ring = self.stages * (m + n) * k * ELEMENT_BYTES[problem.dtype]
        row = self._epilogue_columns(problem) * ELEMENT_BYTES[problem.out]
        epilogue = self.consumers * EPILOGUE_TILES * WGMMA_ROWS * row
        return ring + epilogue + self.received_bytes + _BARRIER_BYTES

    def _epilogue_columns(self, problem: Problem) -> int:
        columns, size = self.tile[1] // self.column_slices, ELEMENT_BYTES[problem.out]
        return epilogue_columns(columns, size, by_row=problem.c == "row")

    # ------------------------------------------------------------------------------- checks
    def check(self, problem: Problem, shared_bytes: int) -> None:
        m, n, k = self.tile
        size = ELEMENT_BYTES[problem.dtype]
        if self.consumers not in registers.SETMAXNREG:
            raise LegoError(f"{self}: a CTA has one to three consumer warpgroups")
        if m < 1 or m % (WGMMA_ROWS * self.sharers):
            raise LegoError(
                f"{self}: {m} rows are not a multiple of {WGMMA_ROWS * self.sharers}",
                hint=f"every warpgroup multiplies {WGMMA_ROWS} rows at a time",
            )
        is_integer = problem.dtype == "i8"
        if n not in (WGMMA_INTEGER_COLUMNS if is_integer else WGMMA_COLUMNS):
            also = " of integers" if is_integer else ""
            raise LegoError(
                f"{self}: a tile{also} has 8 to 256 columns, in steps of "
                f"{'16, or 8 or 24' if is_integer else '8'}, not {n}"
            )
        if k < 1 or k * size % WGMMA_K_BYTES:
            raise LegoError(
                f"{self}: k = {k} is not a multiple of the {WGMMA_K_BYTES // size} of a wgmma"
            )
        narrowest = min(mode for mode in MODES if mode)
        if problem.b == "row" and n * size % narrowest:
            raise LegoError(
                f"{self}: {n} columns of B, contiguous in memory, are no multiple of the "
                f"{narrowest} bytes that TMA swizzles at least",
                hint=f"a multiple of {narrowest // size} columns, or a column-major B",
            )
        self._check_promotion()
        registers.check_tile(
            self,
            (m // self.sharers, n),
            self.consumers,
            is_promoted=self.promote > 0,
            overlapped_bytes=ELEMENT_BYTES[problem.out] * self.overlap_epilogue,
        )
        self._check_pipeline()
        self._check_split_k(problem)
        self._check_cluster()
        self._check_copies()
        self._check_persistence(problem)
        self._check_shared_memory(problem, shared_bytes)
        if self.l2_promotion not in L2_PROMOTIONS:
            raise LegoError(
                f"{self}: l2_promotion is one of {', '.join(map(str, L2_PROMOTIONS))} bytes"
            )

    def _check_promotion(self) -> None:
        if self.promote < 0:
            raise LegoError(f"{self}: promote is a number of iterations, or 0")
        if self.promote and self.overlap_epilogue:
            raise LegoError(
                f"{self}: promoted accumulators leave no registers for an overlapped epilogue",
                hint="overlap_epilogue=False",
            )

    def _check_split_k(self, problem: Problem) -> None:
        if self.split_k_through not in ("cluster", "l2"):
            raise LegoError(f"{self}: split_k_through is 'cluster' or 'l2'")
        if self.split_k == 1:
            return
        if self.split_k < 1:
            raise LegoError(f"{self}: split_k is a number of slices")
        if not self.sums_through_l2:
            self._check_cluster_slices()
        if self.persistent_ctas:
            raise LegoError(
                f"{self}: with split-K every CTA computes one slice; the kernel is not persistent",
                hint="persistent_ctas=0, or split_k=1",
            )
        if self.k_slice_iterations(problem) * (self.split_k - 1) >= self.k_iterations(problem):
            raise LegoError(
                f"{self}: {self.k_iterations(problem)} iterations of the K loop leave none for the "
                "last split-K slice",
                hint="a smaller split_k, or tiles with a smaller k",
            )

    def _check_cluster_slices(self) -> None:
        if self.split_k > PORTABLE_CLUSTER_CTAS:
            raise LegoError(
                f"{self}: split_k is at most {PORTABLE_CLUSTER_CTAS}, the CTAs of a cluster",
                hint="any number with split_k_through='l2'",
            )
        if self.cluster != (1, 1):
            raise LegoError(
                f"{self}: the CTAs of a cluster compute split-K slices of one tile of C, or share "
                "tiles of A or B, but not both",
                hint="cluster=(1, 1), split_k=1, or split_k_through='l2'",
            )
        if self.tile[1] % (MMA_COLUMNS * self.split_k):
            raise LegoError(
                f"{self}: a CTA stores {self.tile[1] / self.split_k:g} columns, which is not a "
                f"multiple of {MMA_COLUMNS}",
                hint=f"tiles of a multiple of {MMA_COLUMNS * self.split_k} columns, or a smaller "
                "split_k",
            )

    def _check_cluster(self) -> None:
        if prod(self.cluster) not in (1, 2, 4, 8) or min(self.cluster) < 1:
            raise LegoError(
                f"{self}: a cluster is 1, 2, 4 or 8 tiles, as many down times as many across"
            )
        if self.persistent_ctas % prod(self.cluster):
            raise LegoError(
                f"{self}: {self.persistent_ctas} persistent CTAs are not a multiple of the cluster"
            )

    def _check_copies(self) -> None:
        if self.copied_by_threads not in ("", "a", "b", "ab"):
            raise LegoError(
                f"{self}: copied_by_threads names operands: '', 'a', 'b' or 'ab', not "
                f"{self.copied_by_threads!r}"
            )
        for name in self.copied_by_threads:
            # Tiles of A are those of CTAs across, those of B of CTAs down.
            if self.cluster[(name == "a") != self.swap_ab] > 1:
                raise LegoError(
                    f"{self}: the CTAs of a cluster share tiles of {name.upper()}, which threads "
                    "copy; only TMA loads tiles for several CTAs",
                    hint="a cluster along the other dimension, or none",
                )

    def _check_persistence(self, problem: Problem) -> None:
        if self.persistent_ctas < 0:
            raise LegoError(f"{self}: persistent_ctas is a number of CTAs, or 0")
        if self.ping_pong:
            self._check_ping_pong(problem)
        if not self.overlap_epilogue:
            return
        count = self.work_items(problem)
        if not self.persistent_ctas or count <= self.persistent_ctas:
            raise LegoError(
                f"{self}: an overlapped epilogue needs CTAs with a next tile",
                hint=f"persistent_ctas below {count}, the number of tiles; or "
                "overlap_epilogue=False",
            )
        if self.k_iterations(problem) < self.epilogue_tiles(problem):
            raise LegoError(
                f"{self}: {self.epilogue_tiles(problem)} epilogue tiles overlap as many iterations "
                f"of the K loop, and there are {self.k_iterations(problem)}",
                hint="overlap_epilogue=False",
            )

    def _check_ping_pong(self, problem: Problem) -> None:
        if self.consumers != 2 or self.overlap_epilogue:
            raise LegoError(
                f"{self}: ping-pong is for two consumers, of which one stores while the other "
                "multiplies",
                hint="consumers=2, overlap_epilogue=False",
            )
        count = self.work_items(problem)
        if not self.persistent_ctas or count <= self.persistent_ctas:
            raise LegoError(
                f"{self}: ping-pong needs CTAs with several tiles",
                hint=f"persistent_ctas below {count}, the number of tiles; or ping_pong=False",
            )

    def __str__(self) -> str:
        tile, cluster = ("×".join(map(str, sizes)) for sizes in (self.tile, self.cluster))
        texts = {
            f"tile {tile}": True,
            f"consumers {self.consumers}": True,
            f"stages {self.stages}": True,
            f"cluster {cluster}": self.cluster != (1, 1),
            f"raster group {self.raster_group}": True,
            f"{self.persistent_ctas} persistent CTAs": self.persistent_ctas,
            f"promote {self.promote}": self.promote,
            f"split-K {self.split_k}": self.split_k > 1 and not self.sums_through_l2,
            f"split-K {self.split_k} through the L2 cache": self.sums_through_l2,
            "deterministic": self.deterministic,
            "ping-pong": self.ping_pong,
            f"L2 promotion {self.l2_promotion}": self.l2_promotion,
            "overlapped epilogue": self.overlap_epilogue,
            "one CTA per SM": self.one_cta_per_sm,
            "swapped operands": self.swap_ab,
            f"{' and '.join(self.copied_by_threads.upper())} copied by threads": (
                self.copied_by_threads
            ),
        }
        return ", ".join(text for text, is_shown in texts.items() if is_shown)
