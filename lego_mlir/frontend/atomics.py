"""Atomic updates: elements that several threads change together.

Each takes a tensor in global or shared memory, the index of an element, and a value. It changes the
element as a whole, among all threads that update it so, and returns what stood there before. It
orders no other accesses: what other threads wrote before is known to be there after `lg.barrier()`,
or in the next kernel. An index without an element, in a partial tile, updates nothing and gives 0.

In kernels on tiles the index may have tiles, and the value is a tile, or a number for all of them:
each element is an update, in no order, and nothing is returned.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.trace import current
from lego_mlir.frontend.values import Value


def atomic_add(tensor: TensorValue, index: Any, value: Any) -> Value | None:
    """Add a value to an element atomically, and return the old value.

        lg.atomic_add(histogram, bucket, 1)

    Floating-point values are added in no fixed order, so sums may differ in their last bits.

    Args:
        tensor: of i16, i32, i64, u16, u32, u64, f16, bf16, f32 or f64.
        index: of one element, as in `tensor[index]`: a number or value, or a tuple of these.
        value: a kernel value of the element type, or a number.

    Raises:
        LegoError: the element type has no such update, or the index is that of a slice.
    """
    return _updated("add", tensor, index, value)


def atomic_max(tensor: TensorValue, index: Any, value: Any) -> Value | None:
    """Replace an element by a greater value atomically (NaN by NaN); return the old value."""
    return _updated("max", tensor, index, value)


def atomic_min(tensor: TensorValue, index: Any, value: Any) -> Value | None:
    """Replace an element by a smaller value atomically (NaN by NaN); return the old value."""
    return _updated("min", tensor, index, value)


def atomic_and(tensor: TensorValue, index: Any, value: Any) -> Value | None:
    """Replace an integer by its bitwise `and` with a value; return the old value."""
    return _updated("and", tensor, index, value)


def atomic_or(tensor: TensorValue, index: Any, value: Any) -> Value | None:
    """Replace an integer by its bitwise `or` with a value; return the old value."""
    return _updated("or", tensor, index, value)


def atomic_xor(tensor: TensorValue, index: Any, value: Any) -> Value | None:
    """Replace an integer by its bitwise `xor` with a value; return the old value."""
    return _updated("xor", tensor, index, value)


def atomic_exchange(tensor: TensorValue, index: Any, value: Any) -> Value | None:
    """Replace an element by a value atomically, and return the old value."""
    return _updated("exchange", tensor, index, value)


def _updated(kind: str, tensor: Any, index: Any, value: Any) -> Value | None:
    trace = current(f"atomic_{kind}")
    if not isinstance(tensor, TensorValue):
        raise trace.error(
            f"atomic_{kind} of {tensor!r}, which is no tensor",
            hint=f"lg.atomic_{kind}(tensor, index, value)",
        )
    return tensor.update(kind, index, value)
