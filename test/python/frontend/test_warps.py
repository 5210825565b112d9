# ruff: noqa: F821
"""`lg.mma`, and the vectors that operands are made of: positions, bits, concatenation."""

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import OrderBy, Row
from lego_mlir.analysis.instructions import mma_fragments
from lego_mlir.diagnostics import LegoError


@pytest.mark.parametrize(("dtype", "out"), [("f16", "f32"), ("bf16", "f32"), ("i8", "i32")])
def test_mma_multiplies_the_fragments_of_the_ptx_isa(dtype: str, out: str) -> None:
    bits = 8 if dtype == "i8" else 16
    left, right = mma_fragments.operand_a(bits), mma_fragments.operand_b(bits)
    total = mma_fragments.accumulator()
    k = left.shape[1]

    @lg.kernel(
        grid=1,
        block=32,
        reference="matmul",
        parameters={
            "a": lg.Tensor[dtype, OrderBy(Row(16, k))],
            "b": lg.Tensor[dtype, OrderBy(Row(k, 8))],
            "c": lg.Tensor[out, OrderBy(Row(16, 8))],
        },
    )
    def multiply(a: Any, b: Any, c: Any) -> None:
        lane = lg.thread_id()
        sums = c.view(total.layout)
        x, y = a.view(left.layout)[lane, :], b.view(right.layout)[lane, :]
        sums[lane, :] = lg.mma(x, y, lg.zeros([4], out))

    comparison = multiply.run(device="sim").comparison
    assert comparison is not None
    assert comparison.equal, str(comparison)


def test_positions_bits_and_concatenation() -> None:
    @lg.kernel(grid=1, block=1)
    def rearrange(
        x: lg.Tensor["f16", OrderBy(Row(2, 8))], y: lg.Tensor["f16", OrderBy(Row(12))]
    ) -> None:
        both = lg.concatenate([x[0, :].bitcast("i32"), x[1, :].bitcast("i32")])
        y[:] = lg.concatenate([both[[0, 5, -1]].bitcast("f16"), x[1, :][[7, 0, 7, 1, 2, 3]]])

    x = np.arange(16, dtype=np.float16).reshape(2, 8)
    y = np.zeros(12, np.float16)
    rearrange(x, y, device="sim")
    wanted = [0, 1, 10, 11, 14, 15, 15, 8, 15, 9, 10, 11]
    np.testing.assert_array_equal(y, np.array(wanted, np.float16))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda v: lg.mma(v, v, lg.zeros([4], "f32")), "8 elements of operand A|4 elements of"),
        (lambda v: lg.mma(v, v[0], v), "'mma' takes three vectors"),
        (lambda v: lg.mma(v, v, lg.zeros([4], "f64")), "no mma.sync multiplies f16 by f16"),
        (lambda v: lg.mma(v, v, lg.zeros([8], "f32")), "a lane has 4 elements of the accumulator"),
        (lambda v: lg.concatenate([v, v.bitcast("i32")]), "of one element type, not f16, i32"),
        (lambda v: lg.concatenate([v[:, None]]), "takes vectors of one dimension"),
        (lambda v: lg.concatenate([]), "not nothing"),
        (lambda v: v[[0, 8]], "are not positions in the vector"),
        (lambda v: v[[0, 1, 2]].bitcast("i32"), "are not whole elements of i32"),
        (lambda v: v.bitcast("i33"), "is no element type"),
    ],
)
def test_mistakes(use: Any, message: str) -> None:
    @lg.kernel(grid=1, block=32)
    def wrong(x: lg.Tensor["f16", OrderBy(Row(8))]) -> None:
        use(x[:])

    with pytest.raises(LegoError, match=message):
        _ = wrong.module
