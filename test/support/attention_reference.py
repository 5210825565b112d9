"""Attention as NumPy computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float16)


def reference(
    q: Array,
    k: Array,
    v: Array,
    *,
    scale: float | None = None,
    mask: Callable[[Array, Array, Array, Array], Array] | None = None,
    score: Callable[..., Array] | None = None,
) -> tuple[Array, Array]:
    """Return the result, [batch, seq, head, depth], and the logarithms, [batch, head, seq].

    `mask(batch, head, i, j)` and `score(score, batch, head, i, j)` get indices that broadcast.
    """
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, 2), np.repeat(v, group, 2)
    scores = np.einsum("bihd,bjhd->bhij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    indices = np.ogrid[tuple(slice(n) for n in scores.shape)]
    if score is not None:
        scores = score(scores, *indices)
    if mask is not None:
        scores = np.where(mask(*indices), scores, -np.inf)
    most = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    p = np.exp(scores - np.where(np.isinf(most), 0, most))
    total = p.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.where(total > 0, most + np.log(total), -np.inf)[..., 0]
    return np.einsum("bhij,bjhd->bihd", p / np.where(total > 0, total, 1), v), logs
