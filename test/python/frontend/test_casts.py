"""Conversions: what becomes of indices, truth values and numbers as other types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

COUNT = 8
LINE = lg.OrderBy(lg.Row(COUNT))
FLOATS, INTEGERS = ("f16", "bf16", "f32", "f64"), ("i8", "i16", "i32", "i64")
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
DTYPES |= {name: np.dtype(f"int{name[1:]}") for name in INTEGERS}


def computed(function: Any, dtype: str) -> Any:
    """What the function of a thread's number gives, converted to a type; bf16 as f32."""
    stored = "f32" if dtype == "bf16" else dtype

    def kernel(out: Any) -> None:
        i = lg.thread_id()
        out[i] = function(i).to(dtype).to(stored)

    types = {"out": lg.TensorType(stored, LINE)}
    result = lg.kernel(grid=1, block=COUNT, parameters=types)(kernel).run(device="sim")
    return result.outputs["out"]


FAR = lg.OrderBy(lg.Row(COUNT, 3 << 29))  # offsets that pass 2^32

INDICES = {
    "far": (lambda i: FAR.apply(i, 5), lambda i: i * (3 << 29) + 5),
    "negative": (lambda i: i - 5, lambda i: i - 5),
    "far and negative": (lambda i: 7 - FAR.apply(i, 5), lambda i: 7 - (i * (3 << 29) + 5)),
}


@pytest.mark.parametrize("what", INDICES)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_an_index_as_a_number(dtype: str, what: str) -> None:
    """All 64 bits of it count; what is left of them in a narrow integer is their last."""
    function, expected = INDICES[what]
    numbers = np.array([expected(i) for i in range(COUNT)], np.int64)
    if dtype == "bf16":
        want = (numbers.astype(np.float32).view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32)
        np.testing.assert_allclose(computed(function, dtype), want, rtol=2**-8)
        return
    with np.errstate(over="ignore"):  # f16 has no number of that size
        want = numbers.astype(DTYPES[dtype])
    np.testing.assert_array_equal(computed(function, dtype), want)


def test_a_small_index_takes_an_instruction_of_32_bits() -> None:
    def kernel(out: Any) -> None:
        i = lg.thread_id()
        out[i] = i.to("f32")

    types = {"out": lg.TensorType("f32", LINE)}
    ptx = lg.kernel(grid=1, block=COUNT, parameters=types)(kernel).compilation().text("ptx")
    assert "cvt.rn.f32.u32" in ptx


PARTIAL = lg.parse_layout("OrderBy(Row(5)).TileBy([ceildiv(5, 4)], [4])")


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_a_truth_value_is_1_or_0(dtype: str) -> None:
    found = computed(lambda i: PARTIAL.mask(i // 4, i % 4), dtype)
    np.testing.assert_array_equal(found, [1, 1, 1, 1, 1, 0, 0, 0])


def test_a_truth_value_as_an_index() -> None:
    found = computed(lambda i: PARTIAL.mask(i // 4, i % 4).below(2) * 3, "i32")
    np.testing.assert_array_equal(found, [3, 3, 3, 3, 3, 0, 0, 0])


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x + x,  # an addition of one bit
        lambda x: -x,
        lambda x: lg.maximum(x, x),  # of signed numbers: false
        lambda x: x // x,
    ],
)
def test_arithmetic_of_truth_values_is_an_error(operation: Any) -> None:
    def kernel(out: Any) -> None:
        i = lg.thread_id()
        out[i] = operation(PARTIAL.mask(i // 4, i % 4)).to("f32")

    types = {"out": lg.TensorType("f32", LINE)}
    with pytest.raises(LegoError, match="of truth values, which are no numbers") as e:
        _ = lg.kernel(grid=1, block=COUNT, parameters=types)(kernel).module
    assert '.to("i32")' in str(e.value.hint)
