"""A launch of an artifact, as a function that lays out its parameters."""

from __future__ import annotations

import ctypes
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lego_mlir.artifact import (
    Argument,
    Artifact,
    Computed,
    Constant,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    Workspace,
    WorkspaceIndex,
)
from lego_mlir.artifact.straight_line import function
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import TENSOR_MAP_BYTES
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.cuda.direct import DirectLaunch, DriverKernel, StreamConfigs, stored
from lego_mlir.runtime.cuda.tensor_maps import TensorMapEncoder
from lego_mlir.runtime.launch_sizes.sized import check_grid

MOST_KEPT = 1024
"""Tensor maps, grids, and addresses of workspaces, that are kept."""

Made = Callable[[Sequence[Any], Sequence[int], Sequence[int]], DirectLaunch | None]
"""Returns a launch with all parameters laid out; None if there is no CTA to launch. Arguments are
addresses of tensors and NumPy scalars by position, results of expressions, and the addresses of
workspaces. Raises LegoError where the driver takes no such tensor map, or no GPU such a grid."""


_Encode = Callable[[int, Sequence[int]], tuple[Any, int]]
"""Encodes a tensor map at an address, of some sizes, as `TensorMapEncoder.encode` does."""


def put(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry; a full cache loses its oldest one, which other dictionaries would look for."""
    if len(cache) >= MOST_KEPT:
        cache.popitem(last=False)
    cache[key] = value


def planned(
    artifact: Artifact,
    launch: KernelLaunch,
    kernel: int,
    sizes: Sequence[int],
    slots: Mapping[str, int],
) -> Made:
    """Return what makes a launch of an artifact.

    Args:
        artifact: the artifact.
        launch: the launch.
        kernel: handle of a CUkernel.
        sizes: of the kernel's parameters, in bytes.
        slots: where the results of expressions stand.
    """
    code = _Code(artifact, slots)
    for parameter, size in zip(launch.parameters, sizes, strict=True):
        code.add(parameter, size)
    configs: OrderedDict[tuple[int, int, int], StreamConfigs] = OrderedDict()

    def configs_of(grid: tuple[int, int, int]) -> StreamConfigs | None:
        check_grid(launch.kernel, grid)
        if 0 in grid:
            return None
        put(configs, grid, StreamConfigs(launch, grid))
        return configs[grid]

    pointers = [address or f"start + {8 * number}" for number, address in enumerate(code.pointers)]
    return function(
        ("values", "numbers", "workspaces"),
        [
            f"grid = {', '.join(map(code.number, launch.grid))}",
            "configs = known(grid) or configs_of(grid)",
            "if configs is None: return None",
            *code.lines,
            f"words = array('Q', ({''.join(f'{word}, ' for word in code.words)}))",
            "start, _ = words.buffer_info()",
            f"pointers = array('Q', ({''.join(f'{pointer}, ' for pointer in pointers)}))",
            f"return Launch(configs, kernel, pointers, (words, {', '.join(code.kept)}))",
        ],
        {
            **code.known,
            "known": configs.get,
            "configs_of": configs_of,
            "array": array,
            "kernel": DriverKernel(kernel),
            "Launch": DirectLaunch,
        },
    )


class _Code:
    """Statements that lay parameters out in memory, each as a word of 8 bytes or on its own.

    Args:
        artifact: whose launch it is.
        slots: where the results of expressions stand.

    Attributes:
        lines: the statements.
        known: what names in them stand for.
        words: the value of each parameter, 0 if it has memory of its own.
        pointers: to the memory of each parameter that has its own; empty for others.
        kept: names of such memory.
    """

    def __init__(self, artifact: Artifact, slots: Mapping[str, int]) -> None:
        self._artifact, self._slots = artifact, slots
        self.lines: list[str] = []
        self.known: dict[str, Any] = {"address": ctypes.addressof, "too_large": _too_large}
        self.words: list[str] = []
        self.pointers: list[str] = []
        self.kept: list[str] = []

    def number(self, size: int | str) -> str:
        """Return the Python of a number of the artifact."""
        return f"numbers[{self._slots[size]}]" if isinstance(size, str) else str(size)

    def add(self, parameter: Parameter, size: int) -> None:
        """Add a parameter of some bytes."""
        match parameter:
            case int() if self._artifact.arguments[parameter].shape is not None:
                self._word(f"values[{parameter}]")
            case int():
                dtype = self._artifact.arguments[parameter].dtype
                lay_out = _laid_out_index(_sized_dtype(dtype, size)) if dtype == "index" else stored
                self._memory(lay_out, f"values[{parameter}]")
            case WorkspaceIndex(position):
                self._word(f"workspaces[{position}]")
            case Constant(dtype, value):
                constant = stored(dtypes.scalar(_sized_dtype(dtype, size), value))
                self._memory(lambda: constant)
            case Computed(_, expression):
                n, half = self.number(expression), 1 << (31 if size == 4 else 63)
                self.lines.append(f"if not {-half} <= {n} < {half}: too_large({n}, {size})")
                self._word(f"{n} & {_WORD}")
            case TensorMapParameter():
                encode, *arguments = self._tensor_map(parameter)
                name = self._named(encode, *arguments)
                self._pointer(f"{name}[1]", name)
            case TensorMapParameters(maps):
                each = [self._named(*self._tensor_map(one)) for one in maps]
                self._memory(_side_by_side, *each)

    def _tensor_map(self, found: TensorMapParameter) -> tuple[Callable[..., Any], str, str]:
        """Return what encodes a tensor map, and the Python of its address and its sizes."""
        buffer: Argument | Workspace
        if isinstance(found.argument, WorkspaceIndex):
            position = found.argument.workspace
            buffer, address = self._artifact.workspaces[position], f"workspaces[{position}]"
        else:
            buffer = self._artifact.arguments[found.argument]
            address = f"values[{found.argument}]"
        sizes = (*found.shape, *found.strides)
        encode: _Encode = TensorMapEncoder(found, buffer).encode
        if all(isinstance(n, int) for n in sizes):
            encode = _once_for_each_address(encode)
        return encode, address, f"({''.join(f'{self.number(n)}, ' for n in sizes)})"

    def _word(self, value: str) -> None:
        self.words.append(value)
        self.pointers.append("")

    def _memory(self, lay_out: Callable[..., Any], *arguments: str) -> None:
        name = self._named(lay_out, *arguments)
        self._pointer(f"address({name})", name)

    def _pointer(self, address: str, memory: str) -> None:
        self.words.append("0")
        self.pointers.append(address)
        self.kept.append(memory)

    def _named(self, lay_out: Callable[..., Any], *arguments: str) -> str:
        """Return the name of what a function returns."""
        number = len(self.lines)
        self.known[f"lay_out_{number}"] = lay_out
        self.lines.append(f"memory_{number} = lay_out_{number}({', '.join(arguments)})")
        return f"memory_{number}"


_WORD = (1 << 64) - 1


def _once_for_each_address(encode: _Encode) -> _Encode:
    """Return what encodes a tensor map of known sizes, such as weights have."""
    made: OrderedDict[int, tuple[Any, int]] = OrderedDict()

    def encoded(address: int, sizes: Sequence[int]) -> tuple[Any, int]:
        found = made.get(address)
        if found is None:
            found = encode(address, sizes)
            put(made, address, found)
        return found

    return encoded


def _side_by_side(*maps: tuple[Any, int]) -> Any:
    """Return the memory of tensor maps one behind the other."""
    bytes_ = b"".join(ctypes.string_at(address, TENSOR_MAP_BYTES) for _, address in maps)
    return ctypes.create_string_buffer(bytes_, len(bytes_))


def _laid_out_index(dtype: str) -> Callable[[Any], Any]:
    return lambda value: stored(dtypes.scalar(dtype, int(value)))


def _too_large(number: int, size: int) -> None:
    raise LegoError(f"{number} is no value of type i{8 * size}")


def _sized_dtype(dtype: str, size: int) -> str:
    """Return the type of a number of some bytes: that of `index` is the kernel's choice."""
    return f"i{8 * size}" if dtype == "index" else dtype
