"""Bind the arrays of an in-place launch to the arguments of an artifact, without copying them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes, torch_tensors, views
from lego_mlir.runtime.device import Device, chosen
from lego_mlir.runtime.launch_sizes.extents import Extents
from lego_mlir.runtime.launch_sizes.fitting import fitted
from lego_mlir.runtime.overlap import check_overlap

if TYPE_CHECKING:
    from lego_mlir.runtime.cuda.tensor_launch import TensorLauncher


class RepeatedLaunches:
    """Remembers launches on PyTorch tensors of a GPU, so that the next one costs little.

    It belongs to one host function, or to one artifact.

    Args:
        choose: returns what says which code a host function has for arrays, `None` for arrays that
            have to take the general road; by default all arrays have the same code.
    """

    __slots__ = ("_choose", "_launchers")

    def __init__(self, choose: Callable[[Sequence[Any]], Hashable] | None = None) -> None:
        self._choose: Callable[[Sequence[Any]], Hashable] = choose or (lambda arrays: ())
        self._launchers: dict[Hashable, tuple[TensorLauncher, ...]] = {}

    def launch(self, arrays: Sequence[Any], stream: Any) -> bool:
        """Launch on arrays if it was done on such before; return whether it was launched.

        Raises:
            LegoError: the launch fails.
        """
        known = self._launchers.get(self._choose(arrays), ())
        for launcher in known:  # noqa: SIM110, `any` of a generator costs more
            if launcher(arrays, stream):
                return True
        return False

    def learn(self, artifact: Artifact, arrays: Sequence[Any], gpu: int) -> None:
        """Remember what an artifact was launched on.

        Args:
            artifact: the artifact, which was launched.
            arrays: PyTorch tensors on a CUDA device, and numbers.
            gpu: the index of the device.
        """
        from lego_mlir.runtime.cuda.loaded import load
        from lego_mlir.runtime.cuda.tensor_launch import learned

        key = self._choose(arrays)
        if key is not None:
            latest = learned(load(artifact, gpu), arrays, gpu)
            self._launchers[key] = (latest, *self._launchers.get(key, ())[: _MOST_KINDS - 1])


_MOST_KINDS = 4
"""Kinds of tensors that a `RepeatedLaunches` remembers for the same code."""


def launch_on(
    arrays: Sequence[Any],
    device: str | Device,
    stream: Any,
    compiled_for: Callable[[Device], Artifact],
    repeated: RepeatedLaunches | None = None,
) -> None:
    """Choose a device for `arrays`, bind them, and launch the artifact for that device in place.

    PyTorch tensors on a GPU are launched on PyTorch's current stream if none is given, and not
    waited for, unless the kernels check indices.

    Args:
        arrays: one for each argument, in order; numbers for scalars.
        device: `auto` is `cuda` if an array lives there.
        stream: a CUDA stream to use, or `None`.
        compiled_for: returns the artifact for the chosen device.
        repeated: remembers the launch.

    Raises:
        LegoError: an array does not fit its argument, or the launch fails.
    """
    homes = [views.gpu_of(array) for array in arrays]
    is_on_gpu = [home is not None for home in homes]
    where = chosen(device, on_gpu=any(is_on_gpu))
    artifact = compiled_for(where)
    check_count(artifact, arrays)
    if any(is_on_gpu) and where.name != "sim":  # which takes none of them
        _check_together(artifact, arrays, is_on_gpu)
    kept = []  # views of host arrays of other libraries
    values: list[Any] = []
    addresses: list[int | None] = []
    extents: list[Extents | None] = []
    each = zip(artifact.arguments, arrays, is_on_gpu, strict=True)
    for position, (argument, array, on_gpu) in enumerate(each):
        addresses.append(None)
        extents.append(None)
        if argument.shape is None:
            values.append(dtypes.scalar_argument(argument, array))
        elif on_gpu:
            values.append(array)
        else:
            is_numpy = isinstance(array, np.ndarray)
            seen = views.of_numpy(array) if is_numpy else views.view(array, argument.name)
            found = extents[-1] = fitted(seen, argument, position)
            kept.append(seen)
            addresses[-1] = seen.pointer
            dtype = dtypes.numpy_dtype(argument.dtype)
            values.append(views.as_numpy(seen, dtype, found.shape, found.strides))
    check_overlap(artifact, addresses, extents)
    gpu = _gpu_of_tensors(artifact, arrays)
    if gpu is None or artifact.checked:
        where.run(artifact, values, stream)
        return
    where.run(
        artifact, values, torch_tensors.current_stream_of(gpu)() if stream is None else stream
    )
    if repeated is not None:
        repeated.learn(artifact, arrays, gpu)


def _gpu_of_tensors(artifact: Artifact, arrays: Sequence[Any]) -> int | None:
    """Return the CUDA device if all that is passed for tensors are PyTorch's on one."""
    described = zip(artifact.arguments, arrays, strict=True)
    tensors = [array for argument, array in described if argument.shape is not None]
    return torch_tensors.common_gpu(tensors) if tensors else None


def _check_together(artifact: Artifact, arrays: Sequence[Any], is_on_gpu: Sequence[bool]) -> None:
    """Check that arrays on a GPU do not stand beside arrays in host memory.

    Raises:
        LegoError: they do; names the arguments.
    """
    there: list[str] = []
    here: list[str] = []
    for argument, array, on_gpu in zip(artifact.arguments, arrays, is_on_gpu, strict=True):
        if argument.shape is not None and (on_gpu or hasattr(array, "__dlpack__")):
            (there if on_gpu else here).append(f"'{argument.name}'")
    if here and there:
        raise LegoError(
            f"the arrays of '{artifact.name}' for {', '.join(there)} live on a GPU, those for "
            f"{', '.join(here)} in host memory",
            hint="move them to one of the two: in PyTorch x.cuda() or x.cpu()",
        )


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
