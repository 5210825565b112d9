"""How far the results of a kernel on rows are from those in f64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.rows.cases import ARGUMENTS, RowsCase
from bench.rows.references import reference
from bench.rows.tensors import SHARED, parts

_CHECKED_ROWS = 512
"""Rows that are compared with the reference, at either end; all, where columns are added up."""

_TOLERANCE = {"f32": 2e-5, "f16": 2e-3, "bf16": 1e-2}
_BYTE_TOLERANCE = 4e-2

_MOST_DROPPED = 2.0**-14
"""The part of a matrix that a kernel which hardly drops anything may have dropped: where an element
is the residual's, and is wrong otherwise."""

_FRACTION = {"float16": 10, "bfloat16": 7}
"""The bits behind the point of a short number's fraction."""

_SMALL = 2.0**-8
"""Numbers below this part of the largest are taken for as large: where terms nearly cancel, the
roundings of f32 are more than a unit in the last place of what is left."""


def tolerance(case: RowsCase) -> float:
    """Return the greatest error, relative to the greatest number, that is none."""
    has_bytes = "byte" in ARGUMENTS[case.kernel].values()
    return _BYTE_TOLERANCE if has_bytes else _TOLERANCE[case.dtype]


def error(case: RowsCase, tensors: Mapping[str, Any], torch: Any) -> float:
    """Return the greatest error of an output, relative to the greatest number of it."""
    sums: dict[str, Any] = {}
    worst = 0.0
    for part in _parts(case, tensors):
        for name, want in _reference(case, part, torch).items():
            if ARGUMENTS[case.kernel][name] == "column":
                sums[name] = sums[name] + want if name in sums else want
            else:
                worst = max(worst, _relative(part[name], want))
    return max(worst, *(_relative(tensors[name], want) for name, want in sums.items()), 0.0)


def units_in_last_place(case: RowsCase, tensors: Mapping[str, Any], torch: Any) -> dict[str, float]:
    """Return the greatest errors of outputs of 2 bytes an element, in units of the last place.

    Of numbers that round to nearest it is a half. Sums of columns are left out.
    """
    worst: dict[str, float] = {}
    for part in _parts(case, tensors):
        for name, want in _reference(case, part, torch).items():
            bits = _FRACTION.get(str(part[name].dtype).removeprefix("torch."))
            if bits is None or ARGUMENTS[case.kernel][name] == "column":
                continue
            size = want.abs().clamp(min=float(want.abs().max()) * _SMALL)
            unit = torch.ldexp(torch.ones_like(size), torch.frexp(size).exponent - 1 - bits)
            found = float(((part[name].double() - want).abs() / unit).max().nan_to_num(nan=1e9))
            worst[name] = round(max(worst.get(name, 0.0), found), 3)
    return worst


def _parts(case: RowsCase, tensors: Mapping[str, Any]) -> Any:
    """Yield the arguments of some rows at either end; of all where columns are added up."""
    roles = ARGUMENTS[case.kernel]
    own = {n: x for n, x in tensors.items() if roles[n] not in SHARED}
    shared = {n: x for n, x in tensors.items() if roles[n] in SHARED}
    has_sums = any(roles[name] == "column" for name in case.outputs)
    ends = [slice(None)]
    if not has_sums and case.rows > 2 * _CHECKED_ROWS:
        ends = [slice(_CHECKED_ROWS), slice(-_CHECKED_ROWS, None)]
    for end in ends:
        for part in parts({n: x[end] for n, x in own.items()}):
            yield {n: part[n] if n in part else shared[n] for n in tensors}


def _reference(case: RowsCase, part: Mapping[str, Any], torch: Any) -> dict[str, Any]:
    inputs = {n: x for n, x in part.items() if n not in case.outputs}
    found = reference(case.kernel, inputs, torch)
    if "seed" in part:
        y, kept = found["y"], part["residual"].double()
        is_dropped = (part["y"] == part["residual"]) & ((y - kept).abs() > _SMALL * y.abs().max())
        if float(is_dropped.double().mean()) <= _MOST_DROPPED:
            found["y"] = torch.where(is_dropped, kept, y)
    return found


def _relative(found: Any, want: Any) -> float:
    difference = (found.double() - want).abs().max() / want.abs().max()
    return float(difference.nan_to_num(nan=float("inf")))
