"""Functions of TVM FFI: what they check of their arguments, and what they launch."""

import ctypes
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lego_mlir as lg
from lego_mlir.artifact import (
    Argument,
    Artifact,
    Computed,
    Fact,
    KernelLaunch,
    TensorMapParameter,
    Workspace,
    WorkspaceIndex,
)
from lego_mlir.artifact.expressions import Program
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import matmul
from lego_mlir.tvm_ffi.code import I32, HostCode
from lego_mlir.tvm_ffi.machine_code import compiled

Build = Callable[[Any], Any]
MATRIX = lg.Tensor["f32", (4, 64)]


@lg.kernel(grid=4, block=64, pdl=True)
def scaled(x: MATRIX, a: lg.Scalar["f32"], n: lg.Scalar["i32"], y: MATRIX) -> None:
    i, j = lg.block_id(), lg.thread_id()
    y[i, j] = x[i, j] * a + n.to("f32")


@lg.kernel(grid=lambda y: y.shape[0], block=64, pdl=True, pdl_ctas=4)
def counted(y: lg.Tensor["f32", "M, 64"]) -> None:
    y[lg.block_id(), lg.thread_id()] = 1.0


@lg.kernel(grid=4, block=64)
def turned(x: lg.Tensor["f32", lg.OrderBy(lg.Col(4, 64))], y: MATRIX) -> None:
    i, j = lg.block_id(), lg.thread_id()
    y[i, j] = x[i, j]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    return [np.zeros(shape, np.float32) for shape in shapes]


def address(array: np.ndarray[Any, Any]) -> bytes:
    return struct.pack("<Q", array.ctypes.data)


def test_launches_of_few_ctas_are_dependent(function_of: Build, recorder: Any) -> None:
    call = function_of(counted.compile())
    for rows in (4, 5):
        call(*arrays((rows, 64)))
    assert [pdl for *_, pdl, _ in recorder.launches] == [True, False]


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
    function = function_of(matmul(512, 512, 512, schedule="persistent", target="sm_90a").compile())
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
    function = function_of(matmul(512, 512, 512, schedule="persistent", target="sm_90a").compile())
    recorder.answers.append(1)
    with pytest.raises(LegoError, match=r"the driver refuses the tensor map of '\w+'"):
        function(*(aligned(np.zeros((512, 512), np.float16)) for _ in range(3)))


def test_workspaces(function_of: Build, recorder: Any) -> None:
    line = lg.Tensor["f32", (256,)]

    def copied(x: line, y: line) -> None:
        y[lg.thread_id()] = x[lg.thread_id()]

    copy = lg.kernel(grid=1, block=256, parameters={"x": line, "y": line})(copied)
    twice = lg.sequence(
        "twice",
        [copy.on(y="before"), copy.on(x="before", y="between"), copy.on(x="between")],
        parameters={"x": line, "y": line},
        workspaces={name: lg.Workspace("f32", (256,)) for name in ("before", "between")},
    )
    x, y = arrays((256,), (256,))
    function_of(twice.compile())(x, y)
    before, between = (struct.pack("<Q", recorder.workspaces + n) for n in (0, 4 * 256))
    assert [set(launch[-1]) for launch in recorder.launches] == [
        {address(x), before},
        {before, between},
        {between, address(y)},
    ]


def test_a_launch_without_a_context_is_tried_again(function_of: Build, recorder: Any) -> None:
    x, y = arrays((4, 64), (4, 64))
    function = function_of(scaled.compile())
    recorder.answers.append(201)
    function(x, 1.0, 0, y)
    assert (recorder.contexts, len(recorder.launches)) == ([201], 2)
    recorder.answers += [201, 700]
    with pytest.raises(LegoError, match="cannot be launched: the driver's error 700"):
        function(x, 1.0, 0, y)


def dynamic(**changes: Any) -> Artifact:
    """Return an artifact of f32 `x` of M×64, whose rows may have gaps, and `y` of M."""
    launch = KernelLaunch(
        "k", ("a0.d0 3 + 4 //", 1, 1), (64, 1, 1), (0, 1, Computed("i32", "a0.s0 4 *"))
    )
    entry = ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 p2) { ret; }"
    fields: dict[str, Any] = {
        "name": "rows",
        "target": "sm_80",
        "ptx": f".version 8.0\n.target sm_80\n.address_size 64\n{entry}\n",
        "arguments": (
            Argument("x", "f32", (None, 64), access="read", strides=(None, 1)),
            Argument("y", "f32", (None,), access="write"),
        ),
        "launches": (launch,),
        "facts": (
            Fact("a1.d0 a0.d0 ==", "a1.d0", "and not that of 'x'"),
            Fact("a0.s0 2 % 0 ==", "a0.s0", "which is odd"),
        ),
    }
    return replace(Artifact(**fields), **changes)


@pytest.mark.parametrize("rows", [1, 4, 5, 1000])
def test_sizes_that_the_launch_knows(function_of: Build, recorder: Any, rows: int) -> None:
    function = function_of(dynamic())
    whole, y = arrays((rows, 96), (rows,))
    function(whole[:, :64], y)
    ((_, grid, _, _, _, values),) = recorder.launches
    assert grid == (-(-rows // 4), 1, 1)
    stride = 96 if rows > 1 else struct.unpack("<i", values[2])[0] // 4
    assert values == [address(whole), address(y), struct.pack("<i", 4 * stride)]


def test_a_grid_without_ctas_is_not_launched(function_of: Build, recorder: Any) -> None:
    function_of(dynamic())(*arrays((0, 64), (0,)))
    assert recorder.launches == []


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((8, 65), (8,), "argument 'x': its size along dimension 1 is 65, not 64"),
        ((8, 64, 1), (8,), "argument 'x' has 2 dimensions, the tensor 3"),
        ((8, 64), (7,), "is 7, and not that of 'x'"),
    ],
)
def test_sizes_that_do_not_fit(function_of: Build, x: Any, y: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        function_of(dynamic())(*arrays(x, y))


def test_strides_that_do_not_fit(function_of: Build) -> None:
    function = function_of(dynamic())
    wide, odd, y, far = arrays((8, 128), (8, 65), (8,), (16,))
    with pytest.raises(LegoError, match="'x': its stride along dimension 1 is 2"):
        function(wide[:, ::2], y)
    with pytest.raises(LegoError, match="is 65, which is odd"):
        function(odd[:, :64], y)
    with pytest.raises(LegoError, match="'x': its stride along dimension 0 is -128"):
        function(wide[::-1, :64], y)
    with pytest.raises(LegoError, match="'y': its stride along dimension 0 is 2"):
        function(wide[:, :64], far[::2])
    with pytest.raises(LegoError, match="'x' and 'y' overlap"):
        function(wide[:, :64], wide[7, 56:64])
    function(wide[:, :64], wide[7, 64:72])  # behind the last element of x


def test_a_tensor_that_is_written_has_no_element_twice(function_of: Build) -> None:
    written = Argument("x", "f32", (None, 64), access="write", strides=(None, 1))
    function = function_of(dynamic(arguments=(written, dynamic().arguments[1]), facts=()))
    whole, y = arrays((8 * 64,), (8,))
    function(whole.reshape(8, 64), y)
    twice = np.lib.stride_tricks.as_strided(whole, (8, 64), (32 * 4, 4))
    with pytest.raises(LegoError, match="'x' is written: its stride along dimension 0 is 32"):
        function(twice, y)


def test_workspaces_whose_sizes_the_launch_knows(function_of: Build, recorder: Any) -> None:
    launch = KernelLaunch("k", (1, 1, 1), (1, 1, 1), (0, WorkspaceIndex(0), Computed("i32", "0")))
    space = Workspace("w", "f32", ("a0.d0", 3))
    function = function_of(dynamic(launches=(launch,), workspaces=(space,)))
    function(*arrays((8, 64), (8,)))
    function(*arrays((10, 64), (10,)))
    assert recorder.sizes == [24, 30]
    assert recorder.launches[-1][-1][1] == struct.pack("<Q", recorder.workspaces)


def test_a_grid_that_no_gpu_has(function_of: Build) -> None:
    launch = KernelLaunch("k", (1, "a1.d0 70000 *", 1), (1, 1, 1), (0, 1, Computed("i32", "0")))
    with pytest.raises(LegoError, match="the grid of 'k' has 70000 CTAs along y, of 65535 at most"):
        function_of(dynamic(launches=(launch,)))(*arrays((1, 64), (1,)))


def test_a_parameter_that_is_too_large(function_of: Build) -> None:
    launch = KernelLaunch("k", (1, 1, 1), (1, 1, 1), (0, 1, Computed("i32", "a1.d0 2147483648 *")))
    with pytest.raises(LegoError, match="is 2147483648, more than 32 bits hold"):
        function_of(dynamic(launches=(launch,)))(*arrays((1, 64), (1,)))


def test_tensor_maps_of_sizes_that_the_launch_knows(function_of: Build, recorder: Any) -> None:
    found = TensorMapParameter(0, (64, "a0.d0"), ("a0.s0 4 *",), (32, 8), 128)
    launch = KernelLaunch("k", (1, 1, 1), (1, 1, 1), (found,))
    ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .align 64 "
    ptx += ".b8 p0[128]) { ret; }\n"
    function = function_of(dynamic(launches=(launch,), ptx=ptx, target="sm_90a"))
    whole, y, z = arrays((9, 96), (9,), (8,))
    for x, other in ((whole[:, :64], y), (whole[:, :64], y), (whole[:8, :64], z)):
        function(x, other)
    start = whole.ctypes.data
    assert recorder.encodings == [
        (start, (64, 9), (384,), (32, 8)),
        (start, (64, 8), (384,), (32, 8)),
    ]


OPERATORS = ["+", "-", "*", "//", "%", "min", "max", "<", ">=", "=="]


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=5),
    st.lists(st.sampled_from(OPERATORS), min_size=4, max_size=4),
)
def test_expressions_are_those_of_python(numbers: list[int], signs: list[str]) -> None:
    # Without arguments the expression is a constant, which LLVM folds to the result.
    text = " ".join(
        [str(numbers[0]), *(f"{n} {s}" for n, s in zip(numbers[1:], signs, strict=False))]
    )
    try:
        (expected,) = Program([text])([], [], [])
    except ZeroDivisionError:
        return
    code = HostCode(0)
    code.builder.ret(code.builder.trunc(code.expression(text, lambda leaf: None), I32))
    engine, at = compiled(code)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, ctypes.c_int32, ctypes.c_void_p)
    assert kind(at)(None, None, 0, None) == ctypes.c_int32(expected).value
    del engine


def test_numbers_that_no_call_can_have(function_of: Build) -> None:
    def half(a: lg.Scalar["f16"], y: lg.Tensor["f16", (1,)]) -> None:
        y[0] = a

    with pytest.raises(LegoError, match="argument 'a' is a number of f16"):
        function_of(lg.kernel(grid=1, block=1)(half).compile())
