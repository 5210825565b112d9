"""A CUDA device, as `select` returns it: it runs artifacts on arrays of the host or of the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import views
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.cuda import copies, cuda_core
from lego_mlir.runtime.cuda.failures import failure, running
from lego_mlir.runtime.cuda.loaded import DeviceBuffer, LoadedArtifact, load
from lego_mlir.runtime.dtypes import Array
from lego_mlir.runtime.launch_sizes.extents import extents_of_array, memory_of

if TYPE_CHECKING:
    from lego_mlir.sim.cost.counter import Costs


@dataclass(frozen=True, slots=True)
class Cuda:
    """The CUDA device with this index; `None` is the current one, or that of the arrays."""

    index: int | None = None
    reason: str = ""
    name: str = "cuda"

    @property
    def target(self) -> str:
        """The target for which to compile: `sm_90a` for compute capability 9.0."""
        major, minor = cuda_core.capability(cuda_core.current_device(self.index))
        return f"sm_{major}{minor}" + ("a" if major >= 9 else "")

    @property
    def model(self) -> str:
        """The name that the driver reports."""
        return str(cuda_core.current_device(self.index).name)

    def describe(self) -> str:
        """Return the device in a few words: `cuda (NVIDIA H200, sm_90)`."""
        device = cuda_core.current_device(self.index)
        major, minor = cuda_core.capability(device)
        return f"{self.name} ({device.name}, sm_{major}{minor})"

    def run(
        self, artifact: Artifact, values: Sequence[Any], stream: Any = None
    ) -> tuple[Costs, ...]:
        """Run all launches in order; see `Device.run`.

        NumPy arrays are copied to the device and, where written, back. Device arrays pass without
        a copy; work that they wait for goes first. Without a stream this waits for the end.
        """
        loaded = load(artifact, self._index_for(artifact, values))
        queue = loaded.device.create_stream() if stream is None else cuda_core.as_stream(stream)
        if any(isinstance(value, np.ndarray) for value in values):
            _run_with_copies(loaded, values, queue)
            return ()
        lent = loaded.launch_when_ready(queue, values)
        if stream is None:
            _wait(artifact, queue)
            loaded.give_back(queue)
        del lent
        return ()

    def _index_for(self, artifact: Artifact, values: Sequence[Any]) -> int | None:
        """Return the index of the device to use: this one's, else that of the arrays."""
        homes = [views.gpu_of(value) for value in values]
        gpus = {self.index, *homes} - {None, views.ANY_GPU}
        if len(gpus) > 1:
            listed = ", ".join(
                f"'{argument.name}' on cuda:{home}"
                for argument, home in zip(artifact.arguments, homes, strict=True)
                if home not in (None, views.ANY_GPU)
            )
            raise LegoError(
                f"the arrays of '{artifact.name}' live on different devices: {listed}",
                hint="move them to one device"
                + (f", cuda:{self.index}" if self.index is not None else ""),
            )
        return gpus.pop() if gpus else None


def _run_with_copies(loaded: LoadedArtifact, values: Sequence[Any], queue: Any) -> None:
    """Launch with copies of NumPy arrays in the device's memory, and wait for what comes back."""
    artifact = loaded.artifact
    with ExitStack() as cleanup:
        back: list[tuple[Array, int]] = []
        on_device: list[Any] = []
        for argument, value in zip(artifact.arguments, values, strict=True):
            if not isinstance(value, np.ndarray):
                on_device.append(value)
                continue
            memory = memory_of(value)
            with failure(f"argument '{argument.name}' cannot be copied to the device"):
                pointer = copies.copy_in(memory, loaded.device, queue, cleanup)
            if argument.access in WRITES and value.nbytes:
                back.append((memory, pointer))
            on_device.append(DeviceBuffer(pointer, extents_of_array(value)))
        lent = loaded.launch_when_ready(queue, on_device)
        with failure(running(artifact.launches), checked=artifact.checked):
            for array, pointer in back:
                copies.copy_out(array, pointer, queue)
        _wait(artifact, queue)
        loaded.give_back(queue)
        del lent


def _wait(artifact: Artifact, queue: Any) -> None:
    """Wait for all work of a stream; an error of a kernel shows here."""
    with failure(running(artifact.launches), checked=artifact.checked):
        queue.sync()
