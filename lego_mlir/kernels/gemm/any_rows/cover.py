"""The choice of a few configs for all numbers of rows.

For sampled numbers of rows the best config is known, and the model estimates how long every other
one takes there. The few configs are those with which no sample takes much longer than it could.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, takewhile

import numpy as np
import numpy.typing as npt

from lego_mlir.kernels.gemm.config import GemmConfig

MOST_SAMPLED = 1 << 14
"""The greatest number of rows that is sampled. More rows take the config of these: a GEMM of that
size has so many tiles that the last wave counts for little."""

_STEPS_PER_DOUBLING = 5
_RANGES_PER_DOUBLING = 16
"""Samples of rows among which configs are chosen, and those among which ranges are divided."""

_FEW = 8
"""Rows up to which every number is sampled; further samples are multiples of it."""

_NORM = 8.0
"""The exponent that joins the slowdowns of samples: the worst count most."""

Ratios = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A config, and the number of rows for which it is the best."""

    config: GemmConfig
    rows: int


@dataclass(frozen=True, slots=True)
class Cover:
    """Configs for all numbers of rows.

    Attributes:
        candidates: the configs, the one for most rows last.
        bounds: ascending numbers of rows; each is the last of a range.
        choices: the number of the config of each range, and of what is beyond the last.
    """

    candidates: tuple[Candidate, ...]
    bounds: tuple[int, ...]
    choices: tuple[int, ...]

    def choose(self, rows: int) -> int:
        """Return the number of the config for some rows."""
        return self.choices[bisect_left(self.bounds, rows)]

    def most(self, number: int) -> int | None:
        """Return the most rows for which a config is chosen; `None` for any number."""
        last = max(k for k, choice in enumerate(self.choices) if choice == number)
        return self.bounds[last] if last < len(self.bounds) else None

    def lines(self) -> list[str]:
        """Return a line of an explanation for each range."""
        ends = [f"M <= {bound}" for bound in self.bounds] + ["above"]
        return [
            f"{end:12} {self.candidates[choice].config}"
            for end, choice in zip(ends, self.choices, strict=True)
        ]


def samples(per_doubling: int = _STEPS_PER_DOUBLING) -> list[int]:
    """Return the numbers of rows that are sampled."""
    steps = (round(2 ** (k / per_doubling)) for k in count())
    above = (-(-n // _FEW) * _FEW for n in takewhile(lambda n: n <= MOST_SAMPLED, steps))
    return sorted({*range(1, _FEW), *above})


def cover(
    best: Callable[[int], GemmConfig],
    estimate: Callable[[int, Sequence[GemmConfig]], Sequence[float]],
    is_bounded: Callable[[GemmConfig], bool],
    most_configs: int,
) -> Cover:
    """Return at most `most_configs` configs for all numbers of rows.

    Args:
        best: returns the best config for a number of rows.
        estimate: returns the times that configs take for a number of rows.
        is_bounded: says which configs need to know the most rows.
        most_configs: 1 or more.
    """
    rows = samples()
    found = {best(n): n for n in reversed(rows)}
    candidates = [Candidate(config, n) for config, n in found.items()]
    times = np.array([estimate(n, list(found)) for n in rows])
    times[-1, [is_bounded(c.config) for c in candidates]] = np.inf
    chosen = _chosen(times / times.min(axis=1, keepdims=True), most_configs)
    candidates = [candidates[k] for k in chosen]
    configs = [c.config for c in candidates]
    rows = samples(_RANGES_PER_DOUBLING)
    times = np.array([estimate(n, configs) for n in rows])
    times[-1, list(map(is_bounded, configs))] = np.inf
    number = [int(k) for k in times.argmin(axis=1)]
    used = list(dict.fromkeys(reversed(number)))[::-1]
    ends = [k for k in range(len(rows) - 1) if number[k] != number[k + 1]]
    return Cover(
        tuple(candidates[k] for k in used),
        tuple(rows[k] for k in ends),
        tuple(used.index(number[k]) for k in (*ends, len(rows) - 1)),
    )


def _chosen(ratios: Ratios, most: int) -> list[int]:
    """Return the columns of which the least of each row are the least, as far as `most` can be.

    One after another is added, and then exchanged for a better one as long as there is one.
    """
    everything = range(ratios.shape[1])
    chosen: list[int] = []
    while len(chosen) < min(most, len(everything)):
        chosen.append(_best(ratios, chosen, everything))
    while True:
        before = _loss(ratios, chosen)
        for place in range(len(chosen)):
            others = chosen[:place] + chosen[place + 1 :]
            chosen[place] = _best(ratios, others, everything)
        if _loss(ratios, chosen) >= before:
            return chosen


def _best(ratios: Ratios, chosen: list[int], columns: Sequence[int]) -> int:
    """Return the column that is best added to the chosen ones."""
    return min(columns, key=lambda k: _loss(ratios, [*chosen, k]))


def _loss(ratios: Ratios, chosen: list[int]) -> float:
    return float((ratios[:, chosen].min(axis=1) ** _NORM).mean())
