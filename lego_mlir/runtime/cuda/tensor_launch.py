"""Launches on PyTorch tensors, made again: what the first launch found out is not done anew.

The first launch on tensors of some shapes, strides and types takes the general road, with all its
checks and errors. A `TensorLauncher` remembers what it launched on. It launches on other tensors of
the same kinds, of any sizes where the launch decides them, and declines everything else, for which
the general road is taken again.

What depends on addresses, sizes and numbers (alignment, overlap, facts, tensor maps, the memory of
the parameters) is done once for each combination of them, and kept for the next time.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from lego_mlir.runtime import torch_tensors
from lego_mlir.runtime.cuda import cuda_core
from lego_mlir.runtime.cuda.direct import DirectLaunch
from lego_mlir.runtime.cuda.failures import NO_CONTEXT, launch_error, running
from lego_mlir.runtime.cuda.launch_plan import Bound, LaunchPlan
from lego_mlir.runtime.cuda.loaded import LoadedArtifact
from lego_mlir.runtime.cuda.planned_launch import put
from lego_mlir.runtime.launch_sizes.extents import fixed_extents

_bits_of = struct.Struct("<d").pack


class TensorLauncher:
    """Launches a loaded artifact on tensors of the kinds of `arrays`.

    Args:
        loaded: the artifact.
        arrays: PyTorch tensors of its device, and numbers, on which it was launched already.
        device: of the tensors, as PyTorch has it.
        current_stream: returns the handle of PyTorch's current stream.
        current_gpu: returns PyTorch's current device; `None` if there is only one.
    """

    def __init__(
        self,
        loaded: LoadedArtifact,
        arrays: Sequence[Any],
        current_stream: Callable[[], int],
        current_gpu: Callable[[], int] | None = None,
    ) -> None:
        self._loaded = loaded
        arguments = loaded.artifact.arguments
        self._kinds = tuple(
            None if argument.shape is None else _kind(x, fixed_extents(argument) is not None)
            for argument, x in zip(arguments, arrays, strict=True)
        )
        self._index = int(loaded.device.device_id)
        self._current_stream = current_stream
        self._current_gpu = current_gpu
        self._plan = LaunchPlan(loaded)
        self._bound: OrderedDict[tuple[Any, ...], Bound | None] = OrderedDict()

    def __call__(self, arrays: Sequence[Any], stream: Any = None) -> bool:
        """Launch on arrays, if they are of the remembered kinds; does not wait for the end.

        Args:
            arrays: one for each argument.
            stream: PyTorch's current stream, by default and as an object or a handle.

        Returns:
            Whether it was launched; otherwise nothing was done, and the general road says why.

        Raises:
            LegoError: the driver refuses a tensor map or the launch.
        """
        # Each of these lines costs a tenth of a microsecond, those of the loop for every tensor.
        kinds = self._kinds
        if len(arrays) != len(kinds):
            return False
        key: list[Any] = []
        for array, kind in zip(arrays, kinds):  # noqa: B905, as many
            if kind is not None:
                of, dtype, shape, strides, device, may_be_negated = kind
                if (
                    type(array) is not of
                    or array.dtype is not dtype
                    or array.device != device
                    or (may_be_negated and array.is_neg())
                ):
                    return False
                if shape is None:  # any that the argument takes
                    key += array.shape, array.stride()
                elif array.shape != shape or array.stride() != strides:
                    return False
                key.append(array.data_ptr())
            elif type(array) is int:
                key.append(array)
            elif type(array) is float:
                key.append(_bits_of(array))  # 0.0 and -0.0 are equal, and so are 1.0 and 1
            else:
                return False
        current = self._current_stream()
        if stream is not None and _handle(stream) != current:
            return False  # the stream must wait for the work on the current one
        if self._current_gpu is not None and self._current_gpu() != self._index:
            return False
        known = tuple(key)
        bound = self._bound.get(known)
        if bound is None:
            if known in self._bound:
                return False
            bound = self._plan.bind(known, arrays)
            put(self._bound, known, bound)
            if bound is None:
                return False
        pool = self._loaded.workspaces
        if pool is None:
            launches = bound.launches.get(None)
            if launches is None:
                launches = self._plan.launches(bound, None)
            return self._launch(launches, current)
        memory = pool.of_stream(cuda_core.as_stream(current), bound.needs)
        launches = bound.launches.get(memory.key)
        if launches is None:
            launches = self._plan.launches(bound, memory)
        with pool.lock:
            return self._launch(launches, current)

    def _launch(self, bound: tuple[DirectLaunch, ...], stream: int) -> bool:
        """Launch on a stream; return False if this thread has no context, and nothing was done."""
        try:
            for call in bound:
                call(stream)
        except RuntimeError as e:
            if call is bound[0] and str(e) in NO_CONTEXT:
                return False  # the general road makes one current
            artifact = self._loaded.artifact
            raise launch_error(running(artifact.launches), e, checked=artifact.checked) from None
        return True


def _kind(tensor: Any, has_fixed_sizes: bool) -> tuple[Any, ...]:
    """Return what a tensor must have in common with another one to stand in its place."""
    strides = tuple(tensor.stride())
    # Only views of complex numbers, all of whose strides are even, have elements that are negated
    # when they are read.
    may_be_negated = not has_fixed_sizes or not any(stride % 2 for stride in strides)
    shape = tuple(tensor.shape) if has_fixed_sizes else None
    return type(tensor), tensor.dtype, shape, strides, tensor.device, may_be_negated


def _handle(stream: Any) -> int:
    """Return the handle of a stream, 1 for the legacy default stream; -1 if it is unknown."""
    handle = getattr(stream, "cuda_stream", stream)
    return (handle or cuda_core.LEGACY_DEFAULT) if type(handle) is int else -1


def learned(loaded: LoadedArtifact, arrays: Sequence[Any], index: int) -> TensorLauncher:
    """Return a launcher for tensors on a CUDA device like those that were launched on.

    Args:
        loaded: the artifact.
        arrays: what it was launched on.
        index: of the device.
    """
    stream, gpu = torch_tensors.current_stream_of(index), torch_tensors.current_gpu()
    return TensorLauncher(loaded, arrays, stream, gpu)
