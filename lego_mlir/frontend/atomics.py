"""Atomic updates: elements that several threads change together.

Each takes a tensor in global or shared memory, the index of an element, and a value. It changes the
element as a whole, among all threads that update it so, and returns what stood there before. It
orders no other accesses: what other threads wrote before is known to be there after `lg.barrier()`,
or in the next kernel. An index without an element, in a partial tile, updates nothing and gives 0.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.trace import current
from lego_mlir.frontend.values import Value


def atomic_add(tensor: TensorValue, index: Any, value: Any) -> Value:
    """Add to an element; what stood there before.

        lg.atomic_add(histogram, bucket, 1)

    Numbers of floating point are added in no fixed order: sums may differ in their last bits.

    Args:
        tensor: of i16, i32, i64, f16, bf16, f32 or f64.
        index: of one element, as in `tensor[index]`: a number or value, or a tuple of these.
        value: a kernel value of the element type, or a number.

    Raises:
        LegoError: the element type has no such update, or the index is that of a slice.
    """
    return _updated("add", tensor, index, value)


def atomic_max(tensor: TensorValue, index: Any, value: Any) -> Value:
    """Replace an element by a greater value, NaN by NaN; what stood there before."""
    return _updated("max", tensor, index, value)


def atomic_min(tensor: TensorValue, index: Any, value: Any) -> Value:
    """Replace an element by a lesser value, NaN by NaN; what stood there before."""
    return _updated("min", tensor, index, value)


def atomic_and(tensor: TensorValue, index: Any, value: Any) -> Value:
    """Keep those bits of an integer that a value has too; what stood there before."""
    return _updated("and", tensor, index, value)


def atomic_or(tensor: TensorValue, index: Any, value: Any) -> Value:
    """Set the bits of a value in an integer; what stood there before."""
    return _updated("or", tensor, index, value)


def atomic_xor(tensor: TensorValue, index: Any, value: Any) -> Value:
    """Flip the bits of a value in an integer; what stood there before."""
    return _updated("xor", tensor, index, value)


def atomic_exchange(tensor: TensorValue, index: Any, value: Any) -> Value:
    """Put a value in the place of an element; what stood there before."""
    return _updated("exchange", tensor, index, value)


def _updated(kind: str, tensor: Any, index: Any, value: Any) -> Value:
    trace = current(f"atomic_{kind}")
    if not isinstance(tensor, TensorValue):
        raise trace.error(
            f"atomic_{kind} of {tensor!r}, which is no tensor",
            hint=f"lg.atomic_{kind}(tensor, index, value)",
        )
    return tensor.update(kind, index, value)
