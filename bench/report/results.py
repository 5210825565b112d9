"""Lines of results: reading them, and the ratios that may be computed from them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.case import COPIES
from bench.gemm.references import gemm_reference_of
from bench.report.old_names import with_current_names
from lego_mlir.diagnostics import LegoError, Location

Result = dict[str, Any]

OURS = "ours"
"""Our kernel; with launch overhead, a bare launch of bound arguments on a stream."""

BY_LAUNCH = "runtime.launch"
"""Our kernel launched with arrays by the package's own API; it has no kernel time of its own."""


@dataclass(frozen=True, slots=True)
class Quartiles:
    """The median over the rounds, with the quartiles below and above it."""

    low: float
    median: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Quartiles:
        """Return the quartiles of at least two values."""
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return Quartiles(low, median, high)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def read(file: Path) -> list[Result]:
    """Return the results of a file of JSON lines, under their current names.

    Raises:
        LegoError: the file cannot be read, a line is no result, or a case occurs twice.
    """
    try:
        lines = file.read_text().splitlines()
    except OSError as e:
        raise LegoError(
            f"cannot read the results: {e.strerror}", location=Location(str(file))
        ) from None
    results: list[Result] = []
    for number, line in enumerate(lines, 1):
        try:
            result = json.loads(line)
        except ValueError:
            result = None
        if not isinstance(result, dict) or not {"case", "commit", "verified"} <= result.keys():
            raise LegoError(
                "this line is not the result of a case",
                location=Location(str(file), number),
                hint="write the file with python -m bench run BUNDLE -o FILE",
            )
        if any(result["case"] == other["case"] for other in results):
            raise LegoError(
                f"the case {result['case']} occurs twice", location=Location(str(file), number)
            )
        results.append(with_current_names(result))
    if not results:
        raise LegoError("the file holds no results", location=Location(str(file)))
    return results


def is_verified(result: Result, name: str = OURS) -> bool:
    """Return whether every element of a contender's output was found correct."""
    return result["verified"].get(name) is True


def failure(result: Result) -> str:
    """Return why our output is not correct."""
    verdict = result.get("verdicts", {}).get(OURS)
    if verdict is None:
        return str(result.get("error", "it was not checked"))
    return (
        f"{verdict['differing']} of {verdict['elements']} elements differ, "
        f"{verdict['outside']} bytes outside the output are written"
    )


def ratio(result: Result, peer: str, ours: str = OURS, column: str = "us") -> Quartiles:
    """Return the peer's time over ours, computed in each round: above 1 we are faster.

    Args:
        result: of a case.
        peer: the contender to compare with.
        ours: which of our contenders.
        column: `us`, the kernel's time, or `call_us`, with launch overhead.

    Raises:
        LegoError: one of the two was not verified or was not timed.
    """
    for name in (ours, peer):
        if not is_verified(result, name):
            raise LegoError(f"{result['case']}: the output of '{name}' is not verified")
        if name not in result.get(column, {}):
            raise LegoError(f"{result['case']}: '{name}' was not timed")
    pairs = zip(result[column][ours], result[column][peer], strict=True)
    return Quartiles.of([theirs / own for own, theirs in pairs])


def time(result: Result, name: str, column: str = "us") -> float | None:
    """Return a contender's median time in µs; `None` if it is not verified or not timed."""
    times = result.get(column, {}).get(name)
    return statistics.median(times) if times and is_verified(result, name) else None


def fastest(result: Result, names: Iterable[str]) -> str | None:
    """Return the verified contender with the smallest median time; `None` if there is none."""
    times = {name: us for name in names if (us := time(result, name)) is not None}
    return min(times, key=times.__getitem__) if times else None


def fastest_copy(result: Result) -> str | None:
    """Return the faster of the copies of the same bytes; `None` without any."""
    return fastest(result, COPIES)


def is_gemm(result: Result) -> bool:
    """Return whether the case is a GEMM or a grouped GEMM."""
    return gemm_reference_of(result.get("reference", {})) is not None


def rate(result: Result, name: str = OURS) -> float | None:
    """Return a GEMM's multiplications and additions over the kernel's time, in TFLOP/s."""
    us, reference = time(result, name), gemm_reference_of(result.get("reference", {}))
    return None if us is None or reference is None else reference.flops / us / 1e6


def bandwidth(result: Result, name: str = OURS) -> float | None:
    """Return the bytes read and written over the kernel's time, in TB/s."""
    us = time(result, name)
    return None if us is None else result["bytes"] / us / 1e6
