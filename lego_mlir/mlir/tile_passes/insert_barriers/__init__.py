"""Insert barriers where a thread accesses what another one has written, or the reverse.

accesses   what an operation accesses: which bytes of shared memory, which buffer
elements   which elements of it each thread accesses, where that is known
uniform    which values all threads of a CTA have
placement  the analysis over loops and branches, and the barriers
"""

from lego_mlir.mlir.tile_passes.insert_barriers.placement import insert_barriers

__all__ = ["insert_barriers"]
