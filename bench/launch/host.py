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

from lego_mlir.artifact import (
    Argument,
    Artifact,
    Computed,
    Fact,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
)
from lego_mlir.artifact.model import Grid
from lego_mlir.runtime.binding import RepeatedLaunches
from lego_mlir.runtime.cuda.tensor_launch import TensorLauncher

_CALLS, _REPEATS = 5000, 9
_SETS = 1500
"""Sets of tensors whose addresses a launcher does not remember all."""


def measure() -> dict[str, float]:
    """Return microseconds of a launch, the least of several rounds, by what is launched."""
    from cuda.bindings import driver

    success = (driver.CUresult.CUDA_SUCCESS,)
    encoded = (*success, driver.CUtensorMap())
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
                repeated._launchers = {(): (launcher,)}
                tensors = sets[0]
                found[what] = _least(partial(repeated.launch, tensors, None), _CALLS)
                following = map(launcher, cycle(sets))
                found[f"{what}, new addresses"] = _least(partial(next, following), _SETS)
                launcher, sets = _launcher(count, has_maps, rows=None)
                what = f"{what}, run-time sizes"
                found[what] = _least(partial(launcher, sets[0]), _CALLS)
                following = map(launcher, cycle(sets))
                found[f"{what}, new ones"] = _least(partial(next, following), _SETS)
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


def _launcher(
    count: int, has_maps: bool, rows: int | None = 64
) -> tuple[TensorLauncher, list[tuple[Any, ...]]]:
    """Return a launcher, and sets of tensors that it takes, of run-time rows where they are None.

    Of the tensors with run-time sizes one has fixed sizes, as the weights of a GEMM have.
    """
    import torch

    is_open = [rows is None and i != 1 for i in range(count)]
    arguments = tuple(
        Argument(
            f"x{i}",
            "f16",
            (None if is_open[i] else 64, 64),
            access="read" if i < count - 1 else "write",
            alignment=16,
        )
        for i in range(count)
    )
    maps = tuple(
        TensorMapParameter(i, (64, f"a{i}.d0" if is_open[i] else 64), (128,), (64, 64), 128)
        for i in range(count)
    )
    parameters: tuple[Parameter, ...] = maps if has_maps else tuple(range(count))
    sizes = (128 if has_maps else 8,) * count
    grid: Grid = (1, 1, 1)
    facts: tuple[Fact, ...] = ()
    if rows is None:
        parameters += (Computed("i32", "a0.d0"),)
        sizes += (4,)
        grid = ("a0.d0 63 + 64 //", 1, 1)
        facts = tuple(
            Fact(f"a{i}.d0 a0.d0 ==", f"a{i}.d0", "not M") for i in range(1, count) if is_open[i]
        )
    launch = KernelLaunch("k", grid, (128, 1, 1), parameters)
    artifact = Artifact("k", "sm_90a", arguments, (launch,), "", facts=facts)
    loaded: Any = SimpleNamespace(
        artifact=artifact,
        device=SimpleNamespace(device_id=0),
        kernels=((SimpleNamespace(handle=1), None, sizes),),
        workspaces=None,
    )
    sets = [
        tuple(torch.zeros(n if has else 64, 64, dtype=torch.float16) for has in is_open)
        for n in range(1, _SETS + 1)
    ]
    return TensorLauncher(loaded, sets[0], lambda: 1), sets
