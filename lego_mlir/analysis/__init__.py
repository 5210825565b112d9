"""Analyses of layouts: pure functions, without MLIR.

`memory_costs` counts bank conflicts and sectors, `instructions` derives what tensor-core and TMA
instructions take from layouts, `distributed` holds the layouts of tiles among threads and plans
conversions, reductions and scans, `shared_tiles` are the layouts of tiles in shared memory,
`linear` holds linear layouts over F2, and `buffer_lifetimes` assigns offsets in shared memory.
"""

from lego_mlir.analysis.memory_costs.bank_conflicts import Wavefronts, ideal_wavefronts, wavefronts
from lego_mlir.analysis.memory_costs.sectors import Sectors, sectors

__all__ = ["Sectors", "Wavefronts", "ideal_wavefronts", "sectors", "wavefronts"]
