"""Random windows, and what they are by their definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import lego_mlir as lg


@dataclass(frozen=True)
class Drawn:
    """A window on a tensor, as numbers."""

    shape: tuple[int, ...]
    bricks: tuple[int, ...] | None
    dims: tuple[int, ...]
    factors: tuple[tuple[int, ...], ...]
    constants: tuple[int, ...]
    boundaries: tuple[str, ...]

    def base(self) -> lg.Layout:
        if self.bricks is None:
            return lg.OrderBy(lg.Row(*self.shape))
        return lg.OrderBy(lg.GenP(list(self.shape), lg.bricks(*self.bricks)))

    def coordinates(self, *index: Any) -> tuple[Any, ...]:
        rows = zip(self.factors, self.constants, strict=True)
        return tuple(
            sum((f * i for f, i in zip(factors, index, strict=True)), start=constant)
            for factors, constant in rows
        )

    def layout(self) -> lg.Layout:
        return self.base().Window(self.dims, self.coordinates, self.boundaries)

    def elements(self) -> tuple[Any, Any]:
        """Return the offset at each index, and whether there is an element."""
        positions = self.base().offsets()
        offsets, exists = np.zeros(self.dims, int), np.ones(self.dims, bool)
        for index in np.ndindex(*self.dims):
            at = []
            for n, factors, constant, boundary in zip(
                self.shape, self.factors, self.constants, self.boundaries, strict=True
            ):
                x = constant + sum(f * i for f, i in zip(factors, index, strict=True))
                if boundary == "clamp":
                    x = min(max(x, 0), n - 1)
                elif boundary == "wrap":
                    x %= n
                exists[index] &= 0 <= x < n
                at.append(x)
            offsets[index] = positions[tuple(at)] if exists[index] else -1
        return offsets, exists


@st.composite
def windows(draw: Any) -> Drawn:
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 6)) for _ in range(rank))
    bricks = None
    if draw(st.booleans()):
        bricks = tuple(draw(st.sampled_from([b for b in (1, 2, 3) if n % b == 0])) for n in shape)
    dims = tuple(draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 4))))
    factors = tuple(tuple(draw(st.integers(-2, 3)) for _ in dims) for _ in shape)
    constants = tuple(draw(st.integers(-3, 5)) for _ in shape)
    boundaries = tuple(draw(st.sampled_from(["zero", "clamp", "wrap"])) for _ in shape)
    return Drawn(shape, bricks, dims, factors, constants, boundaries)
