"""Timing of many candidates, of a config search or of a case's alternatives, on the GPU."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure.timing import Call
from bench.report.results import OURS
from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import cuda

if TYPE_CHECKING:
    from bench.measure.comparison import Comparison

SCREENING_ROUNDS = 3
"""Rounds in which all candidates are timed."""

FINALISTS = 6
"""Number of candidates that are timed in all rounds."""


def add_candidates(
    comparison: Comparison, folder: Path, candidates: Sequence[Mapping[str, Any]]
) -> None:
    """Add all candidates to a comparison, which checks them; wrong ones are not timed.

    Args:
        comparison: what they are added to.
        folder: of the bundle.
        candidates: `name` and `file` of each.
    """
    for candidate in candidates:
        name = candidate["name"]
        try:
            call = _bind(comparison, folder / candidate["file"])
        except LegoError as e:  # it does not fit this device
            comparison.absent[name] = e.message
            continue
        comparison.add(name, call)
        if not comparison.verdicts[name].is_correct:
            comparison.graphs.pop(name).destroy()


def time_candidates(
    comparison: Comparison, candidates: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Screen the correct candidates, then time the fastest beside our kernel and the peers.

    Args:
        comparison: holds our kernel as the library chooses it, the peers, and the candidates.
        candidates: `name` of each.

    Returns:
        `screened`, the median time in microseconds of each correct candidate, and `us`, the times
        of the fastest, of our kernel and of the peers.
    """
    names = [c["name"] for c in candidates if c["name"] in comparison.graphs]
    others = [name for name in comparison.graphs if name not in names]
    screened = comparison.kernel_times([OURS, *names], SCREENING_ROUNDS)
    medians = {name: statistics.median(times) for name, times in screened.items()}
    best = sorted(names, key=medians.__getitem__)[:FINALISTS]
    correct = [name for name in others if comparison.verdicts[name].is_correct]
    us = comparison.kernel_times([*correct, *best], comparison.rounds)
    return {"screened": medians, "us": us}


def _bind(comparison: Comparison, file: Path) -> Call:
    """Return a launch of a compiled kernel, with its arguments bound for every set."""
    artifact = Artifact.load(file)
    loaded, data = cuda.load(artifact), comparison.setup.data
    shapes = [argument.shape for argument in artifact.arguments]
    calls = [loaded.bind(*(x.pointer for x in data.arrays(k, shapes))) for k in range(data.sets)]
    stream = comparison.setup.stream

    def launch(k: int) -> None:
        calls[k](stream)

    return launch
