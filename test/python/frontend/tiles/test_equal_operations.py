"""Equal operations of kernels on tiles are recorded once."""

from __future__ import annotations

from typing import Any

import lego_mlir as lg

ROWS = lg.OrderBy(lg.Row(64, 128))


def text(function: Any) -> str:
    """The module of a kernel of four warps on rows of f32."""
    kinds = {name: lg.TensorType("f32", ROWS) for name in "ab"}
    return str(lg.kernel(grid=8, warps=4, parameters=kinds)(function).module)


def test_what_is_equal_is_recorded_once() -> None:
    def kernel(a: Any, b: Any) -> None:
        row = lg.block_id() * 8
        total = lg.sum(a[row, :], axis=0, keepdims=True)
        b[row, :] = lg.exp(a[row, :] - total) + lg.exp(a[row + 1, :] - total)
        for k in lg.loop(4):
            b[row + 1, :] = lg.exp(a[row + 1, :] + k.to("i32").to("f32")) - total

    made = text(kernel)
    assert made.count("lego.load") == 4  # something may be stored between loads
    assert made.count("arith.constant 8 : index") == 2  # one is of the host
    assert made.count("lego.broadcast") == 1


def test_branches_do_not_see_each_other() -> None:
    def kernel(a: Any, b: Any) -> None:
        i = lg.block_id()
        row = a[i, :]
        b[i, :] = lg.cond(i < 4, lambda: row * 2.0, lambda: row * 2.0)
        b[i + 8, :] = row * 2.0

    assert text(kernel).count("arith.mulf") == 3


def test_a_bound_is_of_its_own_value() -> None:
    def kernel(a: Any, b: Any) -> None:
        i = lg.block_id()
        before, again = i + 4, i + 4
        bounded = again.below(8)
        b[before, :] = a[bounded, :]
        b[i + 5, :] = a[(i + 6).below(9), :]
        b[i + 6, :] = a[i + 6, :]

    lines = [line for line in text(kernel).splitlines() if "arith.addi" in line]
    assert sum("lego.bounds" in line for line in lines) == 2
    assert len(lines) == 5
