"""What a set of addresses costs: pure functions over the byte offsets of a warp's lanes."""

from lego_mlir.analysis.memory_costs.bank_conflicts import Wavefronts, ideal_wavefronts, wavefronts
from lego_mlir.analysis.memory_costs.sectors import Sectors, sectors

__all__ = ["Sectors", "Wavefronts", "ideal_wavefronts", "sectors", "wavefronts"]
