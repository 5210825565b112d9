"""`python -m bench tiles run`: check and time the programs of a folder on the GPU at hand."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.contenders.run import append
from bench.measure.comparison import one_line
from bench.tiles.build import MANIFEST
from bench.tiles.case import TileCase
from bench.tiles.cases import CASES
from bench.tiles.peers import peer
from lego_mlir.artifact import Artifact
from lego_mlir.runtime import cuda
from lego_mlir.runtime.cuda.timing import Graph, interleave

_GRAPH_US = 2000.0
"""The least duration of a graph of launches, in microseconds."""


def run(folder: Path, only: Sequence[str], output: Path | None, rounds: int) -> int:
    """Measure the programs; return the number that fail. Lines of JSON go to `output`."""
    import torch

    manifest = json.loads((folder / MANIFEST).read_text())
    cases = {case.name: case for case in CASES}
    failures = 0
    for name, files in manifest["cases"].items():
        if only and not any(word in name for word in only):
            continue
        try:
            result = _measure(cases[name], {w: folder / f for w, f in files.items()}, rounds, torch)
        except Exception as e:  # the others are measured nevertheless
            result = {"case": name, "error": one_line(e)}
        result["commit"] = manifest["commit"]
        failures += "error" in result or bool(result.get("wrong"))
        shown = result.get("error") or f"{result['us']} {result['wrong'] or ''}"
        print(f"{name:<32} {shown}", flush=True)
        if output is not None:
            append(output, result)
        torch.cuda.empty_cache()
    return failures


def _measure(case: TileCase, files: dict[str, Path], rounds: int, torch: Any) -> dict[str, Any]:
    generator = torch.Generator("cuda").manual_seed(int.from_bytes(case.name.encode()[-4:]))
    sets = max(1, min(4, (1 << 32) // sum(_bytes(s) for s in case.shapes)))
    if max(_bytes(s) for s in case.shapes) < 1 << 24:
        sets = 1  # work in registers: memory does not matter
    tensors = [
        [_tensor(case, k, torch, generator) for k in range(len(case.shapes))] for _ in range(sets)
    ]
    stream = torch.cuda.Stream()
    calls: dict[str, Callable[[int], Any]] = {}
    wrong: dict[str, str] = {}
    absent: dict[str, str] = {}
    with torch.cuda.stream(stream):
        reference = case.reference(
            *(x.double() if x.is_floating_point() else x for x in tensors[0][:-1])
        )
        for name, file in files.items():
            loaded = cuda.load(Artifact.load(file))
            bound = [loaded.bind(*(x.data_ptr() for x in t)) for t in tensors]
            calls[name] = lambda k, bound=bound: bound[k](stream.cuda_stream)
            tensors[0][-1].view(torch.uint8).fill_(0xCD)
            calls[name](0)
            torch.cuda.synchronize()
            error = _error(tensors[0][-1], reference)
            if not error <= case.tolerance:
                wrong[name] = f"error {error:.3g}"
        for name in case.peers:
            try:
                peers = [peer(name, t[:-1], t[-1], torch) for t in tensors]
                for call in peers:
                    call()
                torch.cuda.synchronize()
                calls[name] = lambda k, peers=peers: peers[k]()
            except Exception as e:
                absent[name] = one_line(e)
        graphs = {name: _graph(call, sets, stream) for name, call in calls.items()}
        times = interleave({name: graph.microseconds for name, graph in graphs.items()}, rounds)
    for graph in graphs.values():
        graph.destroy()
    flops = {"flops": case.flops} if case.flops else {}
    return {
        "case": case.name,
        **flops,
        "device": torch.cuda.get_device_name(),
        "sets": sets,
        "us": {name: round(statistics.median(found), 3) for name, found in times.items()},
        "rounds": times,
        "wrong": wrong,
        "absent": absent,
    }


def _graph(call: Callable[[int], Any], sets: int, stream: Any) -> Graph:
    graph = Graph.capture(stream.cuda_stream, call, sets, sets)
    us = max(0.5, graph.microseconds())
    launches = sets * max(1, round(_GRAPH_US / us / sets))
    if launches == sets:
        return graph
    graph.destroy()
    return Graph.capture(stream.cuda_stream, call, sets, launches)


def _tensor(case: TileCase, number: int, torch: Any, generator: Any) -> Any:
    shape, dtype = case.shapes[number], getattr(torch, case.dtypes[number])
    if number in case.indices:
        high = case.indices[number]
        found = torch.randint(0, high, shape, generator=generator, device="cuda")
        return found.to(dtype)
    return torch.randn(shape, generator=generator, device="cuda").to(dtype)


def _error(found: Any, reference: Any) -> float:
    difference = (found.double() - reference.double()).abs().max()
    return float(difference / reference.double().abs().max())


def _bytes(shape: tuple[int, ...]) -> int:
    total = 4
    for n in shape:
        total *= n
    return total
