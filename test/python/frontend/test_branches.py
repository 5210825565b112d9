"""Ranges of numbers and what goes with them: which one, a value of several, a case of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

COUNT = 9
LINE = lg.OrderBy(lg.Row(COUNT))


def computed(function: Any) -> list[float]:
    """What a kernel stores by the number of its thread."""

    def kernel(a: Any, b: Any) -> None:
        i = lg.thread_id()
        b[i] = function(i, a)

    types = {name: lg.TensorType("f32", LINE) for name in "ab"}
    made = lg.kernel(grid=1, block=COUNT, parameters=types)(kernel)
    result = made.run(np.arange(COUNT, dtype=np.float32), device="sim")
    (out,) = result.outputs.values()
    return [float(x) for x in out]


def test_segments_are_consecutive_ranges_of_numbers() -> None:
    sizes = [2, 1, 4, 2]
    ranges = [k for k, n in enumerate(sizes) for _ in range(n)]
    inside = [i for n in sizes for i in range(n)]
    assert computed(lambda i, a: a[lg.segment(i, sizes)[0]]) == ranges
    assert computed(lambda i, a: a[lg.segment(i, sizes)[1]]) == inside


def test_a_search() -> None:
    """Of ranges that begin together the last is found."""
    starts = [0, 2, 2, 3, 8, 8]
    wanted = [max(k for k, start in enumerate(starts) if start <= i) for i in range(COUNT)]
    found = computed(lambda i, a: a[lg.search(i, 6, lambda k: lg.table(k, starts))])
    assert found == wanted
    assert computed(lambda i, a: a[lg.search(i, 1, lambda k: 0)]) == [0] * COUNT


def test_a_table() -> None:
    values = [7, 0, 3]
    assert computed(lambda i, a: a[lg.table(i % 3, values)]) == values * 3
    assert computed(lambda i, a: a[lg.table(i, [4] * COUNT)]) == [4] * COUNT


def test_a_value_of_several() -> None:
    found = computed(lambda i, a: a[lg.select(i % 3, [3, i, 1])])
    assert found == [3, 1, 1, 3, 4, 1, 3, 7, 1]


def test_a_bound_of_one_of_several_results() -> None:
    def function(i: Any, a: Any) -> Any:
        first, second = lg.cond(i < 4, lambda: (i, i + 1), lambda: (i - 4, i - 3))
        return a[second.below(COUNT)] + a[first.below(COUNT)]

    assert computed(function) == [2 * (i if i < 4 else i - 4) + 1 for i in range(COUNT)]


def test_cases() -> None:
    """One of them runs."""

    def function(i: Any, a: Any) -> Any:
        value, place = lg.choose(i % 3, [lambda: (-a[i], 8), lambda: (a[7], i), lambda: (a[5], 0)])
        return value + a[place]

    expected = [[-i + 8, 7 + i, 5][i % 3] for i in range(COUNT)]
    assert computed(function) == expected


def test_cases_that_return_nothing() -> None:
    def kernel(a: Any) -> None:
        i = lg.thread_id()

        def first() -> None:
            a[i] = 1.0

        def second() -> None:
            a[i] = 2.0

        assert lg.choose(i % 2, [first, second]) is None

    made = lg.kernel(grid=1, block=COUNT, parameters={"a": lg.TensorType("f32", LINE)})(kernel)
    (out,) = made.run(device="sim").outputs.values()
    assert list(out) == [1, 2, 1, 2, 1, 2, 1, 2, 1]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda i, a: lg.choose(i, [lambda: a[0], lambda: a[1]]), "number of lg.choose is 2, .* 2"),
        (lambda i, a: a[lg.select(i, [0, 1, 2])], "number of lg.select is 3, .* below 3"),
        (lambda i, a: a[lg.segment(i, [2, 2])[0]], "number of lg.segment is 4, .* below 4"),
        (lambda i, a: a[lg.table(i, [5, 6])], "index of a table is 2, .* below 2"),
        (lambda i, a: lg.pick(i, [a, a], LINE)[i], "number of a pick is 2, .* below 2"),
        (lambda i, a: a[(i * 1).below(8)], r"value of .below\(\) is 8, .* below 8"),
    ],
)
def test_numbers_that_are_outside_are_seen_when_it_runs(function: Any, message: str) -> None:
    with pytest.raises(LegoError, match=rf"{message}, in thread \(\d, 0, 0\)") as caught:
        computed(function)
    assert caught.value.location is not None
    assert caught.value.location.file.endswith("test_branches.py")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda i, a: lg.choose(2, [lambda: a[0], lambda: a[1]]), "number of lg.choose is 2"),
        (lambda i, a: lg.choose(i + 2, [lambda: a[0], lambda: a[1]]), "is 2 to 10, .* below 2"),
        (lambda i, a: a[lg.select(-1, [0, 1, 2])], "number of lg.select is -1"),
        (lambda i, a: a[lg.segment(4, [2, 2])[0]], "number of lg.segment is 4"),
        (lambda i, a: a[lg.table(2, [5, 6])], "index of a table is 2"),
        (lambda i, a: lg.pick(2, [a, a], LINE)[i], "number of a pick is 2"),
        (lambda i, a: a[(i + 8).below(8)], r"value of .below\(\) is 8 to 16"),
    ],
)
def test_numbers_that_are_surely_outside(function: Any, message: str) -> None:
    """They are errors of the compilation, with checks or without."""

    def kernel(a: Any, b: Any) -> None:
        i = lg.thread_id()
        b[i] = function(i, a)

    types = {name: lg.TensorType("f32", LINE) for name in "ab"}
    made = lg.kernel(grid=1, block=COUNT, parameters=types)(kernel)
    with pytest.raises(LegoError, match=message) as caught:
        made.compile()
    assert caught.value.location is not None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda i, a: a[lg.segment(i, [])[0]], "no sizes of ranges"),
        (lambda i, a: a[lg.segment(i, [2, 0])[0]], "no sizes of ranges"),
        (lambda i, a: a[lg.select(i, [])], "there are no values"),
        (lambda i, a: lg.table(i, []), r"\[\] is no table of numbers"),
        (lambda i, a: lg.table(i, [1, -1]), "no table of numbers"),
        (lambda i, a: lg.search(i, 0, lambda k: 0), "a search among 0 ranges"),
        (lambda i, a: lg.block_id().below(4), r"below\(4\) of <kernel value index>"),
        (lambda i, a: a[i].below(4), r"below\(4\) of <kernel value f32>"),
        (lambda i, a: lg.choose(i, []), "there are no cases"),
        (lambda i, a: lg.choose(i, [lambda: a[0], lambda: i]), "returns f32, another one index"),
        (lambda i, a: lg.choose(i, [lambda: a[0], lambda: None]), "another one nothing"),
        (lambda i, a: lg.choose(i, [lambda: "x"]), "returned 'x'"),
    ],
)
def test_wrong_uses_of_branches_are_errors(function: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        computed(function)


def test_segment_outside_of_a_kernel_is_an_error() -> None:
    with pytest.raises(LegoError, match="segment works only inside a kernel"):
        lg.segment(0, [1])
