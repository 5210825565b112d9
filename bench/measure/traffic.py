"""What the accesses of a kernel touch, counted by the simulator in a sample of its CTAs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lego_mlir.artifact import Artifact, known_numbers
from lego_mlir.runtime.dtypes import numpy_dtype
from lego_mlir.runtime.simulator import Simulator

_CTAS = 4
"""Of each launch, at least two clusters of them, run."""


def traffic(artifact: Artifact, shapes: Sequence[tuple[int, ...]] | None = None) -> dict[str, int]:
    """Return what the accesses of all launches touch together, and the least they could.

    Inputs are zeros. Sectors of 32 bytes of global memory, 64-byte halves of lines in which device
    memory is read, and wavefronts of shared memory are counted as `lego_mlir.sim.cost` has them;
    the copy engine's are left out.

    Args:
        artifact: of the kernels.
        shapes: of the arguments, in order; by default those that the artifact knows.

    Raises:
        LegoError: the simulator finds the kernel wrong.
    """
    known = shapes or [known_numbers(a.shape or ()) for a in artifact.arguments]
    values = [
        np.zeros(shape, numpy_dtype(a.dtype))
        if a.shape is not None
        else numpy_dtype(a.dtype).type(0)
        for a, shape in zip(artifact.arguments, known, strict=True)
    ]
    rows = [
        row
        for costs in Simulator(costs=True, sample=_CTAS).run(artifact, values)
        for row in costs.memory
    ]
    is_global = [row for row in rows if row.space == "global"]
    is_shared = [row for row in rows if row.space == "shared"]
    return {
        "sectors": sum(row.sectors for row in is_global),
        "least_sectors": sum(row.least_sectors for row in is_global),
        "half_lines": sum(row.half_lines for row in is_global),
        "least_half_lines": sum(row.least_half_lines for row in is_global),
        "wavefronts": sum(row.wavefronts for row in is_shared),
        "least_wavefronts": sum(row.least_wavefronts for row in is_shared),
    }


def excess(found: dict[str, int], unit: str) -> str:
    """Return what accesses touch over the least: `1.03`; nothing where they touch none.

    Args:
        found: by `traffic`.
        unit: `sectors`, `half_lines` or `wavefronts`.
    """
    least = found.get(f"least_{unit}", 0)
    return f"{found[unit] / least:.2f}" if least else ""
