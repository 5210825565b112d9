"""Whether the roles of a kernel wait for one another in a circle: the beginning of a run.

The first and the last CTA execute the operations on rings, and what decides about them. What is
not known, such as a number in memory, is more than the stages of all rings together: a deadlock
shows as soon as every ring has been full once. So only so many operations are executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.tile_ir.interpreter.machine import Machine, Steps
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_ir.verifier.rings.program import RingProgram

_MOST_STEPS = 4096
"""The most operations of a run."""


def check_ring_run(kernel: TileKernel, inside: Sequence[Any]) -> None:
    """Check that the roles of a kernel with these operations do not wait in a circle.

    Raises:
        LegoError: they do, or they number tiles wrongly.
    """
    rings = [op.results[0] for op in inside if op.name == pipelines.MAKE_RING]
    if not rings:
        return
    unknown = 1 + sum(map(pipelines.stages_of, rings))
    grid = [constant_size(x) or 1 for x in launch_sizes(kernel.launch)[:3]]
    arguments = list(kernel.body.arguments)
    program = RingProgram(kernel.body, inside, _machine(kernel, {}), unknown)
    for at in {(0, 0, 0), tuple(n - 1 for n in grid)}:
        ids = {
            "block_id": at,
            "cluster_id": (at[0] // kernel.cluster, *at[1:]),
            "grid_dim": tuple(grid),
            "block_dim": (1, 1, 1),
        }
        known = zip((*arguments[:3], *arguments[6:9]), (*at, *grid), strict=True)
        with np.errstate(all="ignore"):
            program.run(_machine(kernel, ids), known, _MOST_STEPS)


def _machine(kernel: TileKernel, ids: dict[str, Any]) -> Machine:
    return Machine(kernel.layouts, kernel.source, {}, True, ids, Steps())
