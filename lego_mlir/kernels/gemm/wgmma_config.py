"""How a product is divided on Hopper: among clusters, blocks, warpgroups, and a ring of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels.gemm.problem import BYTES, Problem
from lego_mlir.kernels.gemm.rasterization import grouped
from lego_mlir.kernels.gemm.wgmma_shared_layouts import (
    ROWS,
    chunk,
    chunk_width,
    panels,
    panels_of_columns,
)

GROUP_WARPS, GROUP_THREADS = 4, 128
"""Of a warpgroup."""

ALONE = 117 * 1024
"""Shared memory of a block that has a multiprocessor to itself: more than half of its 228 KiB."""

_CHUNKS = 2
"""Parts of the result that a warpgroup has in shared memory (`mlir.warp_specialized.tma_stores`)."""

_BARRIERS = 1024
"""Shared memory for the ring's barriers, and for aligning what follows them."""

_REGISTERS = {1: (0, 0), 2: (40, 232), 3: (32, 160)}
"""By the number of consumers those of a producer's and of a consumer's thread; 0 as they are."""

_MOST_SUMS = 128
"""Registers of a thread for sums."""

_MOST_PROMOTED = {1: 96, 2: 96, 3: 64}
"""The same where parts of sums take as many again, by the number of consumers."""


@dataclass(frozen=True, slots=True)
class WgmmaConfig:
    """How a product is divided among warpgroups that multiply by `wgmma`.

    One warpgroup fetches tiles of A and B by TMA into a ring in shared memory, the others multiply
    them, each its rows of the tile of C.

    Attributes:
        tile: rows, columns and k of what a block multiplies at a time.
        consumers: warpgroups that multiply, one below the other.
        stages: tiles of A and of B that shared memory holds.
        cluster: neighbouring tiles of C, down and across, whose blocks fetch together the tiles of
            A or of B that they have in common; one of the two numbers is 1.
        raster_group: tiles of C that blocks take one below the other before they go on to the next
            column, at most.
        persistent_ctas: blocks that stay and take one tile of C after another; 0 for a block a tile.
        overlap_epilogue: whether a tile of C is stored while the next one is multiplied.
        one_cta_per_sm: whether a block takes so much shared memory that a multiprocessor has room for no
            other: the next launch's blocks then go where none is.
        swap: whether the transposes are multiplied, C' = B' A', and stored transposed.
        promote: steps over k that tensor cores add up before threads do, in f32; 0 for all of them.
            Of sums of 8-bit floats tensor cores keep few bits.
        split_k: blocks that share a tile of C, each a part of k; they add up their sums within a
            cluster, of which each then stores a slice.
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

    schedule: ClassVar[str] = "wgmma"

    @property
    def threads(self) -> int:
        """Of a block, those of the producer aside."""
        return GROUP_THREADS * self.consumers

    @property
    def warp_layout(self) -> Layout:
        """From the number of a warp to its part of the tile of C."""
        return OrderBy(Row(GROUP_WARPS * self.consumers, 1))

    def params(self, problem: Problem) -> Mapping[str, int]:
        """The values of the schedule's parameters."""
        producer, consumer = _REGISTERS[self.consumers]
        return {
            "split_k": self.split_k,
            "persistent_ctas": self.persistent_ctas or self.count(problem),
            "stages": self.stages,
            "cluster": prod(self.cluster),
            "producer_registers": producer,
            "consumer_registers": consumer,
            "pdl": 1,
            "overlap_epilogue": int(self.overlap_epilogue),
            "min_shared_bytes": ALONE if self.one_cta_per_sm else 0,
            "promote": self.promote,
        }

    def tiles(self, problem: Problem) -> tuple[int, int]:
        """How many tiles cover C, down and across."""
        return -(-problem.m // self.tile[0]), -(-problem.n // self.tile[1])

    def count(self, problem: Problem) -> int:
        """How many blocks there are, if each takes one tile, or a part of it."""
        return prod(self.tiles(problem)) * problem.batch * self.split_k

    def steps(self, problem: Problem) -> int:
        """How many tiles cover k."""
        return -(-problem.k // self.tile[2])

    def steps_of_part(self, problem: Problem) -> int:
        """How many of them a block takes; the last part's may lie beyond the end of k."""
        return -(-self.steps(problem) // self.split_k)

    def blocks(self, problem: Problem, batch: int | None = None) -> Layout:
        """From the number of a block to its tile of C, with a batch (product, down, across)."""
        return grouped(*self.tiles(problem), self.raster_group, self.cluster, batch)

    def staging(self, problem: Problem) -> tuple[Layout, Layout, Layout]:
        """Where tiles of A and B, and a chunk of C, lie in shared memory.

        Raises:
            LegoError: TMA has no such rows.
        """
        m, n, k = self.tile
        size = BYTES[problem.dtype]
        return (
            (panels if problem.a == "row" else panels_of_columns)(m, k, size),
            (panels if problem.b == "row" else panels_of_columns)(k, n, size),
            chunk(n // self.split_k, BYTES[problem.out], by_row=problem.c == "row"),
        )

    def chunks(self, problem: Problem) -> int:
        """Chunks in which a warpgroup stores its rows of a tile of C."""
        m, n, _ = self.tile
        return m // self.consumers // ROWS * (n // self.split_k // self._chunk_width(problem))

    def shared_bytes(self, problem: Problem) -> int:
        """Shared memory of a block, at most: the ring, chunks of C, and sums of other blocks."""
        m, n, k = self.tile
        ring = self.stages * (m + n) * k * BYTES[problem.dtype]
        row = self._chunk_width(problem) * BYTES[problem.out]
        sums = (self.split_k - 1) * m * (n // self.split_k) * BYTES["f32"]
        return ring + self.consumers * _CHUNKS * ROWS * row + sums + _BARRIERS

    def _chunk_width(self, problem: Problem) -> int:
        """Columns of a chunk of C."""
        columns, size = self.tile[1] // self.split_k, BYTES[problem.out]
        return chunk_width(columns, size, by_row=problem.c == "row")

    def check(self, problem: Problem, shared_bytes: int) -> None:
        """Check that a product can be divided so.

        Args:
            problem: the product.
            shared_bytes: that a block may have.

        Raises:
            LegoError: it cannot, and why.
        """
        m, n, k = self.tile
        size = BYTES[problem.dtype]
        if self.consumers not in _REGISTERS:
            raise LegoError(f"{self}: a block has one to three warpgroups that multiply")
        if m < 1 or m % (ROWS * self.consumers):
            raise LegoError(
                f"{self}: {m} rows are no multiple of {ROWS * self.consumers}",
                hint=f"every warpgroup multiplies {ROWS} rows at a time",
            )
        if not 16 <= n <= 256 or n % 16:
            raise LegoError(f"{self}: a tile has 16 to 256 columns, in steps of 16, not {n}")
        if k < 1 or k * size % 32:
            raise LegoError(f"{self}: {k} of k are no multiple of {32 // size}, what wgmma takes")
        self._check_sums()
        if self.stages < 2:
            raise LegoError(f"{self}: one stage is filled while another is used, so at least 2")
        if self.raster_group < 1:
            raise LegoError(f"{self}: a group has at least one tile")
        self._check_parts(problem)
        self._check_cluster(problem)
        self._check_residents(problem)
        needed = self.shared_bytes(problem)
        if needed > shared_bytes:
            raise LegoError(
                f"{self}: {needed} bytes of shared memory are {needed - shared_bytes} more than "
                f"the {shared_bytes} of a block",
                hint="fewer stages, or a smaller tile",
            )

    def _check_sums(self) -> None:
        m, n, _ = self.tile
        sums = m // self.consumers * n // GROUP_THREADS
        most = _MOST_PROMOTED[self.consumers] if self.promote else _MOST_SUMS
        if sums > most:
            also = ", parts of which are promoted" if self.promote else ""
            raise LegoError(
                f"{self}: a thread has {sums} sums{also}, more than {most}",
                hint="more consumers, or a smaller tile",
            )
        if self.promote < 0:
            raise LegoError(f"{self}: a number of steps is not negative")
        if self.promote and self.overlap_epilogue:
            raise LegoError(
                f"{self}: sums of parts leave no registers for a result that is stored later",
                hint="deferred=False",
            )

    def _check_parts(self, problem: Problem) -> None:
        if self.split_k == 1:
            return
        if self.split_k not in (2, 4, 8):
            raise LegoError(f"{self}: 1, 2, 4 or 8 blocks share a tile")
        if self.cluster != (1, 1):
            raise LegoError(
                f"{self}: the blocks of a cluster share a tile of C, or fetch what tiles of C have "
                "in common, but not both",
                hint="cluster=(1, 1), or parts=1",
            )
        if self.persistent_ctas:
            raise LegoError(
                f"{self}: blocks that share a tile take one each, and do not stay",
                hint="resident=0, or parts=1",
            )
        if self.tile[1] % (16 * self.split_k):
            raise LegoError(
                f"{self}: a block keeps {self.tile[1] / self.split_k:g} columns, no multiple of 16",
                hint=f"tiles of a multiple of {16 * self.split_k} columns, or fewer parts",
            )
        if self.steps_of_part(problem) * (self.split_k - 1) >= self.steps(problem):
            raise LegoError(
                f"{self}: {self.steps(problem)} steps over k leave none for the last of the parts",
                hint="fewer parts, or smaller tiles along k",
            )

    def _check_cluster(self, problem: Problem) -> None:
        if min(self.cluster) != 1 or max(self.cluster) not in (1, 2, 4, 8):
            raise LegoError(
                f"{self}: a cluster is 1, 2, 4 or 8 tiles, one below the other or side by side"
            )
        tiles = self.tiles(problem)
        if any(count % c for count, c in zip(tiles, self.cluster, strict=True)):
            raise LegoError(
                f"{self}: C has {tiles[0]}×{tiles[1]} tiles, which make no whole clusters",
                hint="a cluster of another shape, or (1, 1)",
            )
        if self.persistent_ctas % prod(self.cluster):
            raise LegoError(f"{self}: {self.persistent_ctas} blocks make no whole clusters")

    def _check_residents(self, problem: Problem) -> None:
        if self.persistent_ctas < 0:
            raise LegoError(f"{self}: a number of blocks is not negative")
        if not self.overlap_epilogue:
            return
        count = self.count(problem)
        if not self.persistent_ctas or count <= self.persistent_ctas:
            raise LegoError(
                f"{self}: what is stored while the next tile is multiplied needs a next tile",
                hint=f"resident below {count}, the number of tiles; or deferred=False",
            )
        if self.steps(problem) < self.chunks(problem):
            raise LegoError(
                f"{self}: {self.chunks(problem)} chunks of C go beside as many steps over k, and "
                f"there are {self.steps(problem)}",
                hint="deferred=False",
            )

    def __str__(self) -> str:
        tile, cluster = ("×".join(map(str, sizes)) for sizes in (self.tile, self.cluster))
        said = [f"tile {tile}", f"consumers {self.consumers}", f"stages {self.stages}"]
        if self.cluster != (1, 1):
            said.append(f"cluster {cluster}")
        said.append(f"group {self.raster_group}")
        if self.persistent_ctas:
            said.append(f"{self.persistent_ctas} resident")
        if self.promote:
            said.append(f"promote {self.promote}")
        if self.split_k > 1:
            said.append(f"{self.split_k} parts")
        said += [
            name
            for name in ("overlap_epilogue", "one_cta_per_sm", "swap_ab")
            if getattr(self, name)
        ]
        return ", ".join(said)
