"""`transform_lego.refill_stages`: each stage of a ring is filled again as soon as it has been read.

    scf.for %i = %c0 to %n ... {
      "lego.acquire"(%ring, %i)
      "lego.copy_async"(%ring, %i, %a, %row, %k)
      "lego.commit"(%ring, %i)
      %t = "lego.wait"(%ring, %i)
      ...
      "lego.release"(%ring, %i)
      ...
    }

becomes, for a ring of two stages,

    acquire, copy and commit tile 0, then tile 1, of those that there are
    scf.for %i = %c0 to %n ... {
      %t = "lego.wait"(%ring, %i)
      ...
      "lego.release"(%ring, %i)
      scf.if %i + 2 < %n { acquire, copy and commit tile %i + 2 }
      ...
    }

Each tile is waited for where it is read first. `copy_ahead` copies all tiles of an iteration at one
place, one iteration less ahead: so the ring of each holds one that has been read for most of an
iteration. Here a ring of one stage is copied ahead, too, and rings of a loop may have different
numbers of stages: all shared memory is filled, whatever the tiles' sizes. A stage that other
threads read needs a barrier before it is filled; one that the thread has copied itself does not
(`private_rings`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_steps.kernels import (
    first_of,
    loops_of,
    operations_of,
    users_in,
)
from lego_mlir.mlir.tile_steps.rings.copy_ahead import CopiesAhead


@transform("refill_stages")
def refill_stages(step: TransformStep) -> list[list[Any]]:
    """Fill the stages of the rings of loops again behind their releases."""
    for _, loop in loops_of(step):
        block = body_of(loop)
        acquires = [op for op in operations_of(block) if op.name == pipelines.ACQUIRE]
        if not acquires:
            continue
        for op in operations_of(block):
            if op.name == pipelines.WAIT:
                op.move_before(first_of([*users_in(op.results[0], block)]))
        _Refills(step, loop, acquires, 0).build()
    return []


class _Refills(CopiesAhead):
    """The rewrite of one loop, whose copies stand behind the releases of their stages."""

    def iterations(self, acquire: Any, ahead: int) -> int:
        """Return how many iterations the copies into a ring are ahead: as many as it has stages."""
        return pipelines.stages_of(acquire.operands[0])

    def copied_together(self, acquires: list[Any]) -> list[list[Any]]:
        """Return each acquire by itself, in the order of releases."""
        by_ring = {op.operands[0]: op for op in acquires}
        return [[by_ring[op.operands[0]]] for op in self._releases()]

    def places(self) -> list[Any]:
        """Return the operation before which each copy of an iteration stands."""
        listed = operations_of(self.block)
        return [behind for op, behind in pairwise(listed) if op.name == pipelines.RELEASE]

    def _releases(self) -> list[Any]:
        return [op for op in operations_of(self.block) if op.name == pipelines.RELEASE]
