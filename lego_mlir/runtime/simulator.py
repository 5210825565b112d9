"""The simulator as a device: the PTX itself is run, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lego_mlir.artifact import (
    Argument,
    Artifact,
    TensorMapParameter,
    Workspace,
    known_numbers,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import TENSOR_MAP_TYPES
from lego_mlir.limits import check_limit
from lego_mlir.runtime import dtypes, parameters, views
from lego_mlir.runtime.launch_sizes.extents import Known, extents_of_values, memory_of
from lego_mlir.runtime.launch_sizes.facts import check_facts
from lego_mlir.runtime.launch_sizes.sized import is_empty, known_grid, sized

if TYPE_CHECKING:
    from lego_mlir import sim
    from lego_mlir.sim import Module
    from lego_mlir.sim.cost.counter import Costs


@dataclass(frozen=True, slots=True)
class Simulator:
    """Runs an artifact's PTX on NumPy arrays, for any target, without a GPU.

    Attributes:
        costs: count what each launch costs.
        order: when asynchronous operations are performed, and the seed of the random order (see
            `sim.machine.launch`).
        sample: CTAs of each launch that run; `None` for all. What others would have written to
            workspaces is missing, so their contents are not checked.
        global_checks: whether to check global memory for data races, too.
    """

    reason: str = ""
    costs: bool = False
    order: tuple[str, int] = ("late", 0)
    sample: int | None = None
    global_checks: bool = False
    name: str = "sim"
    target: None = None

    @property
    def model(self) -> None:
        """No GPU has a name."""
        return None

    def describe(self) -> str:
        """Return `sim`, and the reason if it was chosen by `auto`: `sim (no CUDA driver)`."""
        return f"{self.name} ({self.reason})" if self.reason else self.name

    def run(
        self, artifact: Artifact, values: Sequence[Any], stream: Any = None
    ) -> tuple[Costs, ...]:
        """Run all launches in order; see `Device.run`. A stream makes no sense here."""
        if stream is not None:
            raise LegoError("the simulator has no streams", hint="leave the stream out")
        for argument, value in zip(artifact.arguments, values, strict=True):
            if not isinstance(value, np.ndarray | np.generic):
                where = "lives on a GPU" if views.gpu_of(value) is not None else "is no NumPy array"
                raise LegoError(
                    f"the array for argument '{argument.name}' {where}; "
                    "the simulator works on host memory",
                    hint="pass a NumPy array, or run with --device cuda",
                )
        extents = extents_of_values(values)
        known = Known.of(values, extents)
        check_facts(artifact, known)
        artifact = sized(artifact, known)
        if not artifact.launches:
            return ()
        from lego_mlir import sim

        module = sim.parse(artifact.ptx, sources=artifact.sources)
        found = []
        budget = sim.Budget()
        spaces = _allocated(artifact)
        workspaces = tuple(zip(artifact.workspaces, (s.array for s in spaces), strict=True))
        memory = [memory_of(v) if isinstance(v, np.ndarray) else v for v in values]
        for launch in artifact.launches:
            if is_empty(launch):
                continue
            sizes = _parameter_sizes(module, launch.kernel)
            costs = sim.launch(
                module,
                launch.kernel,
                known_grid(launch),
                launch.block,
                parameters.resolve(launch, artifact.arguments, memory, sizes, _mapped, workspaces),
                shared_bytes=launch.shared_bytes,
                order=self.order[0],
                seed=self.order[1],
                costs=self.costs,
                budget=budget,
                workspaces=spaces if self.sample is None else (),
                sample=self.sample,
                global_checks=self.global_checks,
            )
            found += [costs] if costs is not None else []
        if self.sample is None:
            for workspace, space in zip(artifact.workspaces, spaces, strict=True):
                _check_zeros(artifact, workspace, space.array)
        return tuple(found)


def _allocated(artifact: Artifact) -> list[sim.Workspace]:
    """Return memory for the workspaces of an artifact.

    Raises:
        LegoError: they have more bytes than the limit `tensor_bytes` allows.
    """
    from lego_mlir import sim

    check_limit(
        "tensor_bytes",
        artifact.workspace_bytes,
        f"the workspaces of '{artifact.name}' have {{}} bytes",
    )
    return [
        sim.Workspace.allocate(known_numbers(w.shape), dtypes.numpy_dtype(w.dtype), zeroed=w.zeroed)
        for w in artifact.workspaces
    ]


def _check_zeros(artifact: Artifact, workspace: Workspace, array: Any) -> None:
    """Check that a run leaves zeros where the next one expects them.

    Raises:
        LegoError: it does not.
    """
    if not workspace.zeroed:
        return
    wrong = np.flatnonzero(array.reshape(-1).view(np.uint8))
    if len(wrong):
        element = int(wrong[0]) // array.itemsize
        raise LegoError(
            f"'{artifact.name}' leaves its workspace '{workspace.name}' with something else than 0 "
            f"at element {element}; its next run relies on zeros",
            hint="the last kernel that reads an element of a zeroed workspace sets it to 0",
        )


def _parameter_sizes(module: Module, kernel: str) -> tuple[int, ...]:
    """Return the bytes of each parameter of a kernel of the parsed PTX.

    Raises:
        LegoError: the PTX has no such kernel.
    """
    if kernel not in module.kernels:
        names = ", ".join(module.kernels) or "none"
        raise LegoError(f"the PTX has no kernel '{kernel}'", hint=f"it has {names}")
    return tuple(parameter.size for parameter in module.kernels[kernel].parameters)


def _mapped(found: TensorMapParameter, argument: Argument | Workspace, array: Any) -> Any:
    """Return a tensor map of an array in the simulator's form."""
    from lego_mlir import sim

    flat = array.reshape(-1)
    return sim.TensorMap(
        flat,
        box=found.box,
        shape=known_numbers(found.shape),
        strides=known_numbers(found.strides),
        dtype=TENSOR_MAP_TYPES[argument.dtype],
        swizzle=f"{found.swizzle}B" if found.swizzle else "none",
    )


def order_named(text: str) -> tuple[str, int]:
    """Parse an order: `late`, `early`, `random` or `random:SEED`.

    Raises:
        LegoError: no such order.
    """
    kind, colon, seed = text.partition(":")
    if kind not in ("late", "early", "random") or (
        colon and (kind != "random" or not seed.isdecimal())
    ):
        raise LegoError(
            f"the simulator has no order '{text}'",
            hint="orders: late, early, random, random:SEED",
        )
    return kind, int(seed or 0)
