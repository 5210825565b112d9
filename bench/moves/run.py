"""`python -m bench moves run`: check and time the movements of a folder on the GPU at hand.

Inputs are new random bits for each case, outputs and the gaps between tensors are poisoned, and
every byte is compared with what PyTorch writes. Launches rotate through sets of tensors that are
larger than the L2 cache. The graph that is checked is the one that is timed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.case import COPIES
from bench.contenders.run import append
from bench.measure.comparison import one_line
from bench.measure.device_memory import POISONS, stride_of
from bench.measure.driver import call as driver_call
from bench.measure.driver import driver
from bench.moves.case import COMPILED, EAGER, MANIFEST, MoveCase, Tensor
from bench.moves.cases import cases as all_cases
from bench.moves.permutations import case_of_name
from bench.peers.base import Setup
from bench.peers.copies import copy_kernel
from bench.peers.torch_eager import TYPES
from lego_mlir.artifact import Artifact
from lego_mlir.runtime import cuda as runtime
from lego_mlir.runtime.cuda.timing import Call, Graph, interleave

_PAST_L2 = 240 << 20
"""Bytes that the launches of a graph touch at least."""

_LEAST_SETS = 3
"""Sets of tensors at least: with one, a priority in the L2 cache would keep part of it there."""


def run(
    folder: Path, only: Sequence[str], output: Path | None, rounds: int, compiled: int = 0
) -> int:
    """Measure the cases; return the number that fail. Lines of JSON go to `output`.

    Args:
        folder: where the kernels are.
        only: words that the names of the cases contain; all cases if there are none.
        output: a file that lines are appended to.
        rounds: of measurements.
        compiled: so many cases are also measured beside `torch.compile`.
    """
    import cuda.core
    import torch

    torch.cuda.init()
    device = cuda.core.Device()
    device.set_current()
    machine = _Machine(torch, device, device.create_stream(), folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    known = {case.name: case for case in all_cases(manifest["seed"])}
    counts = manifest.get("traffic", {})
    failures = number = 0
    for name, files in manifest["cases"].items():
        if only and not any(word in name for word in only):
            continue
        number += 1
        case = known.get(name) or case_of_name(name)
        assert case is not None, f"{MANIFEST} has a case of another commit: {name}"
        paths = {who: folder / file for who, file in files.items()}
        try:
            result = _measured(case, paths, rounds, machine, compiled=number <= compiled)
        except Exception as e:  # the others are measured nevertheless
            result = {"case": name, "error": one_line(e)}
        result["commit"] = manifest["commit"]
        if name in counts:
            result["traffic"] = counts[name]
        failures += "error" in result or bool(result.get("wrong"))
        shown = result.get("error") or f"{result['us']} {result['wrong'] or ''}"
        print(f"{name:<48} {shown}", flush=True)
        if output is not None:
            append(output, result)
    return failures


@dataclass(frozen=True, slots=True)
class _Machine:
    """PyTorch, cuda-core's device and stream, and a folder for what is compiled."""

    torch: Any
    device: Any
    stream: Any
    scratch: Path


@dataclass(frozen=True)
class _Sets:
    """The tensors of a case in device memory, several times.

    Attributes:
        sources: bytes of the inputs, a row for each set.
        targets: bytes of the outputs, with gaps behind each; rows are as long as those of sources.
        inputs: of each set.
        outputs: of each set.
    """

    sources: Any
    targets: Any
    inputs: list[list[Any]]
    outputs: list[list[Any]]

    @staticmethod
    def of(case: MoveCase, torch: Any) -> _Sets:
        """Allocate the sets, with random inputs."""
        half = stride_of(case.moved // 2)  # what a copy of the same bytes reads
        sizes = [sum(stride_of(t.size) for t in part) for part in (case.inputs, case.outputs)]
        count = max(_LEAST_SETS, -(-_PAST_L2 // case.moved))
        shape = (count, max(half, *sizes))
        sources, targets = (torch.empty(shape, dtype=torch.uint8, device="cuda") for _ in range(2))
        sources.view(torch.int64).random_()
        inputs = [_tensors(case.inputs, row, torch) for row in sources]
        for tensors in inputs:
            for x, tensor in zip(tensors, case.inputs, strict=True):
                if tensor.below:
                    x.random_(0, tensor.below)
                elif case.casts:
                    x.normal_()
        return _Sets(sources, targets, inputs, [_tensors(case.outputs, t, torch) for t in targets])


def _tensors(tensors: Sequence[Tensor], memory: Any, torch: Any) -> list[Any]:
    """Return tensors that lie behind one another in a row of bytes."""
    found, start = [], 0
    for tensor in tensors:
        part = memory[start : start + tensor.size]
        found.append(part.view(getattr(torch, TYPES[tensor.dtype])).view(tensor.shape))
        start += stride_of(tensor.size)
    return found


def _measured(
    case: MoveCase, files: dict[str, Path], rounds: int, machine: _Machine, *, compiled: bool
) -> dict[str, Any]:
    torch, handle = machine.torch, int(machine.stream.handle)
    sets = _Sets.of(case, torch)
    count = len(sets.inputs)
    wrong: dict[str, str] = {}
    absent: dict[str, str] = {}
    graphs: dict[str, Graph] = {}
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
        expected = sets.targets.fill_(POISONS[0]).clone()
        for inputs, row in zip(sets.inputs, expected, strict=True):
            case.by_torch(torch, inputs, _tensors(case.outputs, row, torch))
        for name, make in _contenders(case, sets, files, machine, compiled=compiled).items():
            try:
                call = make()
                call(0)
                torch.cuda.synchronize()
                graphs[name] = Graph.capture(handle, call, count, max(count, 2))
            except Exception as e:
                absent[name] = one_line(e)
                continue
            if name not in COPIES:
                sets.targets.fill_(POISONS[0])
                graphs[name].replay()
                if not torch.equal(sets.targets, expected):
                    wrong[name] = f"{int((sets.targets != expected).sum())} bytes differ"
        times = interleave({name: graph.microseconds for name, graph in graphs.items()}, rounds)
    for graph in graphs.values():
        graph.destroy()
    return {
        "case": case.name,
        "device": torch.cuda.get_device_name(),
        "bytes": case.moved,
        "sets": count,
        "us": {name: round(statistics.median(each), 3) for name, each in times.items()},
        "rounds": times,
        "wrong": wrong,
        "absent": absent,
    }


def _contenders(
    case: MoveCase,
    sets: _Sets,
    files: dict[str, Path],
    machine: _Machine,
    *,
    compiled: bool,
) -> dict[str, Callable[[], Call]]:
    """Return what makes the call of each contender, which takes the number of a set."""
    torch, stream = machine.torch, machine.stream

    def ours(file: Path) -> Call:
        loaded = runtime.load(Artifact.load(file))
        pairs = zip(sets.inputs, sets.outputs, strict=True)
        bound = [loaded.bind(*i, *o) for i, o in pairs]
        return lambda k: bound[k](stream)

    def by_torch(function: Any) -> Call:
        return lambda k: function(torch, sets.inputs[k], sets.outputs[k])

    def memcpy() -> Call:
        copy = driver().cuMemcpyDtoDAsync

        def launch(k: int) -> None:
            target, source = sets.targets[k].data_ptr(), sets.sources[k].data_ptr()
            driver_call(copy, target, source, case.moved // 2, int(stream.handle))

        return launch

    def nvcc_copy() -> Call:
        base = sets.sources.data_ptr(), sets.targets.data_ptr()
        data = SimpleNamespace(
            inputs=base[0], outputs=base[1], stride=sets.sources.stride(0), size=case.moved // 2
        )
        return copy_kernel(Setup(data, "i8", machine.device, stream, torch, machine.scratch))

    found: dict[str, Callable[[], Call]] = {}
    seen: dict[Path, str] = {}
    for name, file in files.items():
        if file not in seen:  # a variant that our choice is, is timed once
            seen[file] = name
            found[name] = lambda file=file: ours(file)
    found |= {"memcpy": memcpy, "copy kernel": nvcc_copy}
    found[EAGER] = lambda: by_torch(case.by_torch)
    if compiled:
        torch.compiler.reset()
        found[COMPILED] = lambda: by_torch(torch.compile(case.by_torch, dynamic=False))
    return found
