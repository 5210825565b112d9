"""Artifacts on a device: kernels loaded once, arguments bound once, and launches.

A loaded artifact has the module's kernels; binding arguments gives launches that do no other work:

    call = load(artifact).bind(x, y)
    for _ in range(100):
        call(stream)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from lego_mlir.artifact import Argument, Artifact, KernelLaunch, Workspace
from lego_mlir.artifact.ptx import cluster_sizes, parameter_sizes
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes, parameters, views
from lego_mlir.runtime.binding import check_count
from lego_mlir.runtime.compatibility import Code, check_alignment, check_shared, choose_code
from lego_mlir.runtime.cuda import cuda_core
from lego_mlir.runtime.cuda.clusters import allow_cluster, check_cluster
from lego_mlir.runtime.cuda.direct import (
    DirectLaunch,
    DriverKernel,
    StreamConfigs,
    is_tensor_map,
)
from lego_mlir.runtime.cuda.failures import check, failure, launch_error, running
from lego_mlir.runtime.cuda.tensor_maps import encoded
from lego_mlir.runtime.launch_sizes.extents import Extents, Known, fixed_extents
from lego_mlir.runtime.launch_sizes.facts import check_facts
from lego_mlir.runtime.launch_sizes.fitting import fitted
from lego_mlir.runtime.launch_sizes.sized import is_empty, known_grid, sized
from lego_mlir.runtime.overlap import check_overlap
from lego_mlir.runtime.workspaces import Allocation, Needs, WorkspacePool

_NO_ORDER = -1
"""DLPack's stream value for `nothing is to wait`."""


@dataclass(frozen=True, slots=True)
class DeviceBuffer:
    """A buffer in a device's memory, for an argument whose sizes the launch decides.

    Attributes:
        address: of its first element.
        extents: its sizes and strides.
    """

    address: int
    extents: Extents


@dataclass(frozen=True, slots=True)
class LoadedArtifact:
    """An artifact whose kernels are on a device.

    Attributes:
        artifact: what was loaded.
        device: cuda-core's `Device`.
        code: which of the artifact's codes runs, `cubin` or `ptx` (compiled by the driver).
        kernels: for each launch cuda-core's kernel, its launch configuration, which is None if the
            launch decides it, and the sizes of the kernel's parameters in bytes.
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
            arguments: for a tensor a device array (DLPack, `__cuda_array_interface__`), a
                `DeviceBuffer`, or a device address if its sizes are fixed; for a scalar its value.
            ready_on: handle of the stream that waits for the work which produces the arrays; by
                default nothing waits.

        Raises:
            LegoError: number, type or shape is wrong, arrays overlap of which one is written, or
                the device has no memory for workspaces.
        """
        pool = self.workspaces
        return self._bind(arguments, None if pool is None else pool.own, ready_on)

    def _bind(
        self,
        arguments: Sequence[Any],
        allocate: Callable[[Needs], Allocation] | None,
        ready_on: int = _NO_ORDER,
    ) -> BoundLaunches:
        """Fix the arguments and the memory of the workspaces; see `bind`."""
        check_count(self.artifact, arguments)
        values: list[Any] = []
        extents: list[Extents | None] = []
        kept: list[Any] = []
        each = zip(self.artifact.arguments, arguments, strict=True)
        for position, (argument, value) in enumerate(each):
            if argument.shape is None:
                values.append(dtypes.scalar_argument(argument, value))
                extents.append(None)
                continue
            address, found, owner = _placed(argument, value, position, ready_on)
            values.append(address)
            extents.append(found)
            kept.append(owner)
        check_overlap(self.artifact, values, extents)
        known = Known.of(values, extents)
        check_facts(self.artifact, known)
        artifact = sized(self.artifact, known)
        workspaces: tuple[tuple[Workspace, int], ...] = ()
        if allocate is not None:
            needs = Needs.of(artifact.workspaces)
            allocation = allocate(needs)
            kept.append(allocation)
            workspaces = tuple(zip(artifact.workspaces, allocation.addresses(needs), strict=True))
        calls = tuple(
            (
                launch,
                _config(launch) if config is None else config,
                kernel,
                parameters.resolve(launch, artifact.arguments, values, sizes, encoded, workspaces),
            )
            for launch, (kernel, config, sizes) in zip(artifact.launches, self.kernels, strict=True)
            if not is_empty(launch)
        )
        lock = None if self.workspaces is None else self.workspaces.lock
        return BoundLaunches(tuple(map(_direct, calls)), tuple(kept), artifact.checked, lock)

    def launch(self, stream: Any, *arguments: Any) -> None:
        """Bind the arguments and launch once; see `bind`. Does not wait for the end."""
        queue = cuda_core.as_stream(stream)
        self._bind(arguments, self._allocate_on(queue))(queue)

    def give_back(self, stream: Any) -> None:
        """Let other streams have the workspaces of a stream, all of whose work is done."""
        if self.workspaces is not None:
            self.workspaces.give_back(stream)

    def _allocate_on(self, stream: Any) -> Callable[[Needs], Allocation] | None:
        """Return what gives the memory of workspaces on a stream; None if there are none."""
        pool = self.workspaces
        return None if pool is None else lambda needs: pool.of_stream(stream, needs)

    def launch_when_ready(self, stream: Any, values: Sequence[Any]) -> BoundLaunches:
        """Launch on a stream after the work that produces the device arrays.

        Returns:
            What keeps the arrays alive, for as long as the work on the stream takes.
        """
        ready_on = int(stream.handle) or cuda_core.LEGACY_DEFAULT
        bound = self._bind(values, self._allocate_on(stream), ready_on)
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
    clusters = cluster_sizes(artifact.ptx)
    kernels = []
    for launch in artifact.launches:
        check_shared(launch.kernel, launch.shared_bytes, limit, device.name)
        config = _config(launch) if all(isinstance(n, int) for n in launch.grid) else None
        kernels.append((loaded[launch.kernel], config, sizes[launch.kernel]))
    for name, kernel in loaded.items():
        if chosen == "cubin":
            parameters.check_machine_code(name, handle_of(kernel), sizes[name])
        most = max(launch.shared_bytes for launch in artifact.launches if launch.kernel == name)
        if most:
            with failure(f"kernel '{name}' cannot have {most} bytes of dynamic shared memory"):
                _allow_shared(kernel, most, index)
        if name in clusters:
            allow_cluster(handle_of(kernel), name, clusters[name], index)
    for launch, (kernel, *_) in zip(artifact.launches, kernels, strict=True):
        if launch.kernel in clusters:
            check_cluster(handle_of(kernel), launch, clusters[launch.kernel], device.name)
    pool = WorkspacePool(artifact.name, device) if artifact.workspaces else None
    return LoadedArtifact(artifact, device, chosen, tuple(kernels), pool)


def _placed(
    argument: Argument, value: Any, position: int, ready_on: int
) -> tuple[int, Extents, object]:
    """Return address and extents of a tensor's buffer, and what keeps its memory alive.

    Raises:
        LegoError: the value does not fit the argument, or does not tell its sizes.
    """
    fixed = fixed_extents(argument)
    if isinstance(value, int) and fixed is not None:
        value = DeviceBuffer(value, fixed)
    if isinstance(value, DeviceBuffer):
        check_alignment(argument, value.address)
        return value.address, value.extents, None
    if views.gpu_of(value) is None:
        what = "array or address" if fixed is not None else "array, which tells its sizes"
        raise LegoError(
            f"argument '{argument.name}' needs a device {what}, not {type(value).__name__}"
        )
    seen = views.view(value, argument.name, stream=ready_on)
    return seen.pointer, fitted(seen, argument, position), seen


def _config(launch: KernelLaunch) -> Any:
    """Return cuda-core's configuration of a launch of known sizes."""
    return cuda_core.module().LaunchConfig(
        grid=known_grid(launch), block=launch.block, shmem_size=launch.shared_bytes
    )


def _direct(
    call: tuple[KernelLaunch, Any, Any, tuple[Any, ...]],
) -> tuple[KernelLaunch, Any, Any, Any]:
    """Prepare a launch by the driver itself if cuda-core does not take its parameters."""
    launch, config, kernel, values = call
    if not launch.pdl and not any(map(is_tensor_map, values)):
        return call
    configs = StreamConfigs(launch, known_grid(launch))
    made = DirectLaunch.of(configs, DriverKernel(handle_of(kernel)), values)
    return launch, config, made, ()


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
