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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lego_mlir.artifact import Argument, Artifact, KernelLaunch, TensorMapParameter, Workspace
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes, parameters, torch_tensors
from lego_mlir.runtime.compatibility import check_alignment
from lego_mlir.runtime.cuda import cuda_core
from lego_mlir.runtime.cuda.direct import DirectLaunch, StreamConfigs, encoded
from lego_mlir.runtime.cuda.failures import NO_CONTEXT, launch_error, running
from lego_mlir.runtime.cuda.loaded import LoadedArtifact, handle_of
from lego_mlir.runtime.extents import Extents, Known, fixed_extents
from lego_mlir.runtime.facts import check_facts
from lego_mlir.runtime.fitting import fitted_extents
from lego_mlir.runtime.overlap import check_overlap
from lego_mlir.runtime.sized import is_empty, sized
from lego_mlir.runtime.workspaces import Allocation, Needs

_MOST_BOUND = 256
"""Combinations of addresses and numbers whose launches are kept."""

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
        self._launches = tuple((handle_of(kernel), sizes) for kernel, _, sizes in loaded.kernels)
        self._bound: dict[tuple[Any, ...], _Bound | None] = {}
        self._configs: dict[KernelLaunch, StreamConfigs] = {}
        self._maps: dict[tuple[TensorMapParameter, int], Any] = {}

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
            bound = self._bind(arrays)
            _put(self._bound, known, bound)
            if bound is None:
                return False
        pool = self._loaded.workspaces
        if pool is None:
            launches = bound.launches.get(None)
            if launches is None:
                launches = self._made(bound, None)
            return self._launch(launches, current)
        memory = pool.of_stream(cuda_core.as_stream(current), bound.needs)
        launches = bound.launches.get(memory.place)
        if launches is None:
            launches = self._made(bound, memory)
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

    def _bind(self, arrays: Sequence[Any]) -> _Bound | None:
        """Check tensors and numbers, and compute what depends on them; None if they do not fit."""
        artifact = self._loaded.artifact
        values: list[Any] = []
        extents: list[Extents | None] = []
        try:
            for position, (argument, array) in enumerate(
                zip(artifact.arguments, arrays, strict=True)
            ):
                if argument.shape is None:
                    values.append(dtypes.scalar(argument.dtype, array))
                    extents.append(None)
                    continue
                values.append(array.data_ptr())
                check_alignment(argument, values[-1])
                seen = Extents(tuple(array.shape), tuple(array.stride()))
                fixed = fixed_extents(argument)  # and the array is like one that was launched on
                extents.append(fixed or fitted_extents(seen, argument, position))
            addresses = [None if isinstance(v, np.generic) else v for v in values]
            check_overlap(artifact, addresses, extents)
            known = Known.of(values, extents)
            check_facts(artifact, known)
            artifact = sized(artifact, known)
        except LegoError:
            return None
        return _Bound(artifact, values, Needs.of(artifact.workspaces))

    def _made(self, bound: _Bound, memory: Allocation | None) -> tuple[DirectLaunch, ...]:
        """Lay out the parameters of launches, with workspaces in a memory."""
        artifact = bound.artifact
        addresses = () if memory is None else memory.addresses(bound.needs)
        workspaces = tuple(zip(artifact.workspaces, addresses, strict=True))
        made = tuple(
            DirectLaunch(
                self._configs_of(launch),
                kernel,
                parameters.resolve(
                    launch, artifact.arguments, bound.values, sizes, self._encoded, workspaces
                ),
            )
            for launch, (kernel, sizes) in zip(artifact.launches, self._launches, strict=True)
            if not is_empty(launch)
        )
        _put(bound.launches, None if memory is None else memory.place, made)
        return made

    def _configs_of(self, launch: KernelLaunch) -> StreamConfigs:
        key = replace(launch, parameters=())
        if key not in self._configs:
            _put(self._configs, key, StreamConfigs(launch))
        return self._configs[key]

    def _encoded(
        self, found: TensorMapParameter, argument: Argument | Workspace, address: int
    ) -> Any:
        """Return a tensor map, encoded once for each address and size."""
        key = found, address
        if key not in self._maps:
            _put(self._maps, key, encoded(found, argument, address))
        return self._maps[key]


@dataclass(slots=True)
class _Bound:
    """Tensors and numbers that were checked.

    Attributes:
        artifact: with the sizes of the launch.
        values: addresses and NumPy scalars, by position.
        needs: of the workspaces.
        launches: by the place of the workspaces' memory; None without any.
    """

    artifact: Artifact
    values: Sequence[Any]
    needs: Needs
    launches: dict[tuple[int, int] | None, tuple[DirectLaunch, ...]] = field(default_factory=dict)


def _kind(tensor: Any, has_fixed_sizes: bool) -> tuple[Any, ...]:
    """Return what a tensor must have in common with another one to stand in its place."""
    strides = tuple(tensor.stride())
    # Only views of complex numbers, all of whose strides are even, have elements that are negated
    # when they are read.
    may_be_negated = not has_fixed_sizes or not any(stride % 2 for stride in strides)
    shape = tuple(tensor.shape) if has_fixed_sizes else None
    return type(tensor), tensor.dtype, shape, strides, tensor.device, may_be_negated


def _put(cache: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry; a full cache begins anew."""
    if len(cache) >= _MOST_BOUND:
        cache.clear()
    cache[key] = value


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
