"""Mistakes in kernels that Python alone would let pass, or tell in words of its own."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

LINE = lg.OrderBy(lg.Row(32))
TYPES = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}


def kernel_of(value: Any, dtype: str = "f32") -> lg.Kernel:
    """A kernel that stores what `value` makes of an input and the thread's number."""

    def stores(a: Any, b: Any) -> None:
        i = lg.thread_id()
        b[i] = value(a, i)

    kind = lg.Tensor[dtype, LINE]
    return lg.kernel(grid=1, block=32, parameters={"a": kind, "b": kind})(stores)


def computed(value: Any, a: Any, dtype: str = "f32") -> Any:
    b = np.full_like(a, 99)
    kernel_of(value, dtype)(a, b, device="sim")
    return b


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (lambda a, i: a[i] if i == 0 else a[0], "the truth of a kernel value is not known"),
        (lambda a, i: a[i] if i != 0 else a[0], "the truth of a kernel value is not known"),
        (lambda a, i: a[i] if a[i] < 3 else a[0], "the truth of a kernel value is not known"),
        (lambda a, i: a[i] if a[i] >= a[0] else a[0], "the truth of a kernel value is not known"),
        (lambda a, i: a[lg.thread_id(0)], "the axis is x, y or z, not 0"),  # type: ignore[arg-type]
        (lambda a, i: a[lg.thread_id("xy")], "the axis is x, y or z, not 'xy'"),
        (lambda a, i: a[i // 0], "division by zero"),
        (lambda a, i: a[i % 0], "division by zero"),
        (lambda a, i: a[i] + i, r'(?s)f32 is needed, not index.*hint: \.to\("f32"\)'),
        (lambda a, i: a[i + a[i]], "index is needed, not f32"),
        (lambda a, i: a.view(32)[i], "32 is no layout"),
        (lambda a, i: lg.shared("f32", 32)[i], "32 is no layout"),  # type: ignore[arg-type]
        (lambda a, i: lg.shared("float", LINE)[i], "test_mistakes.py:.*'float' is no element"),
        (lambda a, i: lg.zeros(4, "f32")[0], "positive integers, not 4"),  # type: ignore[arg-type]
        (lambda a, i: lg.zeros((4,), "float")[0], "test_mistakes.py:.*'float' is no element"),
        (lambda a, i: lg.gelu(i), "'gelu' is for kernel values of floating point, not index"),
        (lambda a, i: lg.gelu(1.0), "'gelu' is for kernel values of floating point, not 1.0"),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_known_while_a_kernel_is_traced(value: Any, says: str) -> None:
    with pytest.raises(LegoError, match=says) as info:
        kernel_of(value).module  # noqa: B018
    assert "test_mistakes.py" in str(info.value.location)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("i8", 128),
        ("i8", -129),
        ("i32", 2**31),
        ("i64", 2**63),
        ("i32", 1.5),
        ("f16", 65520.0),
        ("f16", 1e9),
        ("f32", 1e39),
        ("f64", 10**400),
    ],
)
def test_numbers_that_a_type_does_not_have(dtype: str, number: Any) -> None:
    with pytest.raises(LegoError, match=re.escape(f"type {dtype} is needed, not {number}")):
        kernel_of(lambda a, i: a[i] + number, dtype).module  # noqa: B018


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("i8", 127),
        ("i8", -128),
        ("i32", -(2**31)),
        ("i64", 2**63 - 1),
        ("f16", 65504.0),
        ("f32", float("inf")),
        ("f32", float("nan")),
        ("f16", float("-inf")),
    ],
)
def test_the_outermost_numbers_of_a_type(dtype: str, number: Any) -> None:
    a = np.zeros(32, TYPES[dtype])
    assert np.array_equal(
        computed(lambda a, i: a[i] + number, a, dtype), np.full_like(a, number), equal_nan=True
    )


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i32"])
def test_the_negative_of_zero(dtype: str) -> None:
    """As in NumPy, bit by bit: -0.0 of 0.0, and 0 of 0."""
    a = (np.arange(32) % 3 - 1).astype(TYPES[dtype])
    assert computed(lambda a, i: -a[i], a, dtype).tobytes() == (-a).tobytes()


@pytest.mark.parametrize("step", [0, -1])
def test_loops_count_up(step: int) -> None:
    def looped(a: Any, i: Any) -> Any:
        for k in lg.loop(0, start=4, step=step):
            a[k] = a[i]
        return a[i]

    def folded(a: Any, i: Any) -> Any:
        return lg.fold(0, a[i], start=4, step=step)(lambda k, x: x)

    for value in (looped, folded):
        with pytest.raises(LegoError, match=f"step of a loop is a positive number, not {step}"):
            kernel_of(value).module  # noqa: B018


def test_a_value_after_its_loop() -> None:
    def last(a: Any, i: Any) -> Any:
        x = a[i]
        for k in lg.loop(4):
            x = a[k]
        return x

    with pytest.raises(LegoError, match=r"(?s)does not dominate this use.*hint: .*lg\.fold"):
        kernel_of(last).module  # noqa: B018


def test_a_value_after_its_kernel() -> None:
    kept: list[Any] = []

    def keep(a: Any, i: Any) -> Any:
        kept.append(a[i])
        return a[i]

    kernel_of(keep).module  # noqa: B018
    (value,) = kept
    for use in (lambda: value + 1, lambda: -value, lambda: value + value):
        with pytest.raises(LegoError, match="a value of kernel 'stores' is used outside of it"):
            use()
    with pytest.raises(LegoError, match="a value of kernel 'stores' is used outside of it"):
        kernel_of(lambda a, i: a[i] + value).module  # noqa: B018


@pytest.mark.parametrize("name", ["<lambda>", "größe", "a b", "add"])
def test_names_that_ptx_does_not_take(name: str) -> None:
    def double(a: Any) -> None:
        a[lg.thread_id()] = a[lg.thread_id()] * 2

    double.__name__ = name
    kernel = lg.kernel(grid=1, block=32, parameters={"a": lg.Tensor["f32", LINE]})(double)
    a = np.ones(32, np.float32)
    kernel(a, device="sim")
    assert (a == 2).all()


@pytest.mark.parametrize("body", [lambda a: None, lambda a: lg.barrier()])
def test_a_kernel_that_writes_nothing_runs(body: Any) -> None:
    kernel = lg.kernel(grid=3, block=32, parameters={"a": lg.Tensor["f32", LINE]})(body)
    a = np.ones(32, np.float32)
    kernel(a, device="sim")
    assert (a == 1).all()
    assert [launch.grid for launch in kernel.compile("sm_80").launches] == [(3, 1, 1)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"grid": 2**70}, "grid is one to three positive integers"),
        ({"block": True}, "block is one to three positive integers"),
        ({"params": {"buffers": 2}}, "has params and no schedule"),
        ({"schedule": "cp_async", "params": {"stages": "2"}}, "integer of at least 0, not '2'"),
        ({"schedule": "cp_async", "params": {"stages": -1}}, "integer of at least 0, not -1"),
    ],
)
def test_wrong_arguments_of_the_decorator(arguments: Any, says: str) -> None:
    with pytest.raises(LegoError, match=says):
        lg.kernel(**{"grid": 1, "block": 1, **arguments})(lambda: None)


def test_what_is_no_function() -> None:
    with pytest.raises(LegoError, match=r"a kernel is a function, not <built-in function len>"):
        lg.kernel(grid=1, block=1)(len)


@pytest.mark.parametrize("alignment", [0, 3, "16", 16.0])
def test_wrong_alignments(alignment: Any) -> None:
    with pytest.raises(LegoError, match="a power of two in bytes"):
        lg.TensorType("f32", LINE, alignment)


def test_a_stage_that_there_is_not() -> None:
    with pytest.raises(LegoError, match=r"(?s)stage 'sass'.*hint: stages: placed, index"):
        kernel_of(lambda a, i: a[i]).compilation().text("sass")


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (lambda a, i: math.exp(a[i]), r"lg\.exp takes"),
        (lambda a, i: np.sqrt(a[i]), r"lg\.sqrt takes"),
        (lambda a, i: np.cbrt(a[i]), r"functions of kernel values are lg\.exp"),
        (lambda a, i: abs(a[i]), r"lg\.abs\(x\)"),
        (lambda a, i: np.abs(a[i]), r"lg\.abs\(x\)"),
        (lambda a, i: next(a[k] for k in range(i)), r"lg\.loop\(n\)"),
        (lambda a, i: a[i] ** 2, r"functions of kernel values are"),
        (lambda a, i: lg.exp2(a[i], fast=True), None),  # type: ignore[call-arg]
    ],
)
def test_a_type_error_of_python_is_worded_with_its_location(value: Any, hint: str | None) -> None:
    with pytest.raises(LegoError, match=r"test_mistakes\.py:\d+:\d+: error: Python") as info:
        kernel_of(value).module  # noqa: B018
    if hint is None:
        assert info.value.hint is None
        assert "keyword argument 'fast'" in info.value.message
    else:
        assert re.search(hint, info.value.hint or "")


def test_a_kernel_takes_arrays_by_position_only() -> None:
    kernel, x = kernel_of(lambda a, i: a[i]), np.ones(32, np.float32)
    for call in (lambda: kernel(a=x, b=x.copy()), lambda: kernel.run(a=x)):
        with pytest.raises(LegoError, match=r"no keyword argument 'a'") as info:
            call()
        assert "stores(a, b)" in str(info.value.hint)
        assert info.value.location is not None
        assert info.value.location.file == __file__


def test_parameters_may_be_positional_only() -> None:
    def copies(a: Any, /, b: Any) -> None:
        b[lg.thread_id()] = a[lg.thread_id()]

    kind = lg.Tensor["f32", LINE]
    kernel = lg.kernel(grid=1, block=32, parameters={"a": kind, "b": kind})(copies)
    b = np.zeros(32, np.float32)
    kernel(np.ones(32, np.float32), b, device="sim")
    assert b.all()


def test_errors_through_a_symbolic_link_point_at_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(Path(lg.__file__).parents[1])
    program = tmp_path / "k.py"
    program.write_text(
        "import lego_mlir as lg\n"
        "line = lg.OrderBy(lg.Row(32))\n"
        "@lg.kernel(grid=1, block=32)\n"
        "def k(a: lg.Tensor['f32', line]):\n"
        "    a[0] = lg.thread_id() // 0\n"
        "try:\n"
        "    k.module\n"
        "except lg.LegoError as e:\n"
        "    print(e)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "linked")}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, check=True
    )
    assert f"{program}:5:12: error: division by zero" in done.stdout
