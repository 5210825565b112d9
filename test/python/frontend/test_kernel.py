"""Traced kernels: what is recorded, that it runs, and which mistakes are errors."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

N = 64
FLAT = lg.OrderBy(lg.Row(N))
MATRIX = lg.OrderBy(lg.Row(8, 8))


def kernel_of(body: Any, **types: Any) -> lg.Kernel:
    """A kernel of one block whose parameters have the types given."""
    return lg.kernel(grid=1, block=N, parameters=types)(body)


def test_runs_on_arrays_in_place() -> None:
    def axpy(alpha: Any, x: Any, y: Any) -> None:
        i = lg.thread_id()
        y[i] = alpha * x[i] + y[i]

    tensor = lg.Tensor["f32", FLAT]
    kernel = kernel_of(axpy, alpha=lg.Scalar["f32"], x=tensor, y=tensor)
    x, y = np.arange(N, dtype=np.float32), np.ones(N, dtype=np.float32)
    kernel(np.float32(2), x, y, device="sim")
    assert (y == 2 * x + 1).all()


@pytest.mark.parametrize("dtype", ["i8", "i32", "f16", "f64"])
def test_element_types(dtype: str) -> None:
    def copy(a: Any, b: Any) -> None:
        i = lg.thread_id()
        b[i] = a[i] + a[i] * 2

    tensor = lg.Tensor[dtype, FLAT]
    kernel = kernel_of(copy, a=tensor, b=tensor)
    kind = {"i8": np.int8, "i32": np.int32, "f16": np.float16, "f64": np.float64}[dtype]
    a = (np.arange(N) - 32).astype(kind)
    b = np.zeros_like(a)
    kernel(a, b, device="sim")
    assert (b == a * 3).all()


def test_index_arithmetic_is_python_arithmetic() -> None:
    """On indices, // and % round down and + - * mix with ints from either side."""

    def scatter(out: Any) -> None:
        i = lg.thread_id()
        j = (2 + i * 3 - 1) % N
        out[(j // 8) * 8 + j % 8] = 1

    kernel = kernel_of(scatter, out=lg.Tensor["i32", FLAT])
    out = np.zeros(N, dtype=np.int32)
    kernel(out, device="sim")
    expected = np.zeros(N, dtype=np.int32)
    expected[(2 + np.arange(N) * 3 - 1) % N] = 1
    assert (out == expected).all()


def test_loops_nest_and_may_depend_on_values() -> None:
    def count(out: Any) -> None:
        i = lg.thread_id()
        out[i] = 0
        for _ in lg.loop(i):
            for _ in lg.loop(6, start=2, step=2):
                out[i] = out[i] + 1

    kernel = kernel_of(count, out=lg.Tensor["i32", FLAT])
    out = np.full(N, -1, dtype=np.int32)
    kernel(out, device="sim")
    assert (out == 2 * np.arange(N)).all()


def test_a_user_permutation_becomes_functions_of_the_module() -> None:
    def f(i: Any, j: Any) -> Any:
        return i * 8 + (j + i) % 8

    def f_inv(flat: Any) -> Any:
        return flat // 8, (flat % 8 - flat // 8) % 8

    skewed = lg.OrderBy(lg.GenP([8, 8], f, f_inv))

    def copy(a: Any, b: Any) -> None:
        i, j = MATRIX.inv(lg.thread_id())
        b[i, j] = a[i, j]

    kernel = kernel_of(copy, a=lg.Tensor["i32", MATRIX], b=lg.Tensor["i32", skewed])
    text = str(kernel.module)
    assert "func.func private @f(" in text
    assert "func.func private @f_inv(" in text
    a = np.arange(64, dtype=np.int32).reshape(8, 8)
    b = np.zeros(64, dtype=np.int32)
    kernel(a, b, device="sim")
    assert (b[skewed.offsets()] == a).all()
    result = kernel.run(a, device="sim")  # on logical tensors: the functions are at hand
    assert (result.outputs["b"] == a).all()

    # The inverse is of the same functions: they stay what they are in the module.
    unskewed = lg.OrderBy(lg.GenP([8, 8], lg.inverse(f, f_inv)))
    back = kernel_of(copy, a=lg.Tensor["i32", skewed], b=lg.Tensor["i32", unskewed])
    assert str(back.module).split("func.func @")[0] in text
    assert (back.run(a, device="sim").outputs["b"] == a).all()


def test_the_module_is_in_the_lego_dialect_with_the_lines_of_python() -> None:
    def copy(a: Any, b: Any) -> None:
        i, j = MATRIX.inv(lg.thread_id())
        b[i, j] = a[j, i]

    kernel = kernel_of(copy, a=lg.Tensor["f32", MATRIX], b=lg.Tensor["f32", MATRIX])
    text = kernel.module.operation.get_asm(enable_debug_info=True)
    for name in ("lego.inv", "lego.load", "lego.store", "gpu.launch"):
        assert name in text
    line = inspect.getsourcelines(copy)[1] + 2
    assert f'test_kernel.py":{line}:' in text
    ptx = kernel.compilation().text("ptx")
    assert f".loc\t1 {line} " in ptx
    (name,) = re.findall(r'\.file\t1 "(.*)"', ptx)
    assert name.endswith("test_kernel.py")
    assert not Path(name).is_absolute()


def test_buffers_have_the_tensor_shape_where_it_lies_row_major() -> None:
    tiled = lg.OrderBy(lg.Row(8, 12)).TileBy([2, 3], [4, 4])
    assert lg.Tensor["f32", tiled].shape == (8, 12)
    column_major = lg.OrderBy(lg.Col(8, 12)).TileBy([2, 3], [4, 4])
    assert lg.Tensor["f32", column_major].shape == (96,)


def test_artifact_names_arguments_and_access() -> None:
    def copy(source: Any, target: Any) -> None:
        i = lg.thread_id()
        target[i] = source[i]

    tensor = lg.Tensor["f32", FLAT]
    artifact = kernel_of(copy, source=tensor, target=tensor).compile()
    assert [(a.name, a.access) for a in artifact.arguments] == [
        ("source", "read"),
        ("target", "write"),
    ]


# Mistakes. Each is one error at the Python line that made it.
def wrong(body: Any, **types: Any) -> LegoError:
    types = types or {"a": lg.Tensor["f32", MATRIX]}
    with pytest.raises(LegoError) as info:
        _ = kernel_of(body, **types).module
    return info.value


def line_of(error: LegoError) -> str:
    assert error.location is not None
    assert error.source is not None
    return error.source.splitlines()[error.location.line - 1].strip()


def test_wrong_number_of_indices() -> None:
    def body(a: Any) -> None:
        a[lg.thread_id()] = 0.0

    error = wrong(body)
    assert "takes 2 indices (8, 8), got 1" in error.message
    assert line_of(error) == "a[lg.thread_id()] = 0.0"


def test_wrong_number_of_indices_of_a_layout() -> None:
    def body(a: Any) -> None:
        MATRIX.apply(lg.thread_id())

    error = wrong(body)
    assert "takes 2 indices" in error.message
    assert line_of(error) == "MATRIX.apply(lg.thread_id())"


def test_types_do_not_mix() -> None:
    def body(a: Any) -> None:
        i, j = MATRIX.inv(lg.thread_id())
        a[i, j] = a[i, j] + i

    assert "a value of type f32 is needed, not index" in wrong(body).message


def test_no_truth_at_trace_time() -> None:
    def body(a: Any) -> None:
        if lg.thread_id():
            a[0, 0] = 1.0

    error = wrong(body)
    assert "truth of a kernel value" in error.message
    assert line_of(error) == "if lg.thread_id():"


def test_no_break_out_of_a_loop() -> None:
    def body(a: Any) -> None:
        for _ in lg.loop(4):
            break

    assert "left before its end" in wrong(body).message


def test_a_kernel_that_returns_a_value_is_an_error() -> None:
    def body(a: Any) -> Any:
        return a[0, 0]

    assert "returns a value" in wrong(body).message


def test_parameters_need_types() -> None:
    def body(a: Any) -> None:
        a[0, 0] = 1.0

    with pytest.raises(LegoError, match="parameter 'a' of kernel 'body' is not annotated"):
        _ = lg.kernel(grid=1, block=1)(body).module


def test_symbolic_layouts_need_values() -> None:
    symbolic = lg.parse_layout("OrderBy(Row(M, M))")

    def body(a: Any) -> None:
        symbolic.inv(lg.thread_id())

    assert "symbolic sizes (M)" in wrong(body).message


def test_unknown_types_and_sizes() -> None:
    with pytest.raises(LegoError, match="'f31' is no element type"):
        lg.Tensor["f31", MATRIX]
    with pytest.raises(LegoError, match="annotated as"):
        lg.Tensor["f32"]
    with pytest.raises(LegoError, match="positive integers"):
        lg.kernel(grid=0, block=1)(lambda: None)
    with pytest.raises(LegoError, match="positive integers"):
        lg.kernel(grid=(1, 2, 3, 4), block=1)(lambda: None)


def test_permutation_functions_of_one_name() -> None:
    """Layouts print their functions by name, so two of one name would be taken for one."""

    def skewed(by: int) -> lg.Layout:
        def f(i: Any, j: Any) -> Any:
            return i * 8 + (j + by * i) % 8

        def f_inv(flat: Any) -> Any:
            return flat // 8, (flat % 8 - by * (flat // 8)) % 8

        return lg.OrderBy(lg.GenP([8, 8], f, f_inv))

    def copy(a: Any, b: Any) -> None:
        i, j = MATRIX.inv(lg.thread_id())
        b[i, j] = a[i, j]

    types = {"a": lg.Tensor["i32", skewed(1)], "b": lg.Tensor["i32", skewed(3)]}
    assert "'f' has the name of another permutation function" in wrong(copy, **types).message

    def f(a: Any) -> None:
        a[0, 0] = 1

    one = skewed(1)
    assert "'f' has the name of the kernel" in wrong(f, a=lg.Tensor["i32", one]).message
    same = {"a": lg.Tensor["i32", one], "b": lg.Tensor["i32", one]}
    _ = kernel_of(copy, **same).module  # the very functions may come twice


def test_operations_outside_of_a_kernel() -> None:
    for call in (lg.thread_id, lg.block_id, lg.barrier, lambda: lg.shared("f32", MATRIX)):
        with pytest.raises(LegoError, match="only inside a kernel"):
            call()
    with pytest.raises(LegoError, match="only inside a kernel"):
        list(lg.loop(3))


def test_a_mistake_leaves_nothing_behind() -> None:
    """After a failed trace the next kernel traces as if nothing had been."""

    def bad(a: Any) -> None:
        a[0] = 1.0

    def good(a: Any) -> None:
        a[0, 0] = 1.0

    wrong(bad)
    _ = kernel_of(good, a=lg.Tensor["f32", MATRIX]).module
    with pytest.raises(LegoError, match="only inside a kernel"):
        lg.barrier()


def test_wrong_arrays_are_errors() -> None:
    def copy(a: Any) -> None:
        a[0, 0] = 1.0

    kernel = kernel_of(copy, a=lg.Tensor["f32", MATRIX])
    with pytest.raises(LegoError, match="a"):
        kernel(np.zeros((8, 9), dtype=np.float32), device="sim")
    with pytest.raises(LegoError, match="a"):
        kernel(np.zeros((8, 8), dtype=np.float64), device="sim")
    with pytest.raises(LegoError, match="1 argument"):
        kernel(device="sim")
