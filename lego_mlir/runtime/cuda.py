"""A CUDA device: artifacts launched by cuda-core.

`Cuda` is the device that `select` returns. `load` gives what a benchmark wants: kernels loaded
once, arguments bound once, and then launches without any other work:

    call = load(artifact).bind(x, y)
    for _ in range(100):
        call(stream)

cuda-core is imported on first use. Names relied on, from 0.4 (where they are in
`cuda.core.experimental`) to 1.x: `Device`, its `set_current`, `create_stream`, `allocate`,
`compute_capability`, `properties`; `Stream.from_handle`, `.handle`, `.sync`; `Buffer.handle`,
`.close`; `ObjectCode.from_cubin`, `.from_ptx`, `.get_kernel`; `LaunchConfig`, `launch`. Copies and
the shared-memory attribute go through `cuda.bindings.driver`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lego_mlir.artifact import Artifact, KernelLaunch
from lego_mlir.artifact.ptx import parameter_sizes
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes, parameters, views
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.binding import check_count
from lego_mlir.runtime.compatibility import (
    Capability,
    Code,
    check_alignment,
    check_shared,
    choose_code,
)
from lego_mlir.runtime.direct import DirectLaunch, encoded, is_tensor_map
from lego_mlir.runtime.dtypes import Array
from lego_mlir.runtime.facts import check_facts
from lego_mlir.runtime.overlap import check_overlap
from lego_mlir.runtime.workspaces import Allocation, WorkspacePool

if TYPE_CHECKING:
    from lego_mlir.sim.cost.counter import Costs

# The handle of the legacy default stream, as the driver (CU_STREAM_LEGACY) and DLPack write it;
# other libraries say 0.
_LEGACY_DEFAULT = 1

_NO_ORDER = -1
"""In place of a stream, as DLPack writes it: nothing is to wait."""


@dataclass(frozen=True, slots=True)
class Cuda:
    """The CUDA device with this index; `None` is the current one, or that of the arrays."""

    index: int | None = None
    reason: str = ""
    name: str = "cuda"

    @property
    def target(self) -> str:
        """The target for which to compile: `sm_90a` for compute capability 9.0."""
        major, minor = _capability(_device(self.index))
        return f"sm_{major}{minor}" + ("a" if major >= 9 else "")

    def describe(self) -> str:
        """Return the device in a few words: `cuda (NVIDIA H200, sm_90)`."""
        device = _device(self.index)
        major, minor = _capability(device)
        return f"{self.name} ({device.name}, sm_{major}{minor})"

    def run(
        self, artifact: Artifact, values: Sequence[Any], stream: Any = None
    ) -> tuple[Costs, ...]:
        """Run all launches in order; see `Device.run`.

        NumPy arrays are copied to the device and, where written, back. Device arrays pass without
        a copy; work that they wait for goes first. Without a stream this waits for the end.
        """
        loaded = load(artifact, self._index_for(artifact, values))
        queue = loaded.device.create_stream() if stream is None else as_stream(stream)
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
        wanted = {self.index, *homes} - {None, views.ANY_GPU}
        if len(wanted) > 1:
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
        return wanted.pop() if wanted else None


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
        wanted = self.artifact.arguments
        check_count(self.artifact, arguments)
        values: list[Any] = []
        kept: list[Any] = []
        for argument, given in zip(wanted, arguments, strict=True):
            if argument.shape is None:
                values.append(dtypes.scalar(argument.dtype, given))
            elif isinstance(given, int):
                check_alignment(argument, given)
                values.append(given)
            elif views.gpu_of(given) is not None:
                seen = views.view(given, argument.name, stream=ready_on)
                views.check(seen, argument)
                kept.append(seen)
                values.append(seen.pointer)
            else:
                raise LegoError(
                    f"argument '{argument.name}' needs a device array or address, "
                    f"not {type(given).__name__}"
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
                parameters.resolve(launch, wanted, values, sizes, encoded, workspaces),
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
        queue = as_stream(stream)
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
        ready_on = int(stream.handle) or _LEGACY_DEFAULT
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
        launch_kernel, stream = _core().launch, as_stream(stream)
        with self.lock or nullcontext():
            for launch, config, kernel, values in self.calls:
                try:
                    if isinstance(kernel, DirectLaunch):
                        kernel(int(stream.handle))
                    else:
                        launch_kernel(stream, config, kernel, *values)
                except Exception as e:
                    raise _error(_running((launch,)), e, checked=self.checked) from None


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
    chosen = _device(device)
    return _load(artifact, int(chosen.device_id), code)


def as_stream(stream: Any) -> Any:
    """Return a stream of any library as cuda-core's stream.

    Args:
        stream: cuda-core's own, one with `__cuda_stream__`, a PyTorch stream (`cuda_stream`), or
            a handle.

    Raises:
        LegoError: it is no stream.
    """
    kind = _core().Stream
    if isinstance(stream, kind):
        return stream
    handle = stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    if not isinstance(handle, int) or isinstance(handle, bool):
        raise LegoError(f"{type(stream).__name__} is no CUDA stream")
    return kind.from_handle(handle or _LEGACY_DEFAULT)


def _run_with_copies(loaded: LoadedArtifact, values: Sequence[Any], queue: Any) -> None:
    """Launch with copies of NumPy arrays in the device's memory, and wait for what comes back."""
    artifact = loaded.artifact
    with ExitStack() as cleanup:
        back: list[tuple[Array, int]] = []
        placed: list[Any] = []
        for argument, value in zip(artifact.arguments, values, strict=True):
            if not isinstance(value, np.ndarray):
                placed.append(value)
                continue
            with _failure(f"argument '{argument.name}' cannot be copied to the device"):
                pointer = _copy_in(value, loaded.device, queue, cleanup)
            if argument.access in WRITES and value.nbytes:
                back.append((value, pointer))
            placed.append(pointer)
        lent = loaded.launch_when_ready(queue, placed)
        with _failure(_running(artifact.launches), checked=artifact.checked):
            for array, pointer in back:
                _copy_out(array, pointer, queue)
        _wait(artifact, queue)
        loaded.give_back(queue)
        del lent


def _wait(artifact: Artifact, queue: Any) -> None:
    """Wait for all work of a stream; an error of a kernel shows here."""
    with _failure(_running(artifact.launches), checked=artifact.checked):
        queue.sync()


@functools.lru_cache(maxsize=64)
def _load(artifact: Artifact, index: int, code: Code | None) -> LoadedArtifact:
    core, device = _core(), _device(index)
    chosen = choose_code(artifact.target, _capability(device), artifact.cubin is not None, code)
    limit = int(device.properties.max_shared_memory_per_block_optin)
    make = core.ObjectCode
    sizes = {k: parameter_sizes(artifact.ptx, k) for k in _names(artifact.launches)}
    loaded = {}
    with _failure(f"the {chosen} of '{artifact.name}' ({artifact.target}) cannot be loaded"):
        if chosen == "cubin":
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
            parameters.check_machine_code(name, _handle(kernel), sizes[name])
        most = max(launch.shared_bytes for launch in artifact.launches if launch.kernel == name)
        if most:
            with _failure(f"kernel '{name}' cannot have {most} bytes of dynamic shared memory"):
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
    return launch, config, DirectLaunch(launch, _handle(kernel), values), ()


def _handle(kernel: Any) -> int:
    return int(kernel.handle if hasattr(kernel, "handle") else kernel._handle)


def _allow_shared(kernel: Any, size: int, index: int) -> None:
    """Opt in to dynamic shared memory; needed beyond 48 KiB with the static part, never wrong."""
    from cuda.bindings import driver

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    handle = kernel.handle if hasattr(kernel, "handle") else kernel._handle
    _check(driver.cuKernelSetAttribute(attribute, size, handle, index))


def _copy_in(array: Array, device: Any, stream: Any, cleanup: ExitStack) -> int:
    """Copy a C-contiguous host array to the device; return the address, freed at the end."""
    from cuda.bindings import driver

    if array.nbytes == 0:
        return 0
    buffer = device.allocate(array.nbytes, stream=stream)
    cleanup.callback(_free, buffer)
    pointer = int(buffer.handle)
    _check(driver.cuMemcpyHtoDAsync(pointer, array.ctypes.data, array.nbytes, stream.handle))
    return pointer


def _free(buffer: Any) -> None:
    with suppress(Exception):  # after a kernel's failure this fails, too, and says nothing new
        buffer.close()


def _copy_out(array: Array, pointer: int, stream: Any) -> None:
    from cuda.bindings import driver

    _check(driver.cuMemcpyDtoHAsync(array.ctypes.data, pointer, array.nbytes, stream.handle))


def _check(result: tuple[Any, ...]) -> None:
    """Raise if a driver call failed; `_failure` around it says what was tried."""
    from cuda.bindings import driver

    status = result[0]
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(getattr(status, "name", status)))


@contextmanager
def _failure(doing: str, *, checked: bool = False) -> Iterator[None]:
    """Turn an exception of the driver or of cuda-core into a LegoError with `doing`.

    Args:
        doing: what was tried.
        checked: kernels run in it that check indices, and trap where one is out of range.
    """
    try:
        yield
    except LegoError:
        raise
    except Exception as e:
        raise _error(doing, e, checked=checked) from None


def _error(doing: str, error: Exception, *, checked: bool = False) -> LegoError:
    if checked and any(name in str(error) for name in _TRAPPED):
        return LegoError(
            f"{doing}: a check of the kernel failed: an index or a size is out of range",
            hint='run with device="sim" (legoc --device=sim) to see which and where; this process '
            "cannot use CUDA again",
        )
    lines = str(error).strip().splitlines()
    text = lines[0].rstrip(".") if lines else type(error).__name__
    return LegoError(f"{doing}: {text}", hint=_hint(str(error)))


_TRAPPED = ("LAUNCH_FAILED", "ILLEGAL_INSTRUCTION")
"""What the driver says of a kernel that executed a trap."""


def _hint(text: str) -> str | None:
    if "UNSUPPORTED_PTX_VERSION" in text:
        return "the driver is older than the PTX: update it, or compile a cubin for this device"
    if "ILLEGAL_ADDRESS" in text or "MISALIGNED" in text or "LAUNCH_FAILED" in text:
        return "run with --device sim to see which access it is; this process cannot use CUDA again"
    if "OUT_OF_MEMORY" in text:
        return "free device memory, or use smaller arrays"
    return None


def _running(launches: Sequence[KernelLaunch]) -> str:
    """Return `kernel 't' with grid (8, 8, 1), block (256, 1, 1) failed` for launches."""
    named = [f"'{x.kernel}' with grid {x.grid}, block {x.block}" for x in launches]
    return f"kernel {'; '.join(named)} failed"


def _names(launches: Sequence[KernelLaunch]) -> dict[str, None]:
    return dict.fromkeys(launch.kernel for launch in launches)


def _capability(device: Any) -> Capability:
    major, minor = device.compute_capability
    return int(major), int(minor)


def _device(index: int | None) -> Any:
    """Return cuda-core's device after making it current."""
    with _failure("no CUDA device can be used"):
        core = _core()
        device = core.Device() if index is None else core.Device(index)
        device.set_current()
    return device


def _core() -> Any:
    """Import cuda-core's module; before 1.0 its names were in `experimental`."""
    try:
        import cuda.core as core

        if not hasattr(core, "Device"):
            from cuda.core import experimental as core
    except ImportError as e:
        raise LegoError(f"cuda-core cannot be used: {e}", hint="pip install cuda-core") from None
    return core
