"""Comparing an answer with the GPU's."""

from __future__ import annotations

import numpy as np

from recorded.program import Accuracy


def difference(ours: np.ndarray, gpu: np.ndarray, accuracy: Accuracy | None) -> str | None:
    """What differs, or `None`: bit by bit, or as numbers within an accuracy."""
    if accuracy is None:
        wrong = np.flatnonzero(ours.reshape(-1) != gpu.reshape(-1))
        a, b = ours.reshape(-1), gpu.reshape(-1)
    else:
        a, b = (_values(x, accuracy.dtype) for x in (ours, gpu))
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(a - b) <= np.maximum(accuracy.absolute, accuracy.relative * np.abs(b))
        wrong = np.flatnonzero(~(near | (a == b) | (np.isnan(a) & np.isnan(b))))
    if not len(wrong):
        return None
    at = int(wrong[0])
    shown = (hex(a[at]), hex(b[at])) if a.dtype.kind == "u" else (a[at], b[at])
    return f"{len(wrong)} of {len(a)} differ, first at {at}: here {shown[0]}, on the GPU {shown[1]}"


def _values(bits: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":
        wide = np.ascontiguousarray(bits).reshape(-1).view(np.uint16).astype(np.uint32)
        return (wide << np.uint32(16)).view(np.float32).astype(np.float64)
    return np.ascontiguousarray(bits).reshape(-1).view(dtype).astype(np.float64)
