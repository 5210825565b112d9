"""Functions of TVM FFI: what they check of their arguments, and what they launch."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import matmul

Build = Callable[[Any], Any]
MATRIX = lg.Tensor["f32", (4, 64)]


@lg.kernel(grid=4, block=64, pdl=True)
def scaled(x: MATRIX, a: lg.Scalar["f32"], n: lg.Scalar["i32"], y: MATRIX) -> None:
    i, j = lg.block_id(), lg.thread_id()
    y[i, j] = x[i, j] * a + n.to("f32")


@lg.kernel(grid=4, block=64)
def turned(x: lg.Tensor["f32", lg.OrderBy(lg.Col(4, 64))], y: MATRIX) -> None:
    i, j = lg.block_id(), lg.thread_id()
    y[i, j] = x[i, j]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    return [np.zeros(shape, np.float32) for shape in shapes]


def address(array: np.ndarray[Any, Any]) -> bytes:
    return struct.pack("<Q", array.ctypes.data)


def test_a_launch(function_of: Build, recorder: Any) -> None:
    x, y = arrays((4, 64), (4, 64))
    function_of(scaled.compile())(x, 2, -7, y)
    ((kernel, grid, block, shared, pdl, values),) = recorder.launches
    assert (kernel, grid, block, shared, pdl) == (0, (4, 1, 1), (64, 1, 1), 0, True)
    assert sorted(values) == sorted(
        [address(x), address(y), struct.pack("<f", 2), struct.pack("<i", -7)]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (x, 1.0, 0), r"'scaled' takes 4 arguments \(x, a, n, y\), 3 are given"),
        (lambda x, y: (1, 1.0, 0, y), "argument 'x' is a tensor"),
        (lambda x, y: (x, x, 0, y), "argument 'a' is a number of type f32"),
        (lambda x, y: (x, 1.0, 0.5, y), "argument 'n' is an integer of type i32"),
        (lambda x, y: (x, 1.0, 1 << 31, y), "argument 'n' is 2147483648, no value of type i32"),
        (lambda x, y: (x.astype("f8"), 1.0, 0, y), "argument 'x' has elements of f32"),
        (lambda x, y: (x[:, :32], 1.0, 0, y), r"argument 'x' is 4×64 with strides \[64, 1\]"),
        (lambda x, y: (x.reshape(64, 4).T, 1.0, 0, y), "argument 'x' is 4×64"),
        (lambda x, y: (x.ravel(), 1.0, 0, y), "argument 'x' is 4×64"),
        (lambda x, y: (y, 1.0, 0, y), "'x' and 'y' overlap in memory"),
    ],
)
def test_arguments_that_do_not_fit(
    function_of: Build, recorder: Any, change: Any, message: str
) -> None:
    function = function_of(scaled.compile())
    with pytest.raises(LegoError, match=message):
        function(*change(*arrays((4, 64), (4, 64))))
    assert recorder.launches == []


def test_a_tensor_comes_with_the_strides_of_its_layout_or_as_its_buffer(
    function_of: Build, recorder: Any
) -> None:
    x, y = arrays((256,), (4, 64))
    function = function_of(turned.compile())
    function(x.reshape(64, 4).T, y)
    function(x, y)
    assert [launch[-1] for launch in recorder.launches] == [recorder.launches[0][-1]] * 2
    with pytest.raises(LegoError, match=r"256 with strides \[1\] or 4×64 with strides \[1, 4\]"):
        function(x.reshape(4, 64), y)


def test_alignment(function_of: Build) -> None:
    kernel = lg.kernel(grid=1, warps=1)(_copied)
    x, y = arrays((132,), (128,))
    start = -(x.ctypes.data // 4) % 4
    function_of(kernel.compile())(x[start : start + 128], aligned(y))
    with pytest.raises(LegoError, match="'x' begins at a multiple of 16 bytes"):
        function_of(kernel.compile())(x[start + 1 : start + 129], aligned(y))


def _copied(x: lg.Tensor["f32", (128,)], y: lg.Tensor["f32", (128,)]) -> None:
    y[:] = x[:]


def aligned(like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    memory = np.zeros(like.nbytes + 16, np.uint8)
    start = -memory.ctypes.data % 16
    return memory[start : start + like.nbytes].view(like.dtype).reshape(like.shape)


def test_tensor_maps_are_encoded_where_an_address_changed(
    function_of: Build, recorder: Any
) -> None:
    function = function_of(matmul(512, 512, 512, schedule="wgmma", target="sm_90a").compile())
    a, b, c, other = (aligned(np.zeros((512, 512), np.float16)) for _ in range(4))
    function(a, b, c)
    first = len(recorder.encodings)
    assert {a.ctypes.data, b.ctypes.data} <= {encoding[0] for encoding in recorder.encodings}
    assert all(encoding[1] == (512, 512) for encoding in recorder.encodings)
    function(a, b, c)
    assert len(recorder.encodings) == first
    function(other, b, c)
    changed = recorder.encodings[first:]
    assert changed
    assert {encoding[0] for encoding in changed} == {other.ctypes.data}
    # The kernel gets what was encoded last for each operand.
    assert recorder.launches[-1][-1] != recorder.launches[-2][-1]


def test_a_map_that_the_driver_refuses(function_of: Build, recorder: Any) -> None:
    function = function_of(matmul(512, 512, 512, schedule="wgmma", target="sm_90a").compile())
    recorder.answers.append(1)
    with pytest.raises(LegoError, match=r"the driver refuses the tensor map of '\w+'"):
        function(*(aligned(np.zeros((512, 512), np.float16)) for _ in range(3)))


def test_workspaces(function_of: Build, recorder: Any) -> None:
    kernel = matmul(64, 64, 8192, split_k=8, target="sm_90a")
    artifact = kernel.compile()
    assert artifact.workspaces
    function_of(artifact)(
        *(aligned(np.zeros(shape, np.float16)) for shape in ((64, 8192), (8192, 64), (64, 64)))
    )
    values = [value for launch in recorder.launches for value in launch[-1]]
    assert struct.pack("<Q", recorder.workspaces) in values


def test_a_launch_without_a_context_is_tried_again(
    function_of: Build, recorder: Any
) -> None:
    x, y = arrays((4, 64), (4, 64))
    function = function_of(scaled.compile())
    recorder.answers.append(201)
    function(x, 1.0, 0, y)
    assert (recorder.contexts, len(recorder.launches)) == ([201], 2)
    recorder.answers += [201, 700]
    with pytest.raises(LegoError, match="'scaled' cannot be launched: the driver's error 700"):
        function(x, 1.0, 0, y)


def test_numbers_that_no_call_can_have(function_of: Build) -> None:
    def half(a: lg.Scalar["f16"], y: lg.Tensor["f16", (1,)]) -> None:
        y[0] = a

    with pytest.raises(LegoError, match="argument 'a' is a number of f16"):
        function_of(lg.kernel(grid=1, block=1)(half).compile())
