"""Where an artifact runs: on a GPU (`cuda`) or in the simulator (`sim`)."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError

if TYPE_CHECKING:
    from lego_mlir.sim.cost.counter import Costs

NAMES = ("auto", "cuda", "sim")


class Device(Protocol):
    """Runs artifacts.

    Attributes:
        name: `cuda` or `sim`.
        reason: why it was chosen where the user left the choice open, e.g. "no CUDA driver";
            empty otherwise.
    """

    @property
    def name(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def target(self) -> str | None:
        """The target whose code it runs best, such as `sm_90a`; `None` if it runs any."""
        ...

    @property
    def model(self) -> str | None:
        """The GPU's name as its driver reports it, such as `NVIDIA H200`; `None` without a GPU."""
        ...

    def describe(self) -> str:
        """Return the device in a few words, for messages."""
        ...

    def run(
        self, artifact: Artifact, values: Sequence[Any], stream: Any = None
    ) -> tuple[Costs, ...]:
        """Run all launches of an artifact; arrays are modified in place.

        Args:
            artifact: what to run.
            values: one for each argument: a NumPy array or a device array of the argument's type,
                its buffer, whose sizes and strides are those of the launch; a NumPy scalar for a
                scalar.
            stream: of the device; with one, work on device arrays is not waited for.

        Returns:
            What each launch cost, where the device counts that.

        Raises:
            LegoError: it cannot run here, or fails while it runs.
        """
        ...


def select(
    name: str = "auto",
    *,
    costs: bool = False,
    order: str | None = None,
    on_gpu: bool = False,
    sample: int | None = None,
) -> Device:
    """Return a device by name; `auto` is `cuda` if there is a GPU, else `sim`.

    Args:
        name: `auto`, `cuda` or `sim`.
        costs: a device that counts what launches cost: `sim`.
        order: a device that performs asynchronous operations in this order: `sim` with `late`,
            `early`, `random` or `random:SEED`.
        on_gpu: arrays are on a GPU: `auto` is `cuda`, without a query of the driver.
        sample: a device that runs so many CTAs of each launch, but no less than the first cluster
            and the last one: `sim`.

    Raises:
        LegoError: no such device or order, or `cuda` where no GPU answers, or with what only `sim`
            does.
    """
    if name not in NAMES:
        raise LegoError(f"unknown device '{name}'", hint=f"devices: {', '.join(NAMES)}")
    if costs and name == "cuda":
        raise LegoError("device 'cuda' does not count costs", hint="the device 'sim' does")
    if order is not None and name == "cuda":
        raise LegoError("device 'cuda' has no order to choose", hint="the device 'sim' has")
    if sample is not None and (name == "cuda" or sample < 1):
        raise LegoError(
            f"device '{name}' runs no sample of {sample} CTAs",
            hint="the device 'sim' does, of 1 CTA or more",
        )
    if name == "sim" or costs or order is not None or sample is not None:
        from lego_mlir.runtime.simulator import Simulator, order_named

        why = "only it counts costs" if costs else "only it has orders" if order is not None else ""
        why = why or "only it runs samples" * (sample is not None)
        return Simulator(
            reason=why if name == "auto" else "",
            costs=costs,
            order=order_named("late" if order is None else order),
            sample=sample,
        )
    missing = None if on_gpu else missing_for_cuda()
    if missing is None:
        from lego_mlir.runtime.cuda import Cuda

        return Cuda()
    if name == "cuda":
        raise LegoError(
            f"device 'cuda' cannot be used: {missing}",
            hint="pip install cuda-core" if "cuda-core" in missing else "use --device sim",
        )
    from lego_mlir.runtime.simulator import Simulator

    return Simulator(reason=missing)


def chosen(device: object, *, costs: bool = False, on_gpu: bool = False) -> Device:
    """Return the device that a caller names, or gives.

    Args:
        device: a name, or a device from `select`.
        costs: as for `select`, of a name.
        on_gpu: as for `select`, of a name.

    Raises:
        LegoError: it is neither, or `select` refuses the name.
    """
    if isinstance(device, str):
        return select(device, costs=costs, on_gpu=on_gpu)
    if not callable(getattr(device, "run", None)) or not hasattr(device, "describe"):
        raise LegoError(
            f"{device!r} is no device",
            hint=f"devices: {', '.join(NAMES)}, or what lego_mlir.runtime.select returns",
        )
    return cast(Device, device)


def missing_for_cuda() -> str | None:
    """Return what is missing to run on a GPU, in a few words; `None` if nothing is.

    Asks the driver's library itself: importing cuda-core only to learn that there is no driver
    would cost ten times as much.
    """
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(library)
        initialise, count_devices = driver.cuInit, driver.cuDeviceGetCount
    except (OSError, AttributeError):
        return "no CUDA driver"
    status = initialise(0)
    count = ctypes.c_int(0)
    if status == 0:
        status = count_devices(ctypes.byref(count))
    if status == 100 or (status == 0 and count.value == 0):  # CUDA_ERROR_NO_DEVICE
        return "no CUDA device"
    if status != 0:
        return f"the CUDA driver fails with error {status}"
    if not _installed("cuda.core"):
        return "cuda-core is not installed"
    return None


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
