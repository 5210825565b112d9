"""Programs without a race, and the ways to break each so that two accesses are unordered.

There is one correct program for every way of ordering two accesses of shared memory.
"""

from race_cases import barriers, clusters, copies, flags, proxies
from race_cases.case import HEAD, Case
from race_cases.tidiness import tidy

CASES: dict[str, Case] = (
    barriers.CASES | copies.CASES | proxies.CASES | clusters.CASES | flags.CASES
)

__all__ = ["CASES", "HEAD", "Case", "tidy"]
