"""What a kernel should have computed: references by name, and the comparison with them.

A module names its reference (`lego.reference = "transpose"`). A reference is a pure NumPy function
from the tensors the kernels read, in argument order, to those they write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.dtypes import Array

Reference = Callable[..., Array | tuple[Array, ...]]

REFERENCES: dict[str, Reference] = {
    "transpose": lambda a: a.T,
    "copy": lambda a: a,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an output compares with its reference.

    Attributes:
        name: of the argument compared.
        equal: every element is the same, bit for bit.
        count: how many elements differ.
        size: how many there are.
        first: index of the first that differs, in row-major order.
        expected, actual: the values there.
        max_abs: the largest absolute difference; NaN if one side only is NaN somewhere.
        max_rel: the largest difference relative to the expected value (0/0 is no difference).
    """

    name: str
    equal: bool
    count: int
    size: int
    first: tuple[int, ...] | None = None
    expected: float | None = None
    actual: float | None = None
    max_abs: float = 0.0
    max_rel: float = 0.0

    def __str__(self) -> str:
        if self.equal:
            return f"{self.name}: all {self.size} elements equal"
        assert self.first is not None
        at = ", ".join(map(str, self.first))
        return (
            f"{self.name}: {self.count} of {self.size} elements differ, the first at [{at}]: "
            f"expected {self.expected:g}, found {self.actual:g}; "
            f"largest error {self.max_abs:g} absolute, {self.max_rel:g} relative"
        )


def _permutation(reference: str) -> Reference | None:
    """The reference that `permute(1, 0, 2)` names: NumPy's transpose by these axes."""
    found = re.fullmatch(r"permute\((\d+(?:, \d+)*)\)", reference)
    if found is None:
        return None
    axes = tuple(int(axis) for axis in found[1].split(", "))
    return lambda a: a.transpose(axes)


def expect(reference: str, inputs: Sequence[Array], outputs: int) -> tuple[Array, ...]:
    """The tensors that a reference says `outputs` written arguments hold.

    Raises:
        LegoError: no such reference, or the module's arguments are not what it is about.
    """
    function = REFERENCES.get(reference) or _permutation(reference)
    if function is None:
        raise LegoError(
            f"unknown reference '{reference}'",
            hint=f"known references: {', '.join(REFERENCES)}, permute(1, 0, 2)",
        )
    takes = function.__code__.co_argcount if hasattr(function, "__code__") else len(inputs)
    if takes != len(inputs):
        raise LegoError(
            f"reference '{reference}' is about {takes} tensors read, the kernels read {len(inputs)}"
        )
    result = function(*inputs)
    expected = result if isinstance(result, tuple) else (result,)
    if len(expected) != outputs:
        raise LegoError(
            f"reference '{reference}' is about {len(expected)} tensors written, "
            f"the kernels write {outputs}"
        )
    return expected


def compare(expected: Array, actual: Array, *, name: str = "result", dtype: str) -> Comparison:
    """Compare two tensors of the same MLIR element type, bit for bit.

    Equal NaNs are equal; 0.0 and -0.0 are not. This is exact, as data movement is: a kernel that
    rounds is judged by the returned errors.

    Raises:
        LegoError: the shapes differ.
    """
    if expected.shape != actual.shape:
        raise LegoError(
            f"'{name}' has shape {list(actual.shape)}, its reference {list(expected.shape)}"
        )
    differs = _bits(expected) != _bits(actual)
    count = int(np.count_nonzero(differs))
    if count == 0:
        return Comparison(name, True, 0, actual.size)
    flat = int(np.argmax(differs))
    first = tuple(int(i) for i in np.unravel_index(flat, actual.shape))
    want, have = dtypes.decode(expected[differs], dtype), dtypes.decode(actual[differs], dtype)
    with np.errstate(all="ignore"):
        error = np.abs(have - want)
        error[(want == have) | (np.isnan(want) & np.isnan(have))] = 0.0
        relative = np.where(error == 0.0, 0.0, error / np.abs(want))
    return Comparison(
        name,
        False,
        count,
        actual.size,
        first,
        float(want[0]),
        float(have[0]),
        float(np.max(error)),
        float(np.max(relative)),
    )


def _bits(array: Array) -> Array:
    """The elements as unsigned integers of their size, so that NaNs compare by their bits."""
    unsigned: np.dtype[Any] = np.dtype(f"u{array.dtype.itemsize}")
    return np.ascontiguousarray(array).view(unsigned).reshape(array.shape)
