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

_SCHEDULES = {"wgmma": "persistent", "hmma": "cp_async"}
"""Those of GEMMs, as a schedule or a case's variant."""

_OF_SCHEDULES = {"schedule", "variant"}

_CASE = re.compile(r"_hmma$")
"""The schedule in the name of a GEMM's case, or of a kernel that is compiled for its times."""

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
            named = {_current(key): with_current_names(value) for key, value in data.items()}
            return named | {key: current_schedule(named[key]) for key in _OF_SCHEDULES & set(named)}
        case list():
            return [with_current_names(value) for value in data]
        case str():
            return _current(data)
        case _:
            return data


def current_schedule(name: Any) -> Any:
    """Return the current name of a schedule; anything else is itself."""
    return _SCHEDULES.get(name, name) if isinstance(name, str) else name


def _current(text: str) -> str:
    if _CONFIG.match(text):
        for pattern, replacement in _CONFIG_FIELDS:
            text = pattern.sub(replacement, text)
        return text
    return _NAMES.get(text, _CASE.sub("_cp_async", text))
