"""`python -m bench rows run`: check and time the kernels of a folder on the GPU at hand."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.contenders.run import append
from bench.measure.comparison import one_line
from bench.rows.cases import ARGUMENTS, CASES, OPEN_SIZES, RowsCase
from bench.rows.fusions import GROUP, HEAD, KEYS
from bench.rows.manifest import MANIFEST
from bench.rows.peers import peer
from bench.rows.references import reference, saved
from lego_mlir.artifact import Artifact
from lego_mlir.runtime import cuda
from lego_mlir.runtime.cuda.timing import Graph, interleave

_GRAPH_US = 2000.0
"""The least duration of a graph of launches, in microseconds."""

_SET_BYTES, _LEAST_SETS = 1 << 28, 3
"""The bytes that sets of arguments have together, at least: more than every cache holds; and sets:
of one, the cache may keep a part from launch to launch where loads have eviction priorities."""

_CHECKED_ROWS = 512
"""Rows that are compared with the reference, at either end; all, where columns are added up."""

_DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
_TOLERANCE = {"f32": 2e-5, "f16": 2e-3, "bf16": 1e-2}
_BYTE_TOLERANCE = 4e-2

_SEED = 1 << 40
"""Of random numbers."""

_SHARED = ("column", "head", "angle", "launch")
"""Roles of arguments that all rows share."""


def run(
    folder: Path, only: Sequence[str], output: Path | None, rounds: int, peers: Sequence[str]
) -> int:
    """Measure the kernels; return the number that fail. Lines of JSON go to `output`."""
    import torch

    manifest = json.loads((folder / MANIFEST).read_text())
    cases = {case.name: case for case in CASES}
    failures = 0
    for name, made in manifest["cases"].items():
        if only and not any(word in name for word in only):
            continue
        files = {word: folder / file for word, file in made["files"].items()}
        try:
            result = _measure(cases[name], files, rounds, peers, torch)
        except Exception as e:  # the others are measured nevertheless
            result = {"case": name, "error": one_line(e)}
        result |= {"how": made["how"], "commit": manifest["commit"]}
        failures += "error" in result or bool(result.get("wrong"))
        shown = result.get("error") or f"{result['us']} {result['wrong'] or ''} {result['absent']}"
        print(f"{name:<36} {shown}", flush=True)
        if output is not None:
            append(output, result)
        torch.cuda.empty_cache()
    return failures


def _measure(
    case: RowsCase, files: dict[str, Path], rounds: int, peers: Sequence[str], torch: Any
) -> dict[str, Any]:
    generator = torch.Generator("cuda").manual_seed(case.columns)
    sets = max(_LEAST_SETS, min(128, _SET_BYTES // case.bytes))
    tensors = [_tensors(case, torch, generator) for _ in range(sets)]
    stream = torch.cuda.Stream()
    calls: dict[str, Callable[[int], Any]] = {}
    wrong: dict[str, str] = {}
    absent: dict[str, str] = {}
    with torch.cuda.stream(stream):
        for name, file in files.items():
            loaded = cuda.load(Artifact.load(file))
            is_open = name in OPEN_SIZES  # the arrays tell the sizes
            bound = [
                loaded.bind(*(x if is_open or x is _SEED else x.data_ptr() for x in t.values()))
                for t in tensors
            ]
            calls[name] = lambda k, bound=bound: bound[k](stream.cuda_stream)
            for output in case.outputs:
                tensors[0][output].view(torch.uint8).fill_(0xCD)
            calls[name](0)
            torch.cuda.synchronize()
            error = _error(case, tensors[0], torch)
            has_bytes = "byte" in ARGUMENTS[case.kernel].values()
            if not error <= (_BYTE_TOLERANCE if has_bytes else _TOLERANCE[case.dtype]):
                wrong[name] = f"error {error:.3g}"
        for name in peers:
            try:
                made = [peer(name, case, t, torch) for t in tensors]
                for call in made:
                    call()
                torch.cuda.synchronize()
                calls[name] = lambda k, made=made: made[k]()
            except Exception as e:
                absent[name] = one_line(e)
        graphs = {}
        for name, call in calls.items():
            try:
                graphs[name] = _graph(call, sets, stream)
            except Exception as e:
                absent[name] = one_line(e)
        times = interleave({name: graph.microseconds for name, graph in graphs.items()}, rounds)
    for graph in graphs.values():
        graph.destroy()
    return {
        "case": case.name,
        "kernel": case.kernel,
        "dtype": case.dtype,
        "columns": case.columns,
        "bytes": case.bytes,
        "device": torch.cuda.get_device_name(),
        "sets": sets,
        "us": {name: round(statistics.median(found), 3) for name, found in times.items()},
        "rounds": {name: [round(us, 3) for us in found] for name, found in times.items()},
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


def _tensors(case: RowsCase, torch: Any, generator: Any) -> dict[str, Any]:
    """Return the arguments of a case by name; what a forward kernel saves is what it would be."""
    matrix = case.rows, case.columns
    sizes = {
        "element": matrix,
        "byte": matrix,
        "column": (case.columns,),
        "key": (case.rows, case.columns // KEYS),
        "head": (HEAD,),
        "angle": (case.rows, HEAD // 2),
        "group": (case.rows, case.columns // GROUP),
    }
    found: dict[str, Any] = {}
    for name, role in ARGUMENTS[case.kernel].items():
        shape = sizes.get(role, (case.rows,))
        if role == "label":
            found[name] = torch.randint(0, case.columns, shape, generator=generator, device="cuda")
        elif role == "launch":
            found[name] = _SEED
        elif role == "position":
            found[name] = torch.randperm(case.rows, generator=generator, device="cuda").int()
        elif role == "byte":
            found[name] = torch.empty(shape, device="cuda", dtype=torch.float8_e4m3fn)
        elif name in ("lse", "mean", "rstd"):
            found[name] = torch.cat(
                [saved(case.kernel, name, part, torch).float() for part in _parts(found)]
            )
        else:
            is_wide = role in ("row", "angle", "group")
            kind = torch.float32 if is_wide else getattr(torch, _DTYPES[case.dtype])
            found[name] = torch.randn(shape, generator=generator, device="cuda", dtype=kind)
    if case.kernel == "softmax_backward":
        found["y"] = found["y"].softmax(-1)
    return found


def _parts(tensors: dict[str, Any]) -> Any:
    """Yield the matrices in parts whose copies in f64 fit into memory."""
    (rows,) = {x.shape[0] for x in tensors.values() if x.dim() == 2}
    step = max(1, (1 << 30) // (8 * next(iter(tensors.values())).shape[1]))
    for start in range(0, rows, step):
        yield {n: x[start : start + step] for n, x in tensors.items() if x.dim() == 2}


def _error(case: RowsCase, tensors: dict[str, Any], torch: Any) -> float:
    """Return the greatest error of an output, relative to the greatest number of it."""
    inputs = {n: x for n, x in tensors.items() if n not in case.outputs}
    ends = [slice(None)]
    if not {"dw", "db"} & set(case.outputs) and case.rows > 2 * _CHECKED_ROWS:
        ends = [slice(_CHECKED_ROWS), slice(-_CHECKED_ROWS, None)]
    worst = 0.0
    for end in ends:
        roles = ARGUMENTS[case.kernel]
        part = {n: x if roles[n] in _SHARED else x[end] for n, x in inputs.items()}
        for name, want in reference(case.kernel, part, torch).items():
            found = tensors[name] if roles[name] == "column" else tensors[name][end]
            difference = (found.double() - want).abs().max() / want.abs().max()
            worst = max(worst, float(difference.nan_to_num(nan=float("inf"))))
    return worst
