"""`python -m bench mlp`: a network of two linear layers, forward and backward, ours and PyTorch's.

It needs a GPU, PyTorch, and lego-mlir with its compiler. All contenders have the same weights; the
gradients of ours are compared with those of eager PyTorch before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole

TOLERANCE = 2e-2
"""Of an element of a gradient, relative to the largest one."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench mlp`."""
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--widths", type=int, nargs=3, default=(4096, 16384, 4096), metavar="N")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write JSON lines")


def run(options: argparse.Namespace) -> int:
    """Print the times of a step; return 1 if a gradient is wrong, else 0."""
    import torch

    from lego_mlir.runtime.cuda.timing import interleave
    from lego_mlir.torch import Linear

    if not torch.cuda.is_available():
        raise LegoError("there is no GPU that PyTorch can use")
    torch.manual_seed(0)
    k, hidden, n = options.widths
    theirs = _network(torch.nn.Linear, k, hidden, n)
    ours = _network(Linear, k, hidden, n)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(options.rows, k, device="cuda", dtype=torch.bfloat16)
    grad = torch.randn(options.rows, n, device="cuda", dtype=torch.bfloat16)
    networks = {
        "PyTorch, eager": (theirs, theirs),
        "PyTorch, compiled": (torch.compile(theirs, fullgraph=True), theirs),
        "ours, eager": (ours, ours),
        "ours, compiled": (torch.compile(ours, fullgraph=True), ours),
    }
    expected = _step(theirs, theirs, x, grad)
    errors = {
        name: max(_error(found, want) for found, want in zip(_step(f, m, x, grad), expected))  # noqa: B905
        for name, (f, m) in networks.items()
    }
    steps: dict[str, Callable[[], Any]] = {
        name: partial(_step, f, m, x, grad) for name, (f, m) in networks.items()
    }
    steps["ours, compiled, CUDA graph"] = _captured(steps["ours, compiled"])
    measures = {name: partial(_milliseconds, step) for name, step in steps.items()}
    times = interleave(measures, options.rounds)
    print(f"{torch.cuda.get_device_name()}, {options.rows} rows, widths {k}, {hidden}, {n}, bf16")
    for name, found in times.items():
        error = f"  error {errors[name]:.1e}" if name in errors else ""
        print(f"  {name:<28} {statistics.median(found):8.3f} ms{error}")
    if options.output is not None:
        line = {"case": "mlp", "ms": times, "error": errors, "rows": options.rows}
        line |= {"device": torch.cuda.get_device_name(), "widths": list(options.widths)}
        write_whole(options.output, (json.dumps(line) + "\n").encode())
    wrong = [name for name, error in errors.items() if error > TOLERANCE]
    for name in wrong:
        print(f"WRONG: {name}")
    return int(bool(wrong))


def _network(linear: Any, k: int, hidden: int, n: int) -> Any:
    import torch

    layers = (linear(k, hidden), torch.nn.GELU(), linear(hidden, n))
    return torch.nn.Sequential(*layers).to("cuda", torch.bfloat16)


def _step(function: Any, module: Any, x: Any, grad: Any) -> list[Any]:
    """Return the output, and the gradients of all parameters."""
    import torch

    y = function(x)
    return [y.detach(), *torch.autograd.grad(y, list(module.parameters()), grad)]


def _error(found: Any, expected: Any) -> float:
    scale = expected.float().abs().max()
    return float((found.float() - expected.float()).abs().max() / scale)


def _captured(step: Callable[[], Any]) -> Callable[[], Any]:
    """Return the replay of a CUDA graph of a step."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _milliseconds(step: Callable[[], Any]) -> float:
    """Return the time of a step, by events around several."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    step()
    start.record()
    for _ in range(5):
        step()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 5
