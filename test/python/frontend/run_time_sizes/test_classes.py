"""Classes of launches: which sizes make them, and that tensors of one key have one class."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lego_mlir as lg
from lego_mlir import LegoError
from lego_mlir.algebra import Col, OrderBy, size_symbol
from lego_mlir.frontend.host.launch_classes import LaunchClass, RunTimeSizes

ROWS = {"x": lg.Tensor["f32", "M, N<=1024|8192"], "y": lg.Tensor["f32", "M, N"]}


def tensor(*shape: int, strides: tuple[int, ...] | None = None) -> Any:
    """Return what a class is made of, as PyTorch's tensors have it."""
    steps = [1]
    for n in reversed(shape[1:]):
        steps.insert(0, steps[0] * n)
    return SimpleNamespace(shape=shape, stride=lambda: strides or tuple(steps))


def test_rows_make_classes_and_their_number_does_not() -> None:
    sizes = RunTimeSizes(ROWS)
    assert sizes.names == ("M", "N")
    assert sizes.dividing == ("N",)
    assert sizes.general == LaunchClass((), (("N", 8192),))
    assert sizes.of_sizes({"M": 16, "N": 1024}) == LaunchClass(("N",), (("N", 1024),))
    assert sizes.of_sizes({"M": 16, "N": 1025}) == LaunchClass(
        (), (("N", 8192),), least=(("N", 1025),)
    )
    assert str(sizes.of_sizes({"N": 1040})) == "16 divides N, 1025 <= N <= 8192"


@pytest.mark.parametrize(
    ("shape", "dividing"),
    [
        ("N", ("N",)),
        ("M{16}, N{8}", ()),
        ("M, 64", ()),
        ("B, M, N", ("M", "N")),
        ("M, N : S, 1", ("N", "S")),
        ("M, N : S{8}, T", ("N", "T")),
        ("64, N", ("N",)),
    ],
)
def test_the_sizes_that_rows_begin_and_end_at_make_classes(
    shape: str, dividing: tuple[str, ...]
) -> None:
    assert RunTimeSizes({"x": lg.Tensor["f32", shape]}).dividing == dividing


def test_a_promise_in_one_parameter_holds_for_all() -> None:
    sizes = RunTimeSizes({"x": lg.Tensor["f32", "M, N"], "y": lg.Tensor["f32", "N{16}"]})
    assert sizes.dividing == ()
    types = sizes.promised_types(sizes.general)
    assert str(types["x"].layout) == "OrderBy(Row(M, N{16}))"


def test_many_elements_make_a_class() -> None:
    sizes = RunTimeSizes({"x": lg.Tensor["f32", "M, 65536"], "y": lg.Tensor["f32", "M"]})
    assert not sizes.of_sizes({"M": 32767 - 1}).is_wide
    assert sizes.of_sizes({"M": 32767}).is_wide
    strided = RunTimeSizes({"x": lg.Tensor["f32", "M, N : S, 1"]})
    assert strided.of_sizes({"M": 2, "N": 1, "S": 2**31}).is_wide
    assert not strided.of_sizes({"M": 1, "N": 1, "S": 2**31}).is_wide


SIZES = st.integers(1, 200) | st.sampled_from([1024, 1040, 8192, 2**20, 2**31])


@given(st.tuples(SIZES, SIZES, SIZES, SIZES), st.tuples(SIZES, SIZES, SIZES, SIZES))
def test_tensors_of_one_key_have_one_class(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    sizes = RunTimeSizes(
        {
            "alpha": lg.Scalar["f32"],
            "x": lg.Tensor["f32", "M, N<=64|1024 : S, 1"],
            "y": lg.Tensor["f32", "N, K<=128"],
            "z": lg.Tensor["f32", (4, 4)],
        }
    )
    keys, classes = [], []
    for m, n, k, s in (a, b):
        arrays = 2.0, tensor(m, n, strides=(s, 1)), tensor(n, k), tensor(4, 4)
        keys.append(sizes.key(arrays))
        try:
            classes.append(sizes.of_sizes({"M": m, "N": n, "K": k, "S": s}))
        except LegoError:
            classes.append(None)
    assert None not in keys
    if None not in classes:
        assert (keys[0] == keys[1]) == (classes[0] == classes[1])
    elif classes != [None, None]:
        assert keys[0] != keys[1]


def test_other_arrays_have_no_key() -> None:
    key = RunTimeSizes(ROWS).key
    assert key(()) is None
    assert key((1.0, 2.0)) is None
    assert key((tensor(8), tensor(8))) is None


def test_the_class_of_arrays_that_are_not_all_given() -> None:
    sizes = RunTimeSizes({**ROWS, "w": lg.Tensor["f32", "M, N : S, 1"]})
    x = np.zeros((4, 2048), np.float32)
    known = sizes.of_sizes(sizes.of_launch((None, x, x[:, :32])))
    assert known == LaunchClass(("N", "S"), (("N", 8192),), least=(("N", 1025),))
    with pytest.raises(LegoError, match="no array says what the size S is") as info:
        sizes.of_launch((x,))
    assert (info.value.hint or "").startswith("pass one for argument 'w', or")


@pytest.mark.parametrize(
    ("shape", "says", "hint"),
    [
        ((4,), "argument 'x' has 2 dimensions, M, N, the array has the shape [4]", None),
        (
            (4, 9000),
            "argument 'x': its size along dimension 1 is 9000, which is above 8192, the largest "
            "bound that the kernel declares for N",
            "declare a larger one, such as N<=16384, or leave the bound out and loop over tiles, "
            "x.tile(8192)",
        ),
    ],
)
def test_arrays_that_no_class_takes(shape: tuple[int, ...], says: str, hint: str | None) -> None:
    x = np.zeros(shape, np.float32)
    sizes = RunTimeSizes(ROWS)
    with pytest.raises(LegoError) as info:
        sizes.of_sizes(sizes.of_launch((x, x)))
    assert (info.value.message, info.value.hint) == (says, hint)


def test_declarations_that_do_not_go_together() -> None:
    with pytest.raises(LegoError, match="parameter 'y': the size N has other bounds"):
        RunTimeSizes({"x": lg.Tensor["f32", "N<=8"], "y": lg.Tensor["f32", "N<=16"]})
    with pytest.raises(LegoError, match="no tensor has a dimension of the size M") as info:
        RunTimeSizes({"x": lg.Tensor["f32", "2*M, N"]})
    assert (info.value.hint or "").startswith('one tensor is declared as lg.Tensor["f32", "M, ')
    with pytest.raises(LegoError, match="no tensor has a dimension of the size M") as info:
        RunTimeSizes({"x": lg.Tensor["f32", OrderBy(Col(size_symbol("M"), size_symbol("N")))]})
    assert (info.value.hint or "").endswith("row-major or with strides: M, N : 1, S")
    with pytest.raises(LegoError, match="there is no size 'K'") as info:
        RunTimeSizes(ROWS).of_sizes({"K": 1})
    assert info.value.hint == "the sizes that the launch knows are M, N"


def test_classes_are_explained() -> None:
    types = {"x": lg.Tensor["f32", "M{8}, N<=64|1024, K"]}
    kernel = lg.kernel(grid=lambda x: x.shape[0], block=32, parameters=types)(lambda x: None)
    assert kernel.classes() == ()
    assert kernel.explain().split("\n")[1] == (
        "sizes      M{8}, N<=64|1024 (classes: 16 divides it, or not), "
        "K (classes: 16 divides it, or not)"
    )
