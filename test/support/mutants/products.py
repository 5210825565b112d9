"""What the two matrix products share: C = A·Bᵀ of f16 matrices with rows along k, C in f32."""

from __future__ import annotations

import numpy as np

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def names(prefix: str, count: int) -> str:
    """Registers of a vector operand: `{%c0, %c1, %c2}`."""
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"


def operands(m: int, n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and a C full of NaN; sums of products of them are exact in f32."""
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-4, 5, (rows, k)).astype("f2") for rows in (m, n))
    return a, b, np.full((m, n), np.nan, "f4")


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What C should be."""
    return a.astype("f4") @ b.T.astype("f4")
