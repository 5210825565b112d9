"""PyTorch's compiler: the kernel that Inductor makes, by Triton, for these very shapes."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from bench.movement import permuted
from bench.peers.base import Absent, Setup
from bench.peers.torch_eager import tensors
from bench.timing import Call


def prepare(setup: Setup) -> Call:
    """A call of the compiled function; it writes to the output in place."""
    pairs, axes, torch = tensors(setup), setup.data.reference.axes, setup.torch
    if torch is None or find_spec("triton") is None:
        raise Absent("Triton is not installed")
    # One kernel is compiled here: a pool of processes for that takes seconds to start.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch.compiler.reset()

    def movement(x: Any, y: Any) -> None:
        y.copy_(permuted(x, axes))

    compiled = torch.compile(movement, dynamic=False)

    def launch(k: int) -> None:
        compiled(*pairs[k])

    return launch
