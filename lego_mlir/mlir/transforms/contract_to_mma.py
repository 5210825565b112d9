"""`transform_lego.contract_to_mma`: lower contractions of tiles to ldmatrix and mma.sync.

    %sum = scf.for ... iter_args(%accumulator = %zero) -> vector<128x128xf32> {
      %x = "lego.load"(%sa, %stage) {layout = #SA, slice = array<i64: 1, 2>}
      %y = "lego.load"(%sb, %stage) {layout = #SB, slice = array<i64: 1, 2>}
      %next = vector.contract {..., lego.warps = #warps} %x, %y, %accumulator
      scf.yield %next
    }
    "lego.store"(%sum, %c, %m, %n) {layout = #C, slice = array<i64: 2, 3>}

becomes, for each thread,

    %wm, %wn = "lego.inv"(%warp) {layout = #warps}
    %sum:128 = scf.for ... iter_args(%accumulator...) -> f32, ... {
      %0 = "lego.apply"(%stage, %wm, ...) {layout = #SA with split dimensions}
      %a = nvvm.ldmatrix ...
      %b = nvvm.ldmatrix ...
      %next = nvvm.mma.sync A[%a] B[%b] C[%accumulator]
      scf.yield %next...
    }
    "lego.store"(%own, %c, %m, %n, %wm, %wn, ...) {layout = #C with split dimensions}

A warp tile is held in accumulator fragments from its definition to its last use. For the other
operations on the tile each thread computes its own elements (`fragments.distribute`).

All attributes are optional: `m`, `n` and `k` check the instruction's shape. With `prefetch = 1` the
fragments of a step along K are loaded before the mmas of the previous step.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from lego_mlir.analysis.instructions import mma_fragments
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.emit.mma import MmaBuilder
from lego_mlir.mlir.fragments.contraction import Contraction, read_contraction
from lego_mlir.mlir.fragments.distribute import TileDistribution
from lego_mlir.mlir.fragments.matrix_access import MatrixAccess
from lego_mlir.mlir.fragments.thread_fragment import FragmentValue
from lego_mlir.mlir.fragments.warps import Thread, thread_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tiles.accesses import tile_of


@transform("contract_to_mma")
def contract_to_mma(step: TransformStep) -> list[list[Any]]:
    """Lower contractions, and distribute the operations on their results over the threads."""
    a_tile = [read_contraction(step, op) for op in step.payload()]
    while a_tile:
        first = a_tile[0]
        thread = thread_of(step, first.op, first.warps)
        distribution = TileDistribution(step, thread, first.sizes[:2], first.warps)
        joined = distribution.collect(first.op, {c.op: c for c in a_tile})
        for other in joined:
            if (other.sizes[:2], other.warps) != (first.sizes[:2], first.warps):
                raise step.error(
                    f"its result is combined with that of a contraction whose lego.warps is "
                    f"'{first.warps}', not '{other.warps}'",
                    other.op,
                    hint="give both the same tile sizes and the same lego.warps",
                )
        distribution.rewrite({c.op: _MmaLowering(step, c, thread) for c in joined})
        a_tile = [c for c in a_tile if c not in joined]
    return []


class _MmaLowering:
    """The lowering of one contraction to mma.sync.

    Raises:
        LegoError: `ldmatrix` cannot read an operand's layout.
    """

    def __init__(self, step: TransformStep, found: Contraction, thread: Thread) -> None:
        self._found = found
        self._thread = thread
        self._pass_context = step.pass_context
        self._prefetch = step.number("prefetch", 0) > 0
        bits = found.instruction.bits
        down, across = (n for n in found.warps.dims if isinstance(n, int))
        _, columns, steps = found.mma_counts
        # Two fragments of operand B are the four matrices that one ldmatrix reads.
        tiles = 2 - columns % 2
        pair = tiles, 1 if tiles == 2 else 2 - steps % 2
        self._b_matrices = pair
        a_dims, b_dims = found.a.whole, found.b.whole
        inner = a_dims[found.a_k_dim], b_dims[found.b_k_dim]
        outer = a_dims[1 - found.a_k_dim], b_dims[1 - found.b_k_dim]
        try:
            self._a_access = MatrixAccess(
                found.a.layout,
                (outer[0], inner[0]),
                mma_fragments.operand_a(bits),
                (down, 1),
                bits,
            )
            self._b_access = MatrixAccess(
                found.b.layout,
                (inner[1], outer[1]),
                mma_fragments.operand_b(bits, *pair),
                (1, across),
                bits,
            )
        except LegoError as e:
            raise step.error(e.message, found.op, e.hint) from None

    def __call__(self, accumulator: FragmentValue) -> FragmentValue:
        """Make the instructions at the contraction, and return the new accumulator."""
        down, across = self._thread.warp
        # Read again: the loop around it, and so its induction variable, may be new ones.
        a_tile, b_tile = (tile_of(t.op, self._pass_context) for t in (self._found.a, self._found.b))
        self._a_access.prepare(a_tile, self._thread.lane, (down, 0))
        self._b_access.prepare(b_tile, self._thread.lane, (0, across))
        mma = MmaBuilder(self._found.instruction)
        rows, columns, steps = self._found.mma_counts
        positions = list(product(range(2 * rows), range(columns)))
        found = dict(zip(positions, accumulator.values(positions), strict=True))
        pairs: dict[tuple[int, int], list[Any]] = {}

        def operands(k: int) -> tuple[list[Any], list[Any]]:
            a = [mma.operands(self._a_access.load(i, k)) for i in range(rows)]
            return a, [self._b_registers(mma, j, k, pairs) for j in range(columns)]

        following = operands(0)
        for k in range(steps):
            a, b = following
            if self._prefetch and k + 1 < steps:
                following = operands(k + 1)
            for i in range(rows):
                # Alternate directions, so that consecutive mmas share an operand.
                for j in reversed(range(columns)) if i % 2 else range(columns):
                    upper, lower = (2 * i, j), (2 * i + 1, j)
                    before = (*found[upper], *found[lower])
                    after = mma(a[i], b[j], before)
                    found[upper], found[lower] = tuple(after[:2]), tuple(after[2:])
            if not self._prefetch and k + 1 < steps:
                following = operands(k + 1)
        return FragmentValue(found, (True, True))

    def _b_registers(
        self, mma: MmaBuilder, j: int, k: int, pairs: dict[tuple[int, int], list[Any]]
    ) -> list[Any]:
        """Return the registers of a fragment of B; one ldmatrix loads several."""
        tiles, steps = self._b_matrices
        at = k // steps, j // tiles
        if at not in pairs:
            pairs[at] = mma.operands(self._b_access.load(*at))
        size = len(pairs[at]) // (tiles * steps)
        start = (j % tiles * steps + k % steps) * size
        return pairs[at][start : start + size]
