"""Step two: check and time the cases of a bundle on a GPU.

Each case runs in a child process under a time limit, so that a hang ends with the child. Times are
kernel times: CUDA graphs of launches that rotate through enough copies of the data to outgrow the
L2 cache, ours and each peer's in turn, round by round, in one process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 15
LIMIT_S = 120
PAST_L2 = 256 << 20
"""Bytes that one rotation touches at least: over twice an H200's L2 of 60 MB."""


def run(folder: Path, only: str, output: Path | None, measure: bool) -> int:
    """Run every case whose name contains `only`; the number of cases that failed."""
    manifest = json.loads((folder / "manifest.json").read_text())
    names = [name for name in manifest["cases"] if only in name]
    failures = 0
    lines = []
    for number, name in enumerate(names, 1):
        step = ["one", str(folder), "--case", name, *([] if measure else ["--check"])]
        try:
            child = subprocess.run(
                [sys.executable, "-m", "bench", *step],
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            said = child.stdout.strip().splitlines()
            result = json.loads(said[-1]) if child.returncode == 0 and said else None
            error = child.stderr.strip()
        except subprocess.TimeoutExpired:
            result, error = None, f"stopped after {LIMIT_S} s"
        result = result or {"case": name, "correct": False, "error": error[-2000:]}
        result["commit"] = manifest["commit"]
        lines.append(json.dumps(result))
        failures += not result["correct"]
        print(f"[{number}/{len(names)}] {summary(result)}", flush=True)
    if output is not None:
        output.write_text("\n".join(lines) + "\n")
    print(f"{len(names) - failures} of {len(names)} cases are right")
    return failures


def summary(result: dict[str, Any]) -> str:
    """One line on a case."""
    if not result["correct"]:
        return f"WRONG {result['case']}: {result.get('error', '')}"
    ratios = "".join(f"  {median_ratio(result, p):.2f} of {p}" for p in result.get("peers", {}))
    return f"right {result['case']}{ratios}"


def median_ratio(result: dict[str, Any], peer: str) -> float:
    """The median over rounds of the peer's time over ours: above 1 we are faster."""
    pairs = zip(result["us"], result["peers"][peer], strict=True)
    return statistics.median(theirs / ours for ours, theirs in pairs)


def one(folder: Path, name: str, measure: bool) -> None:
    """Check one case, then time it; prints the result as a line of JSON."""
    import torch

    from lego_mlir import runtime
    from lego_mlir.runtime import cuda

    case = json.loads((folder / "manifest.json").read_text())["cases"][name]
    artifact = runtime.Artifact.load(folder / f"{name}.lego")
    sets = [_data(artifact, torch)]
    result = {
        "case": name,
        **case,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "correct": _is_right(artifact, case, *sets[0], torch),
    }
    if result["correct"] and measure:
        bytes_a_set = 2 * sets[0][0].numel() * sets[0][0].element_size()
        sets += [_data(artifact, torch) for _ in range(min(511, PAST_L2 // bytes_a_set))]
        loaded = cuda.load(artifact)
        bound = [loaded.bind(x, y) for x, y in sets]
        m, n = case["m"], case["n"]
        # Two copies of the same bytes as limits: the driver's own is slow from 512 MB on.
        flat = [tuple(t.view(-1).view(torch.int32) for t in pair) for pair in sets]
        launches = {
            "ours": lambda k, stream: bound[k](stream),
            "memcpy": lambda k, _: flat[k][1].copy_(flat[k][0]),
            "copy kernel": lambda k, _: torch.bitwise_or(flat[k][0], 0, out=flat[k][1]),
            "torch eager": lambda k, _: sets[k][1].view(n, m).copy_(sets[k][0].view(m, n).T),
        }
        recorded = {name: _graph(launch, len(sets), torch) for name, launch in launches.items()}
        times = _interleaved(recorded, len(sets), torch)
        result["us"] = times.pop("ours")
        result["peers"] = times
        result["bytes"] = bytes_a_set
        result["rotated_sets"] = len(sets)
        result["card"] = _card()
    print(json.dumps(result))


def _data(artifact: Any, torch: Any) -> tuple[Any, Any]:
    """Random bits to read and poison to write, as tensors of the artifact's types and shapes."""
    types = {"i8": torch.int8, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
    a, b = artifact.arguments
    kind = types[a.dtype]
    size = a.shape[0] * a.shape[1] * kind.itemsize
    bits = torch.randint(0, 256, (size,), dtype=torch.uint8, device="cuda")
    poison = torch.full((size,), 0xCD, dtype=torch.uint8, device="cuda")
    return bits.view(kind).reshape(a.shape), poison.view(kind).reshape(b.shape)


def _is_right(artifact: Any, case: dict[str, Any], x: Any, y: Any, torch: Any) -> bool:
    """Whether the output is PyTorch's transpose, bit for bit; device arrays and host arrays."""
    import numpy as np

    from lego_mlir import runtime

    runtime.launch(artifact, x, y)
    torch.cuda.synchronize()
    integer = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    source = x.view(integer).reshape(case["m"], case["n"])
    want = source if case["output"] == "col" else source.T
    right = torch.equal(y.view(integer).reshape(-1), want.reshape(-1))
    host = np.full(artifact.arguments[1].shape, 1, dtype=y.cpu().numpy().dtype)
    runtime.launch(artifact, x.cpu().numpy(), host, device="cuda")
    return bool(right and host.tobytes() == y.cpu().numpy().tobytes())


def _graph(launch: Callable[[int, Any], Any], sets: int, torch: Any) -> Any:
    """A CUDA graph that launches once on each set of data."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for k in range(min(sets, 3)):
            launch(k, stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for k in range(sets):
            launch(k, stream)
    return graph


def _interleaved(graphs: dict[str, Any], sets: int, torch: Any) -> dict[str, list[float]]:
    """Microseconds a launch, for each graph in each round."""
    times: dict[str, list[float]] = {name: [] for name in graphs}
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for turn in range(ROUNDS + 2):
        for name, graph in graphs.items():
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            if turn >= 2:  # the first two warm up
                times[name].append(start.elapsed_time(end) * 1e3 / sets)
    return times


def _card() -> str:
    """The card's clocks and power as it is."""
    query = "--query-gpu=clocks.sm,clocks.mem,power.draw,power.limit"
    said = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return said.stdout.strip()
