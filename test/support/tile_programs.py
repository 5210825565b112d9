"""Kernels on tiles for tests: run by the interpreter of tile IR, and in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lego_mlir as lg
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.tile_ir.interpreter import interpret

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
}


def tensor_of(array: Array) -> lg.TensorType:
    """Return the type of a row-major tensor of an array's shape and type."""
    return lg.Tensor[DTYPES[array.dtype.name], array.shape]


def program(function: Callable[..., Any], inputs: list[Array], out: Array, **options: Any) -> Any:
    """Return the kernel that stores what a function makes of whole tensors.

    Args:
        function: takes a tile for each input.
        inputs: one to three arrays.
        out: of the result's shape and type.
        options: of the kernel.
    """

    def whole(tensor: Any) -> Any:
        return tensor[(slice(None),) * len(tensor.shape)]

    def stored(x: Any, *tensors: Any) -> None:
        at = (slice(None),) * len(out.shape) if len(out.shape) else 0
        x[at] = function(*map(whole, tensors))

    def one(out: Any, a: Any) -> None:
        stored(out, a)

    def two(out: Any, a: Any, b: Any) -> None:
        stored(out, a, b)

    def three(out: Any, a: Any, b: Any, c: Any) -> None:
        stored(out, a, b, c)

    body = (one, two, three)[len(inputs) - 1]
    names = ("out", "a", "b", "c")
    kinds = {n: tensor_of(x) for n, x in zip(names, (out, *inputs), strict=False)}
    return lg.kernel(grid=1, parameters=kinds, **{"warps": 4} | options)(body)


def interpreted(kernel: lg.Kernel, *arrays: Array) -> Array:
    """Return what the interpreter leaves in the first array."""
    source = kernel.compilation().source
    layouts = Layouts(source, {}, {})
    found = interpret(kernel.module, list(arrays), layouts, source).tensors
    return next(iter(found.values())).view(arrays[0].dtype)


def simulated(kernel: lg.Kernel, *arrays: Array) -> Array:
    """Return what the simulator leaves in a copy of the first array."""
    first = arrays[0].copy()
    kernel(first, *arrays[1:], device="sim")
    return first


def both(function: Callable[..., Any], inputs: list[Array], out: Array, **options: Any) -> Array:
    """Return what a program computes, the same in the interpreter and in the simulator.

    Results of floats may differ by rounding.
    """
    kernel = program(function, inputs, out, **options)
    expected = interpreted(kernel, out, *inputs)
    found = simulated(kernel, out, *inputs)
    close = 2e-3 if out.dtype == np.float16 else 1e-5
    tolerance = {"rtol": close, "atol": close} if out.dtype.kind == "f" else {"rtol": 0}
    np.testing.assert_allclose(found, expected, **tolerance)
    return found
