"""Kernels of a PTX file, which another compiler may have written, run in the simulator.

The arguments are texts, as on a command line: a .npy file or `f32:64x64`, an array of zeros, for a
pointer, and a number for a scalar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.limits import check_limit
from lego_mlir.runtime.dtypes import Array, numpy_dtype
from lego_mlir.runtime.npy import load_npy
from lego_mlir.runtime.simulator import order_named

if TYPE_CHECKING:
    from lego_mlir.sim import Costs, Kernel, Module
    from lego_mlir.sim.ptx.syntax import Parameter

Dim3 = tuple[int, int, int]

_ZEROS = re.compile(r"([a-z]\w*):(\d{1,18}(?:x\d{1,18})*)")
_DIM3 = re.compile(r"\d{1,10}(?:,\d{1,10}){0,2}")


@dataclass(frozen=True, slots=True)
class PtxLaunch:
    """A launch of a kernel of a PTX file.

    Attributes:
        kernel: its name; None: the only one of the file.
        grid, block, cluster: extents in x, y, z; None: what the kernel asks for, or 1.
        arguments: one text for each parameter.
        shared_bytes: dynamic shared memory of a CTA.
        order: the completion order: `late`, `early`, `random` or `random:SEED`.
        costs: whether to count costs.
        global_checks: whether to check global memory for races.
    """

    kernel: str | None
    grid: Dim3 | None
    block: Dim3 | None
    cluster: Dim3 | None
    arguments: Sequence[str]
    shared_bytes: int = 0
    order: str = "late"
    costs: bool = False
    global_checks: bool = False

    @staticmethod
    def of(options: Any) -> PtxLaunch:
        """Return the launch that options of the command line ask for."""
        return PtxLaunch(
            options.kernel,
            options.grid,
            options.block,
            options.cluster,
            options.arrays,
            options.shared_bytes,
            options.sim_order or "late",
            options.report,
            options.global_checks,
        )


@dataclass(frozen=True, slots=True)
class PtxRun:
    """What a launch did.

    Attributes:
        kernel: its name.
        grid, block: as launched.
        arrays: the arrays after the launch, by the name of the parameter, with their origins.
        written: the names of those that the kernel changed.
        costs: if they were counted.
    """

    kernel: str
    grid: Dim3
    block: Dim3
    arrays: dict[str, tuple[Array, str]]
    written: frozenset[str]
    costs: Costs | None

    def outputs(self) -> dict[str, Array]:
        """Return the arrays that the kernel changed, by the name of the parameter."""
        return {name: array for name, (array, _) in self.arrays.items() if name in self.written}

    def lines(self) -> Iterator[str]:
        """Yield what happened, as lines of text."""
        yield "device   sim"
        yield f"kernel   {self.kernel}  grid {self.grid}, block {self.block}"
        for name, (array, origin) in self.arrays.items():
            shape = "×".join(map(str, array.shape))
            state = "written" if name in self.written else "not changed"
            yield f"array    {name}  {array.dtype} {shape}  {origin}, {state}"


def dim3(text: str) -> Dim3:
    """Parse extents: `X`, `X,Y` or `X,Y,Z`.

    Raises:
        ValueError: it has another form.
    """
    if not _DIM3.fullmatch(text):
        raise ValueError(f"'{text}' is not X, X,Y or X,Y,Z with integers")
    x, y, z = (*map(int, text.split(",")), 1, 1)[:3]
    return x, y, z


def run_ptx(text: str, file: str, launch: PtxLaunch) -> PtxRun:
    """Run a kernel of a PTX text in the simulator.

    Args:
        text: the PTX.
        file: its name in errors.
        launch: what to launch.

    Raises:
        LegoError: bad PTX, no such kernel, arguments that do not fit, or an error of the kernel.
    """
    from lego_mlir import sim

    module = sim.parse(text, file)
    kernel = _kernel(module, launch.kernel)
    block = launch.block or kernel.reqntid
    if block is None:
        raise module.error(
            f"{kernel.name} does not say how many threads a CTA has", kernel.line, hint="--block X"
        )
    grid = launch.grid or (1, 1, 1)
    if len(launch.arguments) != len(kernel.parameters):
        names = ", ".join(f"{p.name} ({_described(p)})" for p in kernel.parameters)
        raise module.error(
            f"{kernel.name} takes {len(kernel.parameters)} arguments, {len(launch.arguments)} "
            f"were given",
            kernel.line,
            hint=f"its parameters are: {names}" if names else None,
        )
    values = [_value(*pair) for pair in zip(launch.arguments, kernel.parameters, strict=True)]
    arrays = {
        parameter.name: (value, origin)
        for value, parameter, origin in zip(
            values, kernel.parameters, launch.arguments, strict=True
        )
        if isinstance(value, np.ndarray)
    }
    before = {name: array.copy() for name, (array, _) in arrays.items()}
    order, seed = order_named(launch.order)
    costs = sim.launch(
        module,
        kernel.name,
        grid,
        block,
        values,
        shared_bytes=launch.shared_bytes,
        cluster=launch.cluster,
        order=order,
        seed=seed,
        costs=launch.costs,
        global_checks=launch.global_checks,
    )
    written = frozenset(
        name for name, (array, _) in arrays.items() if array.tobytes() != before[name].tobytes()
    )
    return PtxRun(kernel.name, grid, block, arrays, written, costs)


def _kernel(module: Module, name: str | None) -> Kernel:
    """Return the kernel of a name, or the only one.

    Raises:
        LegoError: there is none.
    """
    found = module.kernels.get(name) if name is not None else None
    if name is None and len(module.kernels) == 1:
        (found,) = module.kernels.values()
    if found is not None:
        return found
    listed = ", ".join(module.kernels) or "none"
    what = "has no kernels to choose from" if name is None else f"has no kernel named {name}"
    if name is None and module.kernels:
        what = f"has {len(module.kernels)} kernels"
    raise LegoError(
        f"the file {what}",
        location=Location(module.file),
        hint=f"--kernel NAME; its kernels are: {listed}",
    )


def _described(parameter: Parameter) -> str:
    if parameter.pointer:
        return "a pointer"
    return f"{parameter.size} bytes" if parameter.is_array else str(parameter.kind)


def _value(text: str, parameter: Parameter) -> Array | np.generic:
    """Return the value of an argument.

    Raises:
        LegoError: the text says none, or none of the parameter's type.
    """
    if zeros := _ZEROS.fullmatch(text):
        shape = [int(n) for n in zeros[2].split("x")]
        dtype = numpy_dtype(zeros[1])
        check_limit(
            "tensor_bytes", prod(shape) * dtype.itemsize, f"the array {text} has {{}} bytes"
        )
        return np.zeros(shape, dtype)
    if text.endswith(".npy"):
        return np.ascontiguousarray(load_npy(text))
    kind, size = parameter.kind, parameter.size
    hint = (
        f"{parameter.name} is {_described(parameter)}: pass a number, a .npy file, or an array of "
        f"zeros such as f32:64x64"
    )
    try:
        number = int(text, 0)
    except ValueError:
        try:
            real = float(text)
        except ValueError:
            raise LegoError(f"'{text}' is no argument for {parameter.name}", hint=hint) from None
        if not (kind.is_float or kind.kind == "b") or size not in (2, 4, 8):
            raise LegoError(
                f"'{text}' is no integer, which {parameter.name} takes", hint=hint
            ) from None
        return np.dtype(f"f{size}").type(real)  # type: ignore[no-any-return]
    if parameter.pointer or parameter.is_array:
        raise LegoError(f"the number {text} where {parameter.name} takes an array", hint=hint)
    if kind.is_float:
        return np.dtype(f"f{size}").type(number)  # type: ignore[no-any-return]
    if not -(1 << 8 * size - 1) <= number < 1 << 8 * size:
        raise LegoError(f"the number {text} does not fit {parameter.name}", hint=hint)
    return np.dtype(f"u{size}").type(number % (1 << 8 * size))  # type: ignore[no-any-return]
