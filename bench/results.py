"""Lines of results: reading them, and the ratios that may be drawn from them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cases import COPIES
from bench.gemm.references import product_of
from lego_mlir.diagnostics import LegoError, Location

Result = dict[str, Any]

OURS = "ours"
"""We as a contestant: the kernel, and with launch overhead a bare launch on a stream."""

BY_LAUNCH = "runtime.launch"
"""We again, by the package's own launch of arrays from Python; it has no kernel time."""


@dataclass(frozen=True, slots=True)
class Quartiles:
    """The median of the rounds, with the quartiles below and above it."""

    low: float
    median: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Quartiles:
        """Of at least two values."""
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return Quartiles(low, median, high)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def read(file: Path) -> list[Result]:
    """The results of a file of JSON lines.

    Raises:
        LegoError: it cannot be read, a line is no result, or a case stands there twice.
    """
    try:
        lines = file.read_text().splitlines()
    except OSError as e:
        raise LegoError(
            f"the results cannot be read: {e.strerror}", location=Location(str(file))
        ) from None
    results: list[Result] = []
    for number, line in enumerate(lines, 1):
        try:
            result = json.loads(line)
        except ValueError:
            result = None
        if not isinstance(result, dict) or not {"case", "commit", "verified"} <= result.keys():
            raise LegoError(
                "this line is no result of a case",
                location=Location(str(file), number),
                hint="write the file with python -m bench run BUNDLE -o FILE",
            )
        if any(result["case"] == other["case"] for other in results):
            raise LegoError(
                f"the case {result['case']} stands here twice", location=Location(str(file), number)
            )
        results.append(result)
    if not results:
        raise LegoError("there are no results", location=Location(str(file)))
    return results


def is_verified(result: Result, name: str = OURS) -> bool:
    """Whether a contestant's output was found right, all of it."""
    return result["verified"].get(name) is True


def reason(result: Result) -> str:
    """Why our output is not right."""
    verdict = result.get("verdicts", {}).get(OURS)
    if verdict is None:
        return str(result.get("error", "it was not checked"))
    return (
        f"{verdict['differing']} of {verdict['elements']} elements differ, "
        f"{verdict['outside']} bytes outside the output are written"
    )


def ratio(result: Result, peer: str, ours: str = OURS, column: str = "us") -> Quartiles:
    """The peer's time over ours, round by round: above 1 we are faster.

    Args:
        result: of a case.
        peer: whom to compare with.
        ours: which of our contestants.
        column: `us`, the kernel's time, or `call_us`, with launch overhead.

    Raises:
        LegoError: one of the two was not verified or has no times.
    """
    for name in (ours, peer):
        if not is_verified(result, name):
            raise LegoError(f"{result['case']}: the output of '{name}' is not verified")
        if name not in result.get(column, {}):
            raise LegoError(f"{result['case']}: '{name}' was not timed")
    pairs = zip(result[column][ours], result[column][peer], strict=True)
    return Quartiles.of([theirs / own for own, theirs in pairs])


def time(result: Result, name: str, column: str = "us") -> float | None:
    """The median time in microseconds of a contestant; `None` where it is not verified or timed."""
    times = result.get(column, {}).get(name)
    return statistics.median(times) if times and is_verified(result, name) else None


def fastest(result: Result, names: Iterable[str]) -> str | None:
    """Who of these has the smallest median of those who are right; `None` if nobody is."""
    times = {name: us for name in names if (us := time(result, name)) is not None}
    return min(times, key=times.__getitem__) if times else None


def limit(result: Result) -> str | None:
    """The faster of the copies of the same bytes; `None` without any."""
    return fastest(result, COPIES)


def is_product(result: Result) -> bool:
    """Whether the case multiplies matrices."""
    return product_of(result.get("reference", {})) is not None


def rate(result: Result, name: str = OURS) -> float | None:
    """Multiplications and additions of a product over the kernel's time, in TFLOP/s."""
    us, product = time(result, name), product_of(result.get("reference", {}))
    return None if us is None or product is None else product.flops / us / 1e6


def bandwidth(result: Result, name: str = OURS) -> float | None:
    """Bytes read and written over the kernel's time, in TB/s."""
    us = time(result, name)
    return None if us is None else result["bytes"] / us / 1e6
