"""Running artifacts: on a GPU by cuda-core, or in the simulator. Needs neither MLIR nor SymPy.

artifact = Artifact.load("transpose.lego")
result = run(artifact)                      # seeded random data, compared with NumPy
launch(artifact, x, y)                      # on one's own arrays, in place
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lego_mlir.artifact import Artifact, KernelLaunch
from lego_mlir.diagnostics import LegoError
from lego_mlir.limits import Limits
from lego_mlir.runtime import arrays as _arrays
from lego_mlir.runtime import references
from lego_mlir.runtime.binding import RepeatedLaunches, launch_on
from lego_mlir.runtime.device import Device, chosen, select
from lego_mlir.runtime.dtypes import Array
from lego_mlir.runtime.launch_sizes.extents import Known, extents_of_values
from lego_mlir.runtime.launch_sizes.sized import sized
from lego_mlir.runtime.npy import save_npy
from lego_mlir.runtime.references import Comparison
from lego_mlir.timing import timed

if TYPE_CHECKING:
    from lego_mlir.sim.cost.counter import Costs

__all__ = [
    "Artifact",
    "Comparison",
    "Device",
    "RepeatedLaunches",
    "RunResult",
    "launch",
    "launch_on",
    "run",
    "select",
]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run did.

    Attributes:
        device: where, in words: `sim (no CUDA driver)`, `cuda (NVIDIA H200, sm_90)`.
        inputs: the logical tensors that the kernels read, by argument, as they were before.
        outputs: the logical tensors that they wrote.
        launches: the kernels launched, in order, with the grids that they had.
        comparison: with the artifact's reference, `None` if it names none; of several outputs the
            first that differs.
        costs: what each launch cost, if that was counted.
    """

    device: str
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    launches: tuple[KernelLaunch, ...]
    comparison: Comparison | None
    costs: tuple[Costs, ...] = ()

    def save(self, directory: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write each output to `directory/NAME.npy`, all of them or none.

        Raises:
            LegoError: a file cannot be written.
        """
        return save_npy(directory, self.outputs)


def run(
    artifact: Artifact,
    arrays: Sequence[Any] | Mapping[str, Any] = (),
    device: str | Device = "auto",
    seed: int = 0,
    functions: _arrays.Functions | None = None,
    costs: bool = False,
    limits: Limits | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> RunResult:
    """Run an artifact on tensors, which are copied, and compare with its reference.

    Args:
        artifact: what to run.
        arrays: logical tensors, paths of .npy files, or numbers for scalars; by position or by
            name. What is left out is seeded random data where the kernels read it, and poison
            (NaN, 0xCD bytes) elsewhere, so that an element left unwritten shows.
        device: `auto`, `cuda`, `sim`, or a device from `select`.
        seed: of the random data.
        functions: what `@name` stands for in the arguments' layouts: an artifact does not hold it.
        costs: count what each launch costs; `auto` is then `sim`. (For a device from `select`,
            pass `costs` to `select`.)
        limits: on the work and memory of the simulator; those of the context if None.
        shapes: of tensors that are left out, by name, where the launch decides them and no other
            tensor tells them.

    Raises:
        LegoError: an array does not fit its argument, an unknown reference, or the run fails.
    """
    if limits is not None:
        with limits.applied():
            return run(artifact, arrays, device, seed, functions, costs, shapes=shapes)
    _check_artifact(artifact)
    where = chosen(device, costs=costs)
    with timed("arrays"):
        bound = _arrays.bind(artifact, arrays, seed=seed, functions=functions, shapes=shapes)
    tensors = [each for each in bound if each.argument.shape is not None]
    inputs = {s.argument.name: s.tensor() for s in tensors if s.argument.access in _arrays.READS}
    written = [s for s in tensors if s.argument.access in _arrays.WRITES]
    expected = None
    if artifact.reference is not None:
        types = [s.argument.dtype for s in tensors if s.argument.name in inputs]
        with timed("reference"):
            values = list(inputs.values())
            expected = references.expect(artifact.reference, values, len(written), types)
    with timed("run"):
        counted = where.run(artifact, [each.value for each in bound])
    outputs = {each.argument.name: each.tensor() for each in written}
    comparison = None
    if expected is not None:
        comparison = _worst(
            [
                references.compare(
                    want, outputs[s.argument.name], name=s.argument.name, dtype=s.argument.dtype
                )
                for want, s in zip(expected, written, strict=True)
            ]
        )
    own: list[Any] = [each.value for each in bound]
    launches = sized(artifact, Known.of(own, extents_of_values(own))).launches
    return RunResult(where.describe(), inputs, outputs, launches, comparison, counted)


def launch(
    artifact: Artifact,
    *arrays: Any,
    device: str | Device = "auto",
    stream: Any = None,
    limits: Limits | None = None,
) -> None:
    """Run an artifact in place on the caller's arrays.

    Args:
        artifact: what to run.
        arrays: one for each argument, in order: the *buffers*, dense and of the argument's shape,
            or the tensors, with the strides of the argument's layout; NumPy's or any with DLPack
            or `__cuda_array_interface__`; numbers for scalars. Arrays on a GPU pass without a copy.
        device: `auto` is `cuda` if an array lives there.
        stream: a CUDA stream to use; then work on device arrays is not waited for. PyTorch tensors
            on a GPU use PyTorch's current stream by default, and are not waited for either.
        limits: on the work and memory of the simulator; those of the context if None.

    Raises:
        LegoError: number, type, shape or strides are wrong, arrays overlap of which one is
            written, or the run fails.
    """
    if limits is not None:
        with limits.applied():
            launch(artifact, *arrays, device=device, stream=stream)
        return
    _check_artifact(artifact)
    repeated = _repeated(artifact) if device in ("auto", "cuda") else None
    if repeated is None or not repeated.launch(arrays, stream):
        launch_on(arrays, device, stream, lambda _: artifact, repeated)


def _check_artifact(artifact: object) -> None:
    if not isinstance(artifact, Artifact):
        raise LegoError(
            f"an artifact is needed, not {artifact!r}",
            hint="Artifact.load(path) reads one, kernel.compile(target) makes one",
        )


@lru_cache(maxsize=64)
def _repeated(artifact: Artifact) -> RepeatedLaunches:
    """Return what remembers the launches of an artifact."""
    return RepeatedLaunches()


def _worst(comparisons: Sequence[Comparison]) -> Comparison | None:
    """Return the first comparison that differs, else the first."""
    return next((c for c in comparisons if not c.equal), comparisons[0] if comparisons else None)
