"""PyTorch's compiler: the kernel that Inductor generates by Triton for the case's shapes."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from bench.measure.timing import Call
from bench.peers.base import Absent, Setup
from bench.peers.torch_eager import tensors
from bench.permute.reference import permute_dims


def prepare(setup: Setup) -> Call:
    """Return a call of the compiled function, which writes to the output in place."""
    pairs, axes, torch = tensors(setup), setup.data.reference.axes, setup.torch
    if torch is None or find_spec("triton") is None:
        raise Absent("Triton is not installed")
    # Only one kernel is compiled here, and a pool of processes takes seconds to start.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch.compiler.reset()

    def movement(x: Any, y: Any) -> None:
        y.copy_(permute_dims(x, axes))

    compiled = torch.compile(movement, dynamic=False)

    def launch(k: int) -> None:
        compiled(*pairs[k])

    return launch
