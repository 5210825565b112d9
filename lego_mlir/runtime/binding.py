"""Bind the arrays of an in-place launch to the arguments of an artifact, without copying them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes, views
from lego_mlir.runtime.device import Device, select
from lego_mlir.runtime.overlap import check_overlap


def launch_on(
    arrays: Sequence[Any],
    device: str | Device,
    stream: Any,
    compiled_for: Callable[[Device], Artifact],
) -> None:
    """Choose a device for `arrays`, bind them, and launch the artifact for that device in place.

    Args:
        arrays: one for each argument, in order; numbers for scalars.
        device: `auto` is `cuda` if an array lives there.
        stream: a CUDA stream to use, or `None`.
        compiled_for: returns the artifact for the chosen device.

    Raises:
        LegoError: an array does not fit its argument, or the launch fails.
    """
    is_on_gpu = [views.gpu_of(array) is not None for array in arrays]
    chosen = select(device, on_gpu=any(is_on_gpu)) if isinstance(device, str) else device
    artifact = compiled_for(chosen)
    check_count(artifact, arrays)
    kept = []  # views of host arrays of other libraries
    values: list[Any] = []
    addresses: list[int | None] = []
    for argument, array, on_gpu in zip(artifact.arguments, arrays, is_on_gpu, strict=True):
        addresses.append(None)
        if argument.shape is None:
            values.append(dtypes.scalar(argument.dtype, array))
        elif on_gpu:
            values.append(array)
        else:
            is_numpy = isinstance(array, np.ndarray)
            seen = views.of_numpy(array) if is_numpy else views.view(array, argument.name)
            views.check(seen, argument)
            kept.append(seen)
            addresses[-1] = seen.pointer
            dtype = dtypes.numpy_dtype(argument.dtype)
            values.append(views.as_numpy(seen, dtype, argument.shape))
    check_overlap(artifact, addresses)
    chosen.run(artifact, values, stream)


def check_count(artifact: Artifact, arrays: Sequence[Any]) -> None:
    """Check that there is one array or number for each argument.

    Raises:
        LegoError: there are more or fewer.
    """
    expected = artifact.arguments
    if len(arrays) != len(expected):
        raise LegoError(
            f"'{artifact.name}' takes {len(expected)} arguments, {len(arrays)} are given",
            hint=f"they are {', '.join(a.name for a in expected)}",
        )
