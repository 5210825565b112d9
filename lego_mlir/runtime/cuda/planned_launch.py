"""One launch of an artifact: its grid and its parameters, laid out for addresses and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lego_mlir.artifact import (
    Argument,
    Artifact,
    Computed,
    Constant,
    Dim3,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    WorkspaceIndex,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.cuda.direct import DirectLaunch, DriverKernel, StreamConfigs, stored
from lego_mlir.runtime.cuda.tensor_maps import TensorMapEncoder
from lego_mlir.runtime.launch_sizes.sized import check_grid

MOST_KEPT = 256
"""Tensor maps, grids, and places of workspaces, that are kept."""


class Number:
    """A number of an artifact, which the launch may compute.

    Args:
        size: the number, or its expression.
        slots: where the results of expressions stand.
    """

    __slots__ = ("_number", "is_open")

    def __init__(self, size: int | str, slots: Mapping[str, int]) -> None:
        self.is_open = isinstance(size, str)
        self._number = slots[size] if isinstance(size, str) else size

    def of(self, numbers: Sequence[int]) -> int:
        """Return it, from the results of expressions."""
        return numbers[self._number] if self.is_open else self._number


class PlannedLaunch:
    """A launch of an artifact: its grid and its parameters, as far as they are known.

    Args:
        artifact: the artifact.
        launch: the launch.
        kernel: handle of a CUkernel.
        sizes: of the kernel's parameters, in bytes.
        slots: where the results of expressions stand.
    """

    def __init__(
        self,
        artifact: Artifact,
        launch: KernelLaunch,
        kernel: int,
        sizes: Sequence[int],
        slots: Mapping[str, int],
    ) -> None:
        self._launch, self._kernel = launch, DriverKernel(kernel)
        self._grid = [Number(n, slots) for n in launch.grid]
        self._configs: dict[Dim3, StreamConfigs] = {}
        self._parameters = [
            _parameter(parameter, size, artifact, slots)
            for parameter, size in zip(launch.parameters, sizes, strict=True)
        ]

    def made(
        self, values: Sequence[Any], numbers: Sequence[int], workspaces: Sequence[int]
    ) -> DirectLaunch | None:
        """Return the launch with all parameters laid out; None if there is no CTA to launch.

        Args:
            values: addresses of tensors, and NumPy scalars.
            numbers: results of expressions.
            workspaces: their addresses.

        Raises:
            LegoError: the driver takes no such tensor map, or no GPU such a grid.
        """
        x, y, z = self._grid
        grid = x.of(numbers), y.of(numbers), z.of(numbers)
        configs = self._configs.get(grid)
        if configs is None:
            check_grid(self._launch.kernel, grid)
            if 0 in grid:
                return None
            if len(self._configs) >= MOST_KEPT:
                self._configs.clear()
            configs = self._configs[grid] = StreamConfigs(self._launch, grid)
        stored = [parameter(values, numbers, workspaces) for parameter in self._parameters]
        return DirectLaunch(configs, self._kernel, stored)


_Stored = Callable[[Sequence[Any], Sequence[int], Sequence[int]], Any]
"""What lays a parameter out, from values, results of expressions and addresses of workspaces: as
a word of 8 bytes, or in memory of its own."""


def _parameter(
    parameter: Parameter, size: int, artifact: Artifact, slots: Mapping[str, int]
) -> _Stored:
    """Return what lays a parameter of some bytes out in memory."""
    match parameter:
        case int():
            return _argument(artifact.arguments[parameter], parameter, size)
        case WorkspaceIndex(position):
            return lambda values, numbers, workspaces: workspaces[position]
        case Constant(dtype, value):
            constant = stored(dtypes.scalar(_sized_dtype(dtype, size), value))
            return lambda values, numbers, workspaces: constant
        case Computed(_, expression):
            return _computed(slots[expression], size)
        case TensorMapParameter():
            return _TensorMap(parameter, artifact, slots)
        case TensorMapParameters(maps):
            several = [_TensorMap(one, artifact, slots) for one in maps]
            return lambda values, numbers, workspaces: stored(
                tuple(one(values, numbers, workspaces) for one in several)
            )


def _argument(argument: Argument, position: int, size: int) -> _Stored:
    if argument.shape is not None:
        return lambda values, numbers, workspaces: values[position]
    if argument.dtype != "index":
        return lambda values, numbers, workspaces: stored(values[position])
    dtype = _sized_dtype("index", size)
    return lambda values, numbers, workspaces: stored(dtypes.scalar(dtype, int(values[position])))


def _computed(slot: int, size: int) -> _Stored:
    half = 1 << (31 if size == 4 else 63)

    def laid_out(values: Sequence[Any], numbers: Sequence[int], workspaces: Sequence[int]) -> Any:
        number = numbers[slot]
        if not -half <= number < half:
            raise LegoError(f"{number} is no value of type i{8 * size}")
        return number & _WORD

    return laid_out


_WORD = (1 << 64) - 1


class _TensorMap:
    """A tensor map of an argument or a workspace, encoded once for each address and size."""

    def __init__(
        self, found: TensorMapParameter, artifact: Artifact, slots: Mapping[str, int]
    ) -> None:
        self._is_workspace = isinstance(found.argument, WorkspaceIndex)
        if isinstance(found.argument, WorkspaceIndex):
            self._position = found.argument.workspace
            self._encode = TensorMapEncoder(found, artifact.workspaces[self._position])
        else:
            self._position = found.argument
            self._encode = TensorMapEncoder(found, artifact.arguments[self._position])
        self._shape = [Number(n, slots) for n in found.shape]
        self._strides = [Number(n, slots) for n in found.strides]
        self._open = [n for n in (*self._shape, *self._strides) if n.is_open]
        self._made: dict[tuple[int, ...], Any] = {}

    def __call__(
        self, values: Sequence[Any], numbers: Sequence[int], workspaces: Sequence[int]
    ) -> Any:
        address = (workspaces if self._is_workspace else values)[self._position]
        key = (address, *[n.of(numbers) for n in self._open])
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= MOST_KEPT:
                self._made.clear()
            shape = [n.of(numbers) for n in self._shape]
            made = self._encode(address, shape, [n.of(numbers) for n in self._strides])
            self._made[key] = made
        return made


def _sized_dtype(dtype: str, size: int) -> str:
    """Return the type of a number of some bytes: that of `index` is the kernel's choice."""
    return f"i{8 * size}" if dtype == "index" else dtype
