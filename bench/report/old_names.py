"""The one table that maps names in old result files to the current ones.

Raw results are never rewritten. A file that was measured before a key, a peer or a field of a
config was renamed is read with the current name in its stead.
"""

from __future__ import annotations

import re
from typing import Any

_NAMES = {
    "product": "gemm",
    "groups": "grouped_gemm",
    "division": "config",
    "cuBLAS, short sums": "cuBLAS, fast accumulation",
    "torch.mm, a group at a time": "torch.mm per group",
    "rows known to the device alone": "ragged, group sizes on the device",
    "group": "raster_group",
    "resident": "persistent_ctas",
    "deferred": "overlap_epilogue",
    "alone": "one_cta_per_sm",
    "swap": "swap_ab",
    "parts": "split_k",
}
"""Whole strings: kinds of references, keys of a result or config, peers, alternatives."""

_CONFIG = re.compile(r"tile \d+×\d+×\d+, ")
_CONFIG_FIELDS = (
    (re.compile(r"(?<!raster )\bgroup (\d+)"), r"raster group \1"),
    (re.compile(r"\b(\d+) resident\b"), r"\1 persistent CTAs"),
    (re.compile(r"\b(\d+) parts\b"), r"split-K \1"),
    (re.compile(r"\bdeferred\b"), "overlapped epilogue"),
    (re.compile(r"\balone\b"), "one CTA per SM"),
    (re.compile(r"\bswap\b"), "swapped operands"),
)
"""Fields of a GEMM config in its text, which names candidates."""


def with_current_names(data: Any) -> Any:
    """Return JSON data with every old name in it, key or value, replaced by the current one."""
    match data:
        case dict():
            return {_current(key): with_current_names(value) for key, value in data.items()}
        case list():
            return [with_current_names(value) for value in data]
        case str():
            return _current(data)
        case _:
            return data


def _current(text: str) -> str:
    if _CONFIG.match(text):
        for pattern, replacement in _CONFIG_FIELDS:
            text = pattern.sub(replacement, text)
        return text
    return _NAMES.get(text, text)
