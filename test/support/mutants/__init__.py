"""Three right kernels, and the ways in which each is broken for a test of the simulator.

A transpose that the compiler makes, a matrix product over a ring of tiles that `cp.async` fills,
and one over a ring that TMA fills. Of each, `KERNEL` has the PTX, what runs it, and its mutants.
"""

from mutants import ring, staged, transpose
from mutants.mutant import RIGHT, WRONG, Kernel, Mutant

KERNELS: tuple[Kernel, ...] = (transpose.KERNEL, staged.KERNEL, ring.KERNEL)

__all__ = ["KERNELS", "RIGHT", "WRONG", "Kernel", "Mutant"]
