"""Vectors in kernels of threads: products, loops that carry values, broadcasts, types."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.compiler.driver import Options
from lego_mlir.diagnostics import LegoError

TILE = lg.OrderBy(lg.Row(4, 8))


def traced(function: Any, **layouts: lg.Layout) -> lg.Kernel:
    """A kernel of one thread whose tensors are of f32."""
    kinds = {name: lg.TensorType("f32", layout) for name, layout in layouts.items()}
    return lg.kernel(grid=1, block=1, parameters=kinds)(function)


def text(function: Any, **layouts: lg.Layout) -> str:
    """The module of such a kernel."""
    return str(traced(function, **(layouts or {"a": TILE})).module)


def run(function: Any, *inputs: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Any:
    """What a kernel of one thread stores in its last tensor."""
    out = np.full(shape, np.nan, np.float32)
    sizes = [x.shape for x in (*inputs, out)]
    names = "abcd"[: len(sizes)]
    layouts = {n: lg.OrderBy(lg.Row(*size)) for n, size in zip(names, sizes, strict=True)}
    traced(function, **layouts)(*inputs, out, device="sim")
    return out


ROWS = np.arange(32, dtype=np.float32).reshape(4, 8)


def test_a_loop_that_carries_a_value() -> None:
    def kernel(a: Any, b: Any) -> None:
        @lg.fold(4, lg.zeros((8,), "f32"))
        def total(i: Any, total: Any) -> Any:
            return total + a[i, :]

        b[:] = total

    assert (run(kernel, ROWS, shape=(8,)) == ROWS.sum(axis=0)).all()


def test_a_loop_that_carries_two_and_has_other_bounds() -> None:
    def kernel(a: Any, b: Any) -> None:
        zero = lg.zeros((8,), "f32")

        @lg.fold(4, (zero, a[0, :]), start=1, step=2)
        def both(i: Any, total: Any, _last: Any) -> Any:
            return total + a[i, :], a[i, :]

        total, last = both
        b[0, :] = total
        b[1, :] = last

    want = np.stack([ROWS[1] + ROWS[3], ROWS[3]])
    assert (run(kernel, ROWS, shape=(2, 8)) == want).all()


def test_a_loop_without_iterations_yields_its_initial_value() -> None:
    def kernel(a: Any, b: Any) -> None:
        b[:] = lg.fold(0, a[2, :])(lambda _i, total: total + 1)

    assert (run(kernel, ROWS, shape=(8,)) == ROWS[2]).all()


def test_each_thread_multiplies_its_own_vectors() -> None:
    def product(a: Any, b: Any) -> None:
        x = a[:, :]
        b[:, :] = lg.dot(x, x.T, lg.full((4, 4), 1.0, "f32"))

    assert (run(product, ROWS, shape=(4, 4)) == ROWS @ ROWS.T + 1).all()


def test_accumulators_are_f32_and_i32_by_default() -> None:
    def kernel(a: Any) -> None:
        half, whole = a[:, :].to("f16"), a[:, :].to("i8")
        assert lg.dot(half, half.T).described == "vector<4x4xf32>"
        assert lg.dot(whole, whole.T).described == "vector<4x4xi32>"

    text(kernel)


def test_vectors_are_broadcast_as_numpy_does() -> None:
    rows, columns = ROWS[0].copy(), np.arange(4, dtype=np.float32)

    def kernel(a: Any, b: Any, c: Any, d: Any) -> None:
        d[:, :] = a[:, :] * b[:] - c[:][:, None] + b[0]

    want = ROWS * rows - columns[:, None] + rows[0]
    assert (run(kernel, ROWS, rows, columns, shape=(4, 8)) == want).all()


def test_a_row_and_a_column_make_a_tile() -> None:
    row, column = np.arange(8, dtype=np.float32), np.arange(4, dtype=np.float32)

    def kernel(a: Any, b: Any, c: Any) -> None:
        c[:, :] = b[:][:, None] + a[:][None, :]

    assert (run(kernel, row, column, shape=(4, 8)) == column[:, None] + row).all()


@pytest.mark.parametrize(
    ("path", "want"),
    [
        (("f16", "f32"), [-1.5, 0.25, 3.0, 7.75]),
        (("bf16", "f16", "f32"), [-1.5, 0.25, 3.0, 7.75]),
        (("i32", "f32"), [-1.0, 0.0, 3.0, 7.0]),
        (("i8", "i32", "f32"), [-1.0, 0.0, 3.0, 7.0]),
        (("f32",), [-1.5, 0.25, 3.0, 7.75]),
    ],
)
def test_elements_of_another_type(path: tuple[str, ...], want: list[float]) -> None:
    def kernel(a: Any, b: Any) -> None:
        value = a[:]
        for dtype in path:
            value = value.to(dtype)
        b[:] = value

    x = np.array([-1.5, 0.25, 3.0, 7.75], np.float32)
    assert run(kernel, x, shape=(4,)).tolist() == want


def test_an_index_becomes_a_number() -> None:
    def kernel(a: Any) -> None:
        for i in lg.loop(8):
            a[0, i] = i.to("f32") * 0.5

    x = np.zeros((4, 8), np.float32)
    traced(kernel, a=TILE)(x, device="sim")
    assert x[0].tolist() == [i / 2 for i in range(8)]


def loops(schedule: str | None, **params: int) -> lg.Kernel:
    """A kernel with a loop of eight iterations."""

    def kernel(a: Any) -> None:
        for i in lg.loop(8):
            a[0, i] = 1.0

    parameters = {"a": lg.TensorType("f32", TILE)}
    make = lg.kernel(grid=1, block=1, parameters=parameters, schedule=schedule, params=params)
    return make(kernel)


def test_a_kernel_has_its_schedule() -> None:
    stores = {
        schedule: loops(schedule).compilation().text("scheduled").count("memref.store")
        for schedule in (None, "unroll")
    }
    assert stores == {None: 1, "unroll": 4}


def test_options_may_name_another_schedule() -> None:
    compilation = loops("cp_async", stages=2).compilation(Options(schedule="unroll"))
    assert compilation.text("scheduled").count("memref.store") == 4


def test_params_are_those_that_the_schedule_has() -> None:
    with pytest.raises(LegoError, match="the schedule 'unroll' has no parameter 'buffers'"):
        loops("unroll", buffers=2).compilation().text("scheduled")


def carries_nothing(a: Any) -> None:
    lg.fold(4, a[0, :])(lambda _i, _total: None)


def carries_another_type(a: Any) -> None:
    lg.fold(4, a[0, :])(lambda i, _total: a[:, i])


def carries_more(a: Any) -> None:
    lg.fold(4, a[0, :])(lambda _i, total: (total, total))


@pytest.mark.parametrize(
    ("use", "says", "hint"),
    [
        (
            carries_nothing,
            "vector<8xf32>, its function returns nothing",
            "returns the values",
        ),
        (
            carries_another_type,
            "carries vector<8xf32>, .* returns vector<4xf32>",
            "returns the values",
        ),
        (carries_more, "returns vector<8xf32>, vector<8xf32>", "returns the values"),
        (lambda _a: lg.fold(4, "0"), "a loop takes kernel values, not '0'", "lg.full"),
        (lambda _a: lg.zeros((4, 0), "f32"), "positive integers, not \\(4, 0\\)", ""),
        (lambda _a: lg.zeros((4,), "f3"), "'f3' is no element type", "known: f16"),
        (lambda a: a[0, :].to("f3"), "'f3' is no element type", "known: f16"),
        (lambda a: a[:, :] + a[:, 0], "vector<4x8xf32> and vector<4xf32> do not go", "column"),
        (lambda a: a[:, 0][:, :], "names all 1 dimensions of vector<4xf32>", "column"),
        (lambda a: a[:, 0]["x"], "the index of a vector's element is a number", ""),
        (lambda a: lg.dot(a[:, :], a[:, :]), "no GEMM of vector<4x8xf32> and", "columns of"),
        (lambda a: lg.dot(a[0, :], a), "two matrices, not vector<8xf32> and <kern", "a\\[m, k"),
        (
            lambda a: lg.dot(a[:, :], a[:, :].T, a[:, :]),
            "size 4×4 is added to vector<4x8xf32>",
            "",
        ),
        (
            lambda a: lg.dot(a[:, :], a[:, :].T, lg.zeros((4, 4), "i32")),
            "a GEMM of f32 is accumulated in i32",
            "floating point is summed",
        ),
    ],
)
def test_wrong_uses_of_tiles_are_errors_with_a_hint(use: Any, says: str, hint: str) -> None:
    def kernel(a: Any) -> None:
        use(a)

    with pytest.raises(LegoError, match=says) as caught:
        text(kernel)
    assert re.search(hint, caught.value.hint or "")
    assert caught.value.location is not None
    assert caught.value.location.file.endswith("test_tiles.py")
