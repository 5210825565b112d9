"""The Python of our launches alone: on tensors in host memory, with the driver's calls left out."""

from __future__ import annotations

import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from time import process_time
from types import SimpleNamespace
from typing import Any

from lego_mlir.artifact import Argument, Artifact, KernelLaunch, TensorMapParameter
from lego_mlir.runtime.binding import RepeatedLaunches
from lego_mlir.runtime.cuda.tensor_launch import TensorLauncher

_CALLS, _REPEATS = 5000, 9
_SETS = 300
"""Sets of tensors whose addresses a launcher does not remember all."""


def measure() -> dict[str, float]:
    """Return microseconds of a launch, the least of several rounds, by what is launched."""
    from cuda.bindings import driver

    success = (driver.CUresult.CUDA_SUCCESS,)
    encoded = (*success, SimpleNamespace(opaque=range(16)))
    found = {}
    with (
        _replaced(driver, "cuLaunchKernelEx", lambda *_: success),
        _replaced(driver, "cuTensorMapEncodeTiled", lambda *_: encoded),
    ):
        for count in (3, 8):
            for has_maps in (False, True):
                what = f"{count} tensors" + (", by tensor maps" if has_maps else "")
                launcher, sets = _launcher(count, has_maps)
                repeated = RepeatedLaunches()
                repeated._launchers = (launcher,)
                tensors = sets[0]
                found[what] = _least(partial(repeated.launch, tensors, None), _CALLS)
                following = map(launcher, cycle(sets))
                found[f"{what}, new addresses"] = _least(partial(next, following), _SETS)
    return found


@contextmanager
def _replaced(module: Any, name: str, function: Any) -> Iterator[None]:
    """Replace a function of a module; Python's own mock would take longer than a launch."""
    before = getattr(module, name)
    setattr(module, name, function)
    try:
        yield
    finally:
        setattr(module, name, before)


def _least(call: Any, number: int) -> float:
    times = timeit.repeat(call, number=number, repeat=_REPEATS, timer=process_time)
    return min(times) / number * 1e6


def _launcher(count: int, has_maps: bool) -> tuple[TensorLauncher, list[tuple[Any, ...]]]:
    """Return a launcher, and sets of tensors that it takes."""
    import torch

    arguments = tuple(
        Argument(
            f"x{i}", "f16", (64, 64), access="read" if i < count - 1 else "write", alignment=16
        )
        for i in range(count)
    )
    maps = tuple(TensorMapParameter(i, (64, 64), (128,), (64, 64), 128) for i in range(count))
    parameters = maps if has_maps else tuple(range(count))
    launch = KernelLaunch("k", (1, 1, 1), (128, 1, 1), parameters)
    artifact = Artifact("k", "sm_90a", arguments, (launch,), "")
    sizes = (128 if has_maps else 8,) * count
    loaded: Any = SimpleNamespace(
        artifact=artifact,
        device=SimpleNamespace(device_id=0),
        kernels=((SimpleNamespace(handle=1), None, sizes),),
        workspaces=None,
    )
    sets = [
        tuple(torch.zeros(64, 64, dtype=torch.float16) for _ in range(count)) for _ in range(_SETS)
    ]
    return TensorLauncher(loaded, sets[0], lambda: 1), sets
