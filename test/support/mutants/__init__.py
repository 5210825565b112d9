"""Seven correct kernels, and their mutants, for tests of the simulator.

They are a transpose, attention, decoding, a persistent GEMM and sums over a cluster from the
compiler, a GEMM with a `cp.async` pipeline, and a GEMM with a TMA pipeline. `KERNEL` of each module
has the PTX, a function that runs it, and the mutants.
"""

from mutants import attention, cluster, decoding, persistent, ring, staged, transpose
from mutants.mutant import RIGHT, WRONG, Kernel, Mutant

KERNELS: tuple[Kernel, ...] = tuple(
    module.KERNEL for module in (transpose, staged, ring, attention, decoding, persistent, cluster)
)

__all__ = ["KERNELS", "RIGHT", "WRONG", "Kernel", "Mutant"]
