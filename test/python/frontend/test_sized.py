"""Layouts of sizes that only the kernel knows, and tensors that it chooses among."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import OrderBy, Row, parse_layout
from lego_mlir.diagnostics import LegoError

WIDTH = 4
ROWS = [3, 5, 2]
COUNT = sum(ROWS)
MATRIX = parse_layout("OrderBy(Row(M, 4))")


def stacked(function: Any, names: str = "abc") -> lg.Kernel:
    """A kernel of a block for each row of several matrices."""
    types = {
        name: lg.TensorType("f32", OrderBy(Row(rows, WIDTH)))
        for name, rows in zip(names, ROWS, strict=False)
    }
    types["out"] = lg.TensorType("f32", OrderBy(Row(COUNT, WIDTH)))
    return lg.kernel(grid=COUNT, block=WIDTH, parameters=types)(function)


def test_one_of_several_tensors() -> None:
    def kernel(a: Any, b: Any, c: Any, out: Any) -> None:
        which, inside = lg.segment(lg.block_id(), ROWS)
        layout = lg.sized(MATRIX, M=lg.table(which, ROWS))
        backwards = lg.sized(parse_layout("OrderBy(GenP([M], reverse))"), M=lg.table(which, ROWS))
        (row,) = backwards.inv(inside)
        out[lg.block_id(), lg.thread_id()] = lg.pick(which, [a, b, c], layout)[row, lg.thread_id()]

    arrays = [np.arange(n * WIDTH, dtype=np.float32).reshape(n, WIDTH) + 100 * n for n in ROWS]
    (out,) = stacked(kernel).run(*arrays, device="sim").outputs.values()
    np.testing.assert_array_equal(out, np.concatenate([x[::-1] for x in arrays]))


def test_partial_tiles_of_a_size_that_only_the_kernel_knows() -> None:
    tiled = parse_layout("OrderBy(Row(M, 4)).TileBy([ceildiv(M, 2), 1], [2, 4])")

    def kernel(a: Any, b: Any, out: Any) -> None:
        which = lg.block_id() % 2
        layout = lg.sized(tiled, M=lg.table(which, ROWS[:2]))
        tensor = lg.pick(which, [a, b], layout)
        out[lg.block_id(), lg.thread_id()] = tensor[1, 0, 1, lg.thread_id()]

    arrays = [np.full((n, WIDTH), n, np.float32) for n in ROWS[:2]]
    (out,) = stacked(kernel, "ab").run(*arrays, device="sim").outputs.values()
    # Of three rows the second tile has one, of five it has two.
    np.testing.assert_array_equal(out[:4, 0], [0, 5, 0, 5])


def test_sizes_that_are_numbers_leave_a_plain_layout() -> None:
    def kernel(a: Any, b: Any, c: Any, out: Any) -> None:
        which = lg.block_id() % 1
        layout = lg.sized(MATRIX, M=lg.table(which, [3, 3]))
        assert layout == OrderBy(Row(3, 4))
        out[lg.block_id(), lg.thread_id()] = lg.pick(0, [a], layout)[2, lg.thread_id()]

    (out,) = stacked(kernel).run(device="sim").outputs.values()
    assert len(np.unique(out, axis=0)) == 1


def test_what_is_only_passed() -> None:
    types: dict[str, Any] = {
        "nothing": lg.frontend.EmptyType("f32", (0, 4)),
        "out": lg.TensorType("f32", OrderBy(Row(4))),
    }

    def kernel(nothing: Any, out: Any) -> None:
        assert nothing is None
        out[lg.thread_id()] = 3.0

    made = lg.kernel(grid=1, block=4, parameters=types)(kernel)
    result = np.zeros(4, np.float32)
    made(np.zeros((0, 4), np.float32), result, device="sim")
    assert list(result) == [3] * 4


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: lg.sized(MATRIX, N=4), "has the symbolic sizes M, given are N"),
        (lambda a: lg.sized(OrderBy(Row(4)), M=4), "has the symbolic sizes none, given are M"),
        (lambda a: lg.pick(0, [], OrderBy(Row(4))), "pick: tensors of no type"),
    ],
)
def test_wrong_sized_layouts_are_errors(function: Any, message: str) -> None:
    made = lg.kernel(grid=1, block=1, parameters={"a": lg.TensorType("f32", OrderBy(Row(4)))})
    with pytest.raises(LegoError, match=message):
        made(lambda a: function(a) and None).compilation().text("index")


def test_sized_outside_of_a_kernel_is_an_error() -> None:
    with pytest.raises(LegoError, match="sized works only inside a kernel"):
        lg.sized(MATRIX, M=4)
