"""`python -m bench launch build DIR | run DIR | host`."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle, islice, product
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.launch import peers
from bench.launch.kernels import GEMM, MOST_ROWS, SIZE, TENSORS
from bench.peers.base import Absent
from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole

SEEN_ROWS = 100
"""Numbers of rows that take turns."""

CALLS = 300
"""Launches that are timed together; the driver's queue takes so many without waiting."""

OURS, BOUND, TVM_FFI = "lego-mlir", "lego-mlir, bound", "lego-mlir, tvm-ffi"
DRIVER = "the driver alone"

ANY_ROWS, OLD, NEW, SEEN = "any rows", "the same rows", "new rows", "rows seen before"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench launch`."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="build | run | host")
    command = commands.add_parser("build", help="compile the kernels into a folder; needs no GPU")
    command.add_argument("folder", type=Path)
    command.add_argument("--target", default="sm_90a")
    command = commands.add_parser("run", help="check and time the launches of a folder on a GPU")
    command.add_argument("folder", type=Path)
    command.add_argument("--rounds", type=int, default=25)
    command.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write JSON lines")
    commands.add_parser("host", help="time the Python of our launches without a GPU")


def run(options: argparse.Namespace) -> int:
    """Run the command; return 1 if a result is wrong, else 0."""
    match options.action:
        case "build":
            return _build(options.folder, options.target)
        case "run":
            return _run(options)
    from bench.launch.host import measure

    for what, us in measure().items():
        print(f"{what:<40} {us:6.2f} µs")
    return 0


def _build(folder: Path, target: str) -> int:
    from bench.launch.kernels import any_rows_kernel, gemm_kernel, sum_kernel

    folder.mkdir(parents=True, exist_ok=True)
    for count in TENSORS:
        sum_kernel(count).compile(target).save(folder / f"sum{count}.lego")
    gemm_kernel(target).compile(target).save(folder / "gemm.lego")
    any_rows_kernel(target).compile(target).save(folder / f"{ANY_ROWS}.lego")
    print(f"the kernels are in {folder}")
    return 0


def _run(options: argparse.Namespace) -> int:
    import torch

    if not torch.cuda.is_available():
        raise LegoError("there is no GPU that PyTorch can use", hint="python -m bench launch host")
    failures, lines = 0, []
    for name in (*(f"sum{count}" for count in TENSORS), "gemm"):
        artifact = Artifact.load(options.folder / f"{name}.lego")
        tensors = _tensors(name)
        expected = _expected(name, tensors)
        calls, absent = _contenders(name, artifact, tensors)
        print(f"{name}: {len(tensors)} tensors")
        for who, why in absent.items():
            print(f"  {who}: {why}")
        right = {}
        for who, call in calls.items():
            tensors[-1].zero_()
            call()
            torch.cuda.synchronize()
            right[who] = bool(torch.allclose(tensors[-1].float(), expected, rtol=2e-2, atol=2e-2))
        failures += not all(right.values())
        loops = {who: _calls(call) for who, call in calls.items() if right[who]}
        if name != "gemm":  # whose parameters are tensor maps
            try:
                from bench.launch.driver_alone import loop_of

                loops[DRIVER] = loop_of(artifact, tensors)
                right[DRIVER] = True
            except ImportError as e:
                print(f"  {DRIVER}: llvmlite is not installed ({e})")
        times = _times(loops, options.rounds)
        for who in right:
            text = f"{statistics.median(times[who]):6.2f} µs" if right[who] else "WRONG"
            print(f"  {who:<20} {text}")
        device = torch.cuda.get_device_name()
        lines.append({"case": name, "device": device, "verified": right, "call_us": times})
    times = _times(_any_rows(Artifact.load(options.folder / f"{ANY_ROWS}.lego")), options.rounds)
    print(ANY_ROWS)
    for who, each in times.items():
        print(f"  {who:<38} {statistics.median(each):6.2f} µs")
    lines.append({"case": ANY_ROWS, "device": device, "verified": {}, "call_us": times})
    if options.output is not None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_whole(options.output, text.encode())
    return int(failures > 0)


def _tensors(name: str) -> list[Any]:
    """Return the tensors of a case, the result last."""
    import torch

    if name == "gemm":
        shape, dtype, count = (GEMM, GEMM), torch.float16, 3
    else:
        # Our kernel has the shape of its grid; the peers see the same memory.
        shape, dtype, count = (SIZE,), torch.float32, int(name.removeprefix("sum"))
    return [torch.randn(shape, device="cuda").to(dtype) for _ in range(count)]


def _expected(name: str, tensors: Sequence[Any]) -> Any:
    if name == "gemm":
        return tensors[0].float() @ tensors[1].float()
    return sum(tensors[1:-1], tensors[0]).float()


def _contenders(
    name: str, artifact: Artifact, tensors: Sequence[Any]
) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """Return the calls by name, and why peers are absent."""
    import torch

    from lego_mlir import runtime
    from lego_mlir.runtime import cuda

    shaped = [
        x if a.shape is None else x.view(a.shape)
        for x, a in zip(tensors, artifact.arguments, strict=True)
    ]
    stream = cuda.as_stream(torch.cuda.current_stream())
    bound = cuda.load(artifact).bind(*shaped)
    calls: dict[str, Callable[[], Any]] = {
        OURS: lambda: runtime.launch(artifact, *shaped),
        BOUND: lambda: bound(stream),
    }
    makers = (
        {"PyTorch": peers.torch_gemm}
        if name == "gemm"
        else {
            "PyTorch": peers.torch_sum,
            "Triton": peers.triton_sum,
            "CuTe DSL": peers.cute_sum,
        }
    )
    absent = {}
    try:
        from lego_mlir import tvm_ffi

        function = tvm_ffi.function(artifact)
        calls[TVM_FFI] = lambda: function(*shaped)
    except LegoError as e:
        absent[TVM_FFI] = e.message
    for who, make in makers.items():
        try:
            calls[who] = make(tensors)
        except Absent as e:
            absent[who] = str(e)
    return calls, absent


def _any_rows(artifact: Artifact) -> dict[str, Callable[[int], None]]:
    """Return loops of launches on the same rows, on new ones, and on ones that were seen before."""
    import torch

    from lego_mlir import runtime

    a, b, c = (torch.randn(n, GEMM, device="cuda").half() for n in (MOST_ROWS, GEMM, MOST_ROWS))
    every = [(a[:m], b, c[:m]) for m in range(1, MOST_ROWS + 1)]
    launches: dict[str, Callable[..., Any]] = {OURS: partial(runtime.launch, artifact)}
    try:
        from lego_mlir import tvm_ffi

        launches[TVM_FFI] = tvm_ffi.function(artifact)
    except LegoError as e:
        print(f"{TVM_FFI}: {e.message}")
    sets = {OLD: every[-1:], SEEN: every[-SEEN_ROWS:], NEW: every}
    loops = {}
    for (who, launch), (what, some) in product(launches.items(), sets.items()):
        for each in every:  # the first launches find kernels and memory
            launch(*each)
        loops[f"{who}, {what}"] = _calls_on(launch, some)
    return loops


def _calls_on(launch: Callable[..., Any], sets: Sequence[Sequence[Any]]) -> Callable[[int], None]:
    """Return a function that launches so many times, on one set of tensors after the other."""
    following = cycle(sets)

    def run(count: int) -> None:
        for tensors in islice(following, count):
            launch(*tensors)

    return run


def _calls(call: Callable[[], Any]) -> Callable[[int], None]:
    """Return a function that makes so many calls."""

    def run(count: int) -> None:
        for _ in range(count):
            call()

    return run


def _times(loops: Mapping[str, Callable[[int], None]], rounds: int) -> dict[str, list[float]]:
    """Return the host's microseconds of a launch in each round, the contenders interleaved."""
    import torch

    from lego_mlir.runtime.cuda.timing import interleave

    def measure(run: Callable[[int], None]) -> float:
        torch.cuda.synchronize()
        start = perf_counter()
        run(CALLS)
        elapsed = perf_counter() - start
        torch.cuda.synchronize()
        return elapsed / CALLS * 1e6

    return interleave({who: partial(measure, run) for who, run in loops.items()}, rounds)
