"""Check and time the contenders of cases on the GPU at hand."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.contenders.case import Built, Call, ContenderCase, Contenders
from bench.measure.comparison import one_line
from lego_mlir.runtime.cuda.timing import Graph, interleave

_GRAPH_US = 2000.0
"""The least duration of a graph of launches, in microseconds."""


def measure_cases(
    cases: Iterable[ContenderCase], folder: Path, rounds: int, output: Path | None, manifest: str
) -> int:
    """Measure cases that were built into a folder; return the number that fail.

    Args:
        cases: what is measured.
        folder: that `build_cases` wrote.
        rounds: of measurements.
        output: a file that lines of JSON are appended to.
        manifest: the name of the folder's manifest.
    """
    failures = 0
    made = json.loads((folder / manifest).read_text())["commit"]
    for case in cases:
        line = measure_case(case, folder / case.folder, rounds, made)
        failures += "error" in line or bool(line["wrong"])
        print(shown(line), flush=True)
        if output is not None:
            append(output, line)
    return failures


def measure_case(case: ContenderCase, folder: Path, rounds: int, commit: str) -> dict[str, Any]:
    """Return the line of results of a case; an error has the field `error`."""
    import torch

    found: dict[str, Any] = {"case": case.name, "figure": case.figure, "commit": commit}
    try:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            contenders = case.contenders(Built(folder, torch, stream))
            torch.cuda.synchronize()
            found |= _measured(case, contenders, rounds, stream, torch)
    except Exception as e:  # the others are measured nevertheless
        found["error"] = one_line(e)
    torch.cuda.empty_cache()
    return found


def _measured(
    case: ContenderCase, contenders: Contenders, rounds: int, stream: Any, torch: Any
) -> dict[str, Any]:
    wrong: dict[str, str] = {}
    absent = dict(contenders.absent)
    graphs: dict[str, Graph] = {}
    for name, call in contenders.calls.items():
        try:
            if name in contenders.unchecked:
                call()
                torch.cuda.synchronize()
            elif error := _error(name, call, contenders, torch):
                wrong[name] = error
            graphs[name] = _graph(call, case.launches, stream)
        except Exception as e:  # a peer may not be there
            absent[name] = one_line(e)
    times = interleave({name: graph.microseconds for name, graph in graphs.items()}, rounds)
    for graph in graphs.values():
        graph.destroy()
    return {
        "device": torch.cuda.get_device_name(),
        "us": {name: round(statistics.median(each), 3) for name, each in times.items()},
        "rounds": times,
        "work": case.work,
        "unit": case.unit,
        "wrong": wrong,
        "absent": absent,
        "errors": dict(contenders.errors),
    }


def _error(name: str, call: Call, contenders: Contenders, torch: Any) -> str | None:
    """Return what is wrong with what a call writes; None if nothing is."""
    results, wanted = contenders.results, contenders.expected
    if name in contenders.separate:
        results, wanted = ([tensor] for tensor in contenders.separate[name])
    for tensor in results:
        tensor.fill_(float("nan") if tensor.is_floating_point() else -(1 << 30))
    contenders.reset()
    call()
    torch.cuda.synchronize()
    for tensor, expected in zip(results, wanted, strict=True):
        if expected.is_floating_point():
            wide, wanted_wide = tensor.double(), expected.double()
            # Infinities have to be the same ones.
            difference = (wide - wanted_wide).abs().masked_fill_(wide == wanted_wide, 0)
            largest = wanted_wide[wanted_wide.isfinite()].abs().max()
            error = float(difference.max() / largest)
            if not error <= contenders.tolerance:
                return f"error {error:.3g}"
        elif not torch.equal(tensor, expected):
            return f"{int((tensor != expected).sum())} elements differ"
    return None


def _graph(call: Call, launches: int, stream: Any) -> Graph:
    def one(_: int) -> None:
        call()

    graph = Graph.capture(stream.cuda_stream, one, 1, 1)
    us = max(0.5, graph.microseconds())
    times = max(1, round(_GRAPH_US / us))
    if times == 1 or launches > 1:
        return graph
    graph.destroy()
    return Graph.capture(stream.cuda_stream, one, 1, times)


def append(results: Path, line: dict[str, Any]) -> None:
    """Append a line of JSON to a file."""
    with results.open("a") as lines:
        lines.write(json.dumps(line) + "\n")


def shown(line: dict[str, Any]) -> str:
    """Return a line of results as text."""
    if "error" in line:
        return f"{line['case']}: {line['error']}"
    times = ", ".join(f"{name} {us:.1f} µs" for name, us in line["us"].items())
    wrong = "".join(f"; WRONG {name}: {what}" for name, what in line["wrong"].items())
    absent = "".join(f"; no {name}: {why}" for name, why in line["absent"].items())
    return f"{line['case']}: {times}{wrong}{absent}"


def select(cases: Sequence[ContenderCase], only: Sequence[str]) -> list[ContenderCase]:
    """Return the cases whose names contain one of some words; all if there are none."""
    return [case for case in cases if not only or any(word in case.name for word in only)]
