"""What a kernel should have computed: references by name, and the comparison with them.

A module names its reference (`lego.reference = "transpose"`). A reference is a pure NumPy function
from the tensors the kernels read, in argument order, to those they write. Where kernels round, it
also says how far each element may be off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
class Bounded:
    """What a kernel that rounds should have computed.

    Attributes:
        values: the values, not yet rounded to the output's type.
        bound: of each value, how far it may be off before it is rounded.
    """

    values: Array
    bound: Array


Expected: TypeAlias = "Array | Bounded"
"""An expected tensor, exact or within bounds."""


def matmul(a: Array, b: Array) -> Bounded:
    """Multiply matrices, or batches of them, accumulating in f32 in any order.

    The error of a sum of k products is at most `k u |a| |b|` with u = 2⁻²⁴ (Higham, Accuracy and
    Stability of Numerical Algorithms, section 3.1). Tensor cores cut off what others round, which
    doubles u; and this function sums in f32 itself.

    Args:
        a: …×m×k, floats or integers; integers are multiplied exactly.
        b: …×k×n.

    Raises:
        LegoError: the shapes are not those of a GEMM.
    """
    shapes = f"{list(a.shape)} and {list(b.shape)}"
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise LegoError(f"matrices of the shapes {shapes} cannot be multiplied")
    if a.dtype.kind == "i":
        product = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return Bounded(product, np.zeros_like(product))
    a, b = a.astype(np.float32), b.astype(np.float32)
    error = np.float32(3 * a.shape[-1] * 2.0**-24)
    return Bounded(np.matmul(a, b), np.matmul(np.abs(a), np.abs(b)) * error)


def coarse_matmul(a: Array, b: Array) -> Bounded:
    """Multiply matrices as `wgmma` does on 8-bit floats: 32 products at a time.

    All 32 terms, and the accumulator, are truncated 13 bits below the exponent of the largest of
    them (`sim.numerics.fp8_accumulation`).

    Args:
        a: …×m×k.
        b: …×k×n.

    Raises:
        LegoError: the shapes are not those of a GEMM.
    """
    exact = matmul(a, b)
    a, b = a.astype(np.float32), b.astype(np.float32)
    total, bound = np.zeros_like(exact.values), exact.bound.copy()
    for k in range(0, a.shape[-1], _PRODUCTS):
        x, y = a[..., k : k + _PRODUCTS], b[..., k : k + _PRODUCTS, :]
        largest = np.abs(x).max(-1, keepdims=True) * np.abs(y).max(-2, keepdims=True)
        before, total = np.abs(total), total + np.matmul(x, y)
        terms = np.maximum(np.maximum(before, np.abs(total)), largest)
        bound += np.float32((_PRODUCTS + 2) * 2.0**-13) * terms
    return Bounded(exact.values, bound)


_PRODUCTS = 32
"""That `wgmma` adds up at a time, of 8-bit floats."""

BOUNDED: dict[str, Callable[..., Bounded]] = {"matmul": matmul, "coarse_matmul": coarse_matmul}
"""References of kernels that round: functions of the tensors' values."""

_ROUNDING = {
    "f64": (2.0**-53, 0.0),
    "f32": (2.0**-24, 0.0),
    "f16": (2.0**-11, 2.0**-25),
    "bf16": (2.0**-8, 0.0),
    "f8E4M3FN": (2.0**-4, 2.0**-10),
    "f8E5M2": (2.0**-3, 2.0**-17),
}
"""How far rounding to a type goes: relative to the value, and for the smallest values."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an output compares with its reference.

    Attributes:
        name: of the argument compared.
        equal: every element is the same, bit for bit; or within the reference's bounds.
        count: how many elements differ.
        size: how many there are.
        first: index of the first that differs, in row-major order.
        expected, actual: the values there.
        max_abs: the largest absolute difference; NaN if one side only is NaN somewhere.
        max_rel: the largest difference relative to the expected value (0/0 is no difference).
        exact: elements were compared bit for bit.
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
    exact: bool = True

    def __str__(self) -> str:
        if self.equal and not self.exact:
            return (
                f"{self.name}: all {self.size} elements within rounding, "
                f"the largest error {self.max_abs:.3g}"
            )
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
    """Return the reference of `permute(1, 0, 2)`: NumPy's transpose by these axes."""
    found = re.fullmatch(r"permute\((\d+(?: *, *\d+)*)\)", reference)
    if found is None:
        return None
    axes = tuple(int(axis) for axis in found[1].split(","))

    def permuted(a: Array) -> Array:
        if sorted(axes) != list(range(a.ndim)):
            raise LegoError(
                f"reference '{reference}' is no order of the tensor's {a.ndim} dimensions",
                hint="it names each dimension once, counting from 0",
            )
        return a.transpose(axes)

    return permuted


def find(reference: str) -> Callable[..., Any]:
    """Return the reference of a name.

    Raises:
        LegoError: there is none.
    """
    function = REFERENCES.get(reference) or BOUNDED.get(reference) or _permutation(reference)
    if function is None:
        raise LegoError(
            f"unknown reference '{reference}'",
            hint=f"known references: {', '.join((*REFERENCES, *BOUNDED))}, permute(1, 0, 2)",
        )
    return function


def expect(
    reference: str, inputs: Sequence[Array], outputs: int, types: Sequence[str] = ()
) -> tuple[Expected, ...]:
    """Return the tensors that the written arguments hold according to a reference.

    Args:
        reference: its name.
        inputs: the tensors read.
        outputs: how many tensors are written.
        types: of the tensors read, MLIR's names; NumPy's own where there are none.

    Raises:
        LegoError: no such reference, or the module's arguments are not what it is about.
    """
    function = find(reference)
    takes = function.__code__.co_argcount if hasattr(function, "__code__") else len(inputs)
    if takes != len(inputs):
        raise LegoError(
            f"reference '{reference}' is about {takes} tensors read, the kernels read {len(inputs)}"
        )
    if reference in BOUNDED and types:
        inputs = [_values(x, kind) for x, kind in zip(inputs, types, strict=True)]
    result = function(*inputs)
    expected = result if isinstance(result, tuple) else (result,)
    if len(expected) != outputs:
        raise LegoError(
            f"reference '{reference}' is about {len(expected)} tensors written, "
            f"the kernels write {outputs}"
        )
    return expected


def _values(tensor: Array, kind: str) -> Array:
    """Return a tensor's values; types that NumPy has not become numbers."""
    raw = dtypes.is_float(kind) and tensor.dtype.kind != "f"
    return dtypes.decode(tensor, kind) if raw else tensor


def compare(expected: Expected, actual: Array, *, name: str = "result", dtype: str) -> Comparison:
    """Compare a tensor of an MLIR element type with what is expected.

    Bit for bit, as data movement is: equal NaNs are equal; 0.0 and -0.0 are not. What is expected
    within bounds may be off by them, and then by rounding to the type.

    Raises:
        LegoError: the shapes differ.
    """
    if isinstance(expected, Bounded):
        return _compare_bounded(expected, actual, name, dtype)
    if expected.shape != actual.shape:
        raise LegoError(
            f"'{name}' has shape {list(actual.shape)}, its reference {list(expected.shape)}"
        )
    differs = _bits(expected) != _bits(actual)
    count = int(np.count_nonzero(differs))
    if count == 0:
        return Comparison(name, True, 0, actual.size)
    want, have = dtypes.decode(expected[differs], dtype), dtypes.decode(actual[differs], dtype)
    return _difference(name, differs, want, have)


def _compare_bounded(expected: Bounded, actual: Array, name: str, dtype: str) -> Comparison:
    """Compare each element with what is expected, within bounds and rounding."""
    want, have = expected.values, dtypes.decode(actual, dtype)
    if want.shape != have.shape:
        raise LegoError(f"'{name}' has shape {list(have.shape)}, its reference {list(want.shape)}")
    relative, least = _ROUNDING.get(dtype, (0.0, 0.0))
    with np.errstate(all="ignore"):
        error = np.abs(have - want)
        limit = expected.bound + relative * (np.abs(want) + expected.bound) + least
        agree = (error <= limit) | (np.isnan(want) & np.isnan(have))
        if actual.dtype.kind == "f":
            agree |= have == want.astype(actual.dtype)  # what is too large is infinite
    if agree.all():
        largest = float(np.max(error[np.isfinite(error)], initial=0.0))
        return Comparison(name, True, 0, actual.size, max_abs=largest, exact=False)
    return _difference(name, ~agree, want[~agree], have[~agree], exact=False)


def _difference(
    name: str, differs: Array, want: Array, have: Array, *, exact: bool = True
) -> Comparison:
    """Return the comparison of tensors that differ.

    Args:
        name: of the argument.
        differs: where, as booleans.
        want: the expected values there.
        have: the values found there.
        exact: they were compared bit for bit.
    """
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(differs)), differs.shape))
    with np.errstate(all="ignore"):
        error = np.abs(have - want)
        error[(want == have) | (np.isnan(want) & np.isnan(have))] = 0.0
        relative = np.where(error == 0.0, 0.0, error / np.abs(want))
    return Comparison(
        name,
        equal=False,
        count=len(want),
        size=differs.size,
        first=first,
        expected=float(want[0]),
        actual=float(have[0]),
        max_abs=float(np.max(error)),
        max_rel=float(np.max(relative)),
        exact=exact,
    )


def _bits(array: Array) -> Array:
    """Return the elements as unsigned integers, so that NaNs compare by their bits."""
    unsigned: np.dtype[Any] = np.dtype(f"u{array.dtype.itemsize}")
    return np.ascontiguousarray(array).view(unsigned).reshape(array.shape)
