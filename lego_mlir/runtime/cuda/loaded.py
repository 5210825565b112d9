"""Artifacts on a device: kernels loaded once, arguments bound once, and launches.

A loaded artifact has the module's kernels; binding arguments gives launches that do no other work:

    call = load(artifact).bind(x, y)
    for _ in range(100):
        call(stream)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from lego_mlir.artifact import Artifact, KernelLaunch
from lego_mlir.artifact.ptx import parameter_sizes
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes, parameters, views
from lego_mlir.runtime.binding import check_count
from lego_mlir.runtime.compatibility import Code, check_alignment, check_shared, choose_code
from lego_mlir.runtime.cuda import cuda_core
from lego_mlir.runtime.cuda.direct import DirectLaunch, StreamConfigs, encoded, is_tensor_map
from lego_mlir.runtime.cuda.failures import check, failure, launch_error, running
from lego_mlir.runtime.facts import check_facts
from lego_mlir.runtime.overlap import check_overlap
from lego_mlir.runtime.workspaces import Allocation, WorkspacePool

_NO_ORDER = -1
"""DLPack's stream value for `nothing is to wait`."""


@dataclass(frozen=True, slots=True)
class LoadedArtifact:
    """An artifact whose kernels are on a device.

    Attributes:
        artifact: what was loaded.
        device: cuda-core's `Device`.
        code: which of the artifact's codes runs, `cubin` or `ptx` (compiled by the driver).
        kernels: for each launch cuda-core's kernel, its launch configuration, and the sizes of the
            kernel's parameters in bytes.
        workspaces: has the memory of the artifact's workspaces; None if there are none.
    """

    artifact: Artifact
    device: Any
    code: Code
    kernels: tuple[tuple[Any, Any, tuple[int, ...]], ...]
    workspaces: WorkspacePool | None = None

    def bind(self, *arguments: Any, ready_on: int = _NO_ORDER) -> BoundLaunches:
        """Fix the arguments of the host function. Nothing is copied.

        The bound launches have workspaces of their own (see `runtime.workspaces`).

        Args:
            arguments: for a tensor a device array (DLPack, `__cuda_array_interface__`) or a device
                address; for a scalar its value.
            ready_on: handle of the stream that waits for the work which produces the arrays; by
                default nothing waits.

        Raises:
            LegoError: number, type or shape is wrong, arrays overlap of which one is written, or
                the device has no memory for workspaces.
        """
        own = None if self.workspaces is None else self.workspaces.own()
        return self._bind(arguments, own, ready_on)

    def _bind(
        self, arguments: Sequence[Any], allocation: Allocation | None, ready_on: int = _NO_ORDER
    ) -> BoundLaunches:
        """Fix the arguments and the memory of the workspaces; see `bind`."""
        described = self.artifact.arguments
        check_count(self.artifact, arguments)
        values: list[Any] = []
        kept: list[Any] = []
        for argument, value in zip(described, arguments, strict=True):
            if argument.shape is None:
                values.append(dtypes.scalar(argument.dtype, value))
            elif isinstance(value, int):
                check_alignment(argument, value)
                values.append(value)
            elif views.gpu_of(value) is not None:
                seen = views.view(value, argument.name, stream=ready_on)
                views.check(seen, argument)
                kept.append(seen)
                values.append(seen.pointer)
            else:
                raise LegoError(
                    f"argument '{argument.name}' needs a device array or address, "
                    f"not {type(value).__name__}"
                )
        check_overlap(self.artifact, values)
        check_facts(self.artifact, values)
        addresses = () if allocation is None else allocation.addresses
        workspaces = tuple(zip(self.artifact.workspaces, addresses, strict=True))
        calls = tuple(
            (
                launch,
                config,
                kernel,
                parameters.resolve(launch, described, values, sizes, encoded, workspaces),
            )
            for launch, (kernel, config, sizes) in zip(
                self.artifact.launches, self.kernels, strict=True
            )
        )
        lock = None if self.workspaces is None else self.workspaces.lock
        return BoundLaunches(
            tuple(map(_direct, calls)), (*kept, allocation), self.artifact.checked, lock
        )

    def launch(self, stream: Any, *arguments: Any) -> None:
        """Bind the arguments and launch once; see `bind`. Does not wait for the end."""
        queue = cuda_core.as_stream(stream)
        self._bind(arguments, self._allocation(queue))(queue)

    def give_back(self, stream: Any) -> None:
        """Let other streams have the workspaces of a stream, all of whose work is done."""
        if self.workspaces is not None:
            self.workspaces.give_back(stream)

    def _allocation(self, stream: Any) -> Allocation | None:
        """Return the memory of the workspaces for runs on a stream; None if there are none."""
        return None if self.workspaces is None else self.workspaces.of_stream(stream)

    def launch_when_ready(self, stream: Any, values: Sequence[Any]) -> BoundLaunches:
        """Launch on a stream after the work that produces the device arrays.

        Returns:
            What keeps the arrays alive, for as long as the work on the stream takes.
        """
        ready_on = int(stream.handle) or cuda_core.LEGACY_DEFAULT
        bound = self._bind(values, self._allocation(stream), ready_on)
        bound(stream)
        return bound


@dataclass(frozen=True, slots=True)
class BoundLaunches:
    """Launches with all arguments fixed.

    Views keep the arrays alive. A call does not wait for work that produces them: their data must
    be ready on the stream that it launches on.
    """

    calls: tuple[tuple[KernelLaunch, Any, Any, tuple[Any, ...]], ...]
    kept: tuple[Any, ...]
    checked: bool = False
    lock: Any = None

    def __call__(self, stream: Any) -> None:
        """Launch every kernel in order on a stream of any library; does not wait for the end."""
        launch_kernel, stream = cuda_core.module().launch, cuda_core.as_stream(stream)
        with self.lock or nullcontext():
            for launch, config, kernel, values in self.calls:
                try:
                    if isinstance(kernel, DirectLaunch):
                        kernel(int(stream.handle))
                    else:
                        launch_kernel(stream, config, kernel, *values)
                except Exception as e:
                    raise launch_error(running((launch,)), e, checked=self.checked) from None


def load(
    artifact: Artifact, device: int | None = None, *, code: Code | None = None
) -> LoadedArtifact:
    """Load an artifact's kernels; loading the same artifact again costs nothing.

    Args:
        artifact: what to load.
        device: index of the CUDA device, the current one if `None`; it becomes the current one.
        code: `cubin` or `ptx` to insist on one; otherwise the cubin where it fits the device, and
            the PTX, compiled by the driver, where it does not.

    Raises:
        LegoError: the artifact does not fit the device, or the driver refuses it.
    """
    chosen = cuda_core.current_device(device)
    return _load(artifact, int(chosen.device_id), code)


@functools.lru_cache(maxsize=64)
def _load(artifact: Artifact, index: int, code: Code | None) -> LoadedArtifact:
    core, device = cuda_core.module(), cuda_core.current_device(index)
    chosen = choose_code(
        artifact.target, cuda_core.capability(device), artifact.cubin is not None, code
    )
    limit = int(device.properties.max_shared_memory_per_block_optin)
    make = core.ObjectCode
    sizes = {k: parameter_sizes(artifact.ptx, k) for k in _names(artifact.launches)}
    loaded = {}
    with failure(f"the {chosen} of '{artifact.name}' ({artifact.target}) cannot be loaded"):
        module: Any = None
        if not sizes:
            pass  # an artifact without launches has no code
        elif chosen == "cubin":
            module = make.from_cubin(artifact.cubin)
        else:
            module = make.from_ptx(artifact.ptx.encode())
        for name in sizes:
            loaded[name] = module.get_kernel(name)
    kernels = []
    for launch in artifact.launches:
        check_shared(launch.kernel, launch.shared_bytes, limit, device.name)
        config = core.LaunchConfig(
            grid=launch.grid, block=launch.block, shmem_size=launch.shared_bytes
        )
        kernels.append((loaded[launch.kernel], config, sizes[launch.kernel]))
    for name, kernel in loaded.items():
        if chosen == "cubin":
            parameters.check_machine_code(name, handle_of(kernel), sizes[name])
        most = max(launch.shared_bytes for launch in artifact.launches if launch.kernel == name)
        if most:
            with failure(f"kernel '{name}' cannot have {most} bytes of dynamic shared memory"):
                _allow_shared(kernel, most, index)
    pool = WorkspacePool(artifact, device) if artifact.workspaces else None
    return LoadedArtifact(artifact, device, chosen, tuple(kernels), pool)


def _direct(
    call: tuple[KernelLaunch, Any, Any, tuple[Any, ...]],
) -> tuple[KernelLaunch, Any, Any, Any]:
    """Prepare a launch by the driver itself if cuda-core does not take its parameters."""
    launch, config, kernel, values = call
    if not launch.pdl and not any(map(is_tensor_map, values)):
        return call
    return launch, config, DirectLaunch(StreamConfigs(launch), handle_of(kernel), values), ()


def handle_of(kernel: Any) -> int:
    """Return the driver's handle of a kernel of cuda-core, a `CUkernel`."""
    return int(kernel.handle if hasattr(kernel, "handle") else kernel._handle)


def _allow_shared(kernel: Any, size: int, index: int) -> None:
    """Opt in to dynamic shared memory; needed beyond 48 KiB with the static part, never wrong."""
    from cuda.bindings import driver

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(driver.cuKernelSetAttribute(attribute, size, handle_of(kernel), index))


def _names(launches: Sequence[KernelLaunch]) -> dict[str, None]:
    return dict.fromkeys(launch.kernel for launch in launches)
