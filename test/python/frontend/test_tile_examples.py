"""Each step that compiles the examples on tiles leaves what they compute."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from lego_mlir.compiler import tile_stages
from lego_mlir.frontend.host.host_function import HostFunction

EXAMPLES = sorted(Path(__file__).parents[3].joinpath("docs/examples/tiles").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_step_leaves_what_an_example_computes(path: Path) -> None:
    names = runpy.run_path(str(path))
    kernels = [value for value in names.values() if isinstance(value, HostFunction)]
    assert kernels
    for kernel in kernels:
        # Integers are indices, and sizes may be the launch's: the example knows which there are.
        given = [names.get(name) for name in kernel.parameters()]
        arrays = [
            x
            if isinstance(x, np.ndarray) and (x.dtype.kind == "i" or kernel.run_time_sizes)
            else None
            for x in given
        ]
        lines = kernel.check_each_step(*arrays, orders=("random",))
        assert len(lines) == len(tile_stages.PLACING) + 1 + bool(kernel.schedule)
