"""The choice of configs for all numbers of rows.

For sampled numbers of rows the best config is known, and the model estimates how long every other
one takes there. Of the best ones those are chosen with which no sample takes much longer than it
could.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, takewhile

import numpy as np
import numpy.typing as npt

from lego_mlir.kernels.gemm.config import GemmConfig

MOST_SAMPLED = 1 << 14
"""The greatest number of rows that is sampled. More rows take the config of these: a GEMM of that
size has so many tiles that the last wave counts for little."""

_STEPS_PER_DOUBLING = 16
"""Sampled rows from a power of two to the next one."""

_FEW = 8
"""Rows up to which every number is sampled; further samples are multiples of it."""

_MOST_TILES = 128
"""Ranges end where a tile of some config does, down to so many tiles from the top of C."""

_NORM = 8.0
"""The exponent that joins the slowdowns of samples: the worst count most."""

_NEAR = 1.02
"""A config is worth its compilation if some rows take longer than this times as long without it."""

Times = npt.NDArray[np.float64]


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


def samples() -> list[int]:
    """Return the numbers of rows that are sampled.

    They are those that users like, of few binary digits; and some that are a little more than a
    power of two, for which tiles that divide that would waste most of one.
    """
    powers = [*takewhile(lambda n: n < MOST_SAMPLED, (_FEW << k for k in count()))]
    above = {n + n * k // _STEPS_PER_DOUBLING for n in powers for k in range(_STEPS_PER_DOUBLING)}
    above |= {n + _FEW for n in powers}
    return sorted({*range(1, _FEW), *(n for n in above if n % _FEW == 0), MOST_SAMPLED})


def cover(
    best: Callable[[int], GemmConfig],
    estimate: Callable[[Sequence[int], Sequence[GemmConfig]], Times],
    tile_rows: Callable[[GemmConfig], int],
    most_configs: int | None,
) -> Cover:
    """Return configs for all numbers of rows.

    A sample takes its best config if that is chosen, other rows the one with the best estimate.

    Args:
        best: returns the best config for a number of rows.
        estimate: returns the times that configs take, for each number of rows a row.
        tile_rows: returns the rows of a config's tile.
        most_configs: 1 or more; `None` for as many as are worth their compilation.
    """
    rows = samples()
    best_of = [best(n) for n in rows]
    first = dict(zip(reversed(best_of), reversed(rows), strict=True))
    configs = list(first)
    own = [configs.index(config) for config in best_of]
    times = estimate(rows, configs)
    best_times = times[range(len(rows)), own]
    ratios = times / best_times[:, None]
    # The tuned table knows better than estimates where one is less than that of the best config.
    is_tuned = times.min(axis=1) < best_times
    ratios[is_tuned] = _NEAR * np.maximum(ratios, 1 / ratios)[is_tuned]
    ratios[range(len(rows)), own] = 1.0
    chosen = _chosen(ratios, len(configs) if most_configs is None else most_configs)
    sizes = {tile_rows(configs[k]) for k in chosen}
    multiples = {size * n for size in sizes for n in range(1, _MOST_TILES + 1)}
    ends = sorted({*rows, *(n for n in multiples if n < MOST_SAMPLED)})
    found = estimate(ends, [configs[k] for k in chosen]).argmin(axis=1)
    number = {end: chosen[k] for end, k in zip(ends, found, strict=True)}
    number |= {n: k for n, k in zip(rows, own, strict=True) if k in chosen}
    used = list(dict.fromkeys(reversed([number[end] for end in ends])))[::-1]
    bounds = [end for end, after in pairwise(ends) if number[end] != number[after]]
    return Cover(
        tuple(Candidate(configs[k], first[configs[k]]) for k in used),
        tuple(bounds),
        tuple(used.index(number[end]) for end in (*bounds, ends[-1])),
    )


def _chosen(ratios: Times, most: int) -> list[int]:
    """Return columns of which the least of each row is near 1, or as near as `most` columns can be.

    One after another is added. If they are not enough, they are exchanged for better ones as long
    as there are any.
    """
    everything = range(ratios.shape[1])
    chosen: list[int] = []
    while len(chosen) < min(most, len(everything)):
        chosen.append(_best(ratios, chosen, everything))
        if ratios[:, chosen].min(axis=1).max() < _NEAR:
            return chosen
    while True:
        before = _loss(ratios, chosen)
        for place in range(len(chosen)):
            others = chosen[:place] + chosen[place + 1 :]
            chosen[place] = _best(ratios, others, everything)
        if _loss(ratios, chosen) >= before:
            return chosen


def _best(ratios: Times, chosen: list[int], columns: Sequence[int]) -> int:
    """Return the column that is best added to the chosen ones."""
    return min(columns, key=lambda k: _loss(ratios, [*chosen, k]))


def _loss(ratios: Times, chosen: list[int]) -> float:
    return float((ratios[:, chosen].min(axis=1) ** _NORM).mean())
