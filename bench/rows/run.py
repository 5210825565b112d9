"""`python -m bench rows run`: check and time the kernels of a folder on the GPU at hand."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.contenders.run import append
from bench.measure.comparison import one_line
from bench.measure.turns import Turns
from bench.rows.cases import CASES
from bench.rows.manifest import MANIFEST
from bench.rows.measure import measure, no_turns
from bench.rows.peers import peer
from bench.rows.tensors import tensors

_COMPILED = "torch.compile"


@dataclass(frozen=True)
class _Options:
    """What all cases of a run have in common.

    Attributes:
        folder: where the artifacts are.
        rounds: of measurements.
        peers: that take part.
        lock: the file by which several processes have turns; `None` for one process.
    """

    folder: Path
    rounds: int
    peers: Sequence[str]
    lock: Path | None = None


def run(
    folder: Path,
    only: Sequence[str],
    output: Path | None,
    rounds: int,
    peers: Sequence[str],
    processes: int = 1,
) -> int:
    """Measure the kernels; return the number that fail. Lines of JSON go to `output`.

    Args:
        folder: that `build` wrote.
        only: words that the names of cases contain; all cases if there are none.
        output: a file that lines are appended to, each as soon as it is known.
        rounds: of measurements.
        peers: names of `bench.rows.peers.PEERS`.
        processes: that load and check kernels at the same time, while none is timed; each takes
            about 12 GB of the GPU's memory. Before, one for each processor compiles PyTorch's
            kernels into a folder that all have in common.
    """
    manifest = json.loads((folder / MANIFEST).read_text())
    names = [n for n in manifest["cases"] if not only or any(word in n for word in only)]
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        options = _Options(folder, rounds, peers)
        if processes == 1:
            lines = map(partial(_result, options), names)
        else:
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", scratch)
            os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # as many processes compile
            options = _Options(folder, rounds, peers, Path(scratch) / "turns")
            if _COMPILED in peers:  # each takes a processor, and little of the GPU's memory
                with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as compiling:
                    list(compiling.map(_compile_peer, names))
            pool = ProcessPoolExecutor(processes, get_context("spawn"))
            lines = pool.map(partial(_result, options), names)
        for result in lines:
            result |= {"commit": manifest["commit"]}
            failures += "error" in result or bool(result["wrong"])
            shown = result.get("error") or f"{result['us']} {result['wrong'] or ''}"
            print(f"{result['case']:<36} {shown} {result.get('absent', '')}", flush=True)
            if output is not None:
                append(output, result)
    return failures


def _result(options: _Options, name: str) -> dict[str, Any]:
    """Return the line of results of a case; an error has the field `error`."""
    import torch

    made = json.loads((options.folder / MANIFEST).read_text())["cases"][name]
    files = {word: options.folder / file for word, file in made["files"].items()}
    case = next(case for case in CASES if case.name == name)
    turn = Turns(options.lock).turn if options.lock else no_turns
    try:
        found = measure(case, files, options.rounds, options.peers, torch, turn)
    except Exception as e:  # the others are measured nevertheless
        found = {"case": name, "error": one_line(e)}
    torch.cuda.empty_cache()
    return found | {key: made[key] for key in ("how", "traffic") if key in made}


def _compile_peer(name: str) -> None:
    """Let PyTorch compile its kernels of a case into the folder where it keeps them."""
    import torch

    case = next(case for case in CASES if case.name == name)
    try:
        generator = torch.Generator("cuda").manual_seed(0)
        peer(_COMPILED, case, torch)(tensors(case, torch, generator))()
        torch.cuda.synchronize()
    except Exception as e:  # it is absent, then
        print(f"{name}: {_COMPILED}: {one_line(e)}", flush=True)
    torch.cuda.empty_cache()
