"""Measuring the candidates of a search, or a case's alternatives, in the process with the GPU."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.results import OURS
from bench.timing import Call
from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import cuda

if TYPE_CHECKING:
    from bench.contest import Contest

SCREENING = 3
"""Rounds in which all candidates take part."""

FINALISTS = 6
"""Candidates that take part in all rounds."""


def admit(
    contest: Contest,
    folder: Path,
    candidates: Sequence[Mapping[str, Any]],
) -> None:
    """Check all candidates; those that are right keep their graphs.

    Args:
        contest: in which they take part.
        folder: of the bundle.
        candidates: `name` and `file` of each.
    """
    for candidate in candidates:
        name = candidate["name"]
        try:
            call = _bound(contest, folder / candidate["file"])
        except LegoError as e:  # it does not fit this device
            contest.absent[name] = e.message
            continue
        contest.admit(name, call)
        if not contest.verdicts[name].right:
            contest.graphs.pop(name).destroy()


def search(contest: Contest, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Screen the candidates that are right, and time the fastest beside the rest.

    Args:
        contest: with us as the library chooses, the peers, and the candidates.
        candidates: `name` of each.

    Returns:
        `screened`, the median time in microseconds of each candidate that is right, and `us`, the
        times of the fastest, of us and of the peers.
    """
    names = [c["name"] for c in candidates if c["name"] in contest.graphs]
    others = [name for name in contest.graphs if name not in names]
    screened = contest.kernel_times([OURS, *names], SCREENING)
    medians = {name: statistics.median(times) for name, times in screened.items()}
    best = sorted(names, key=medians.__getitem__)[:FINALISTS]
    right = [name for name in others if contest.verdicts[name].right]
    return {"screened": medians, "us": contest.kernel_times([*right, *best], contest.rounds)}


def _bound(contest: Contest, file: Path) -> Call:
    artifact = Artifact.load(file)
    loaded, data = cuda.load(artifact), contest.setup.data
    shapes = [argument.shape for argument in artifact.arguments]
    calls = [loaded.bind(*(x.pointer for x in data.arrays(k, shapes))) for k in range(data.sets)]
    stream = contest.setup.stream

    def launch(k: int) -> None:
        calls[k](stream)

    return launch
