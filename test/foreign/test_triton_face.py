"""`sim.triton`: arguments, options, decorators, errors and costs of Triton kernels."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError

pytest_plugins = ["lego_mlir.sim.pytest_plugin"]


@triton.jit
def axpy(x, y, a, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at * stride, at < n)
    tl.store(y + at, a * value + tl.load(y + at, at < n), at < n)


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", ml_dtypes.bfloat16])
def test_types_and_sizes(simulator, dtype, capability):
    x, y = np.arange(100).astype(dtype), np.ones(100, dtype)
    simulator.triton(axpy, capability=capability)[(1,)](x, y, 1, 100, 1, BLOCK=128)
    assert (y == (x + np.ones(100)).astype(dtype)).all()


@pytest.mark.parametrize("stride", [1, 2, 3, 16])
@pytest.mark.parametrize("n", [1, 50, 64, 200])
def test_strided_arrays(n, stride):
    """An array with strides is passed as the pointer to its first element."""
    base = np.arange(200 * 16, dtype=np.float32)
    x, y = base[5 : 5 + n * stride : stride], np.zeros(n, np.float32)
    sim.triton(axpy)[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](
        x, y, 0.5, n, stride, BLOCK=64, num_warps=2
    )
    assert (y == x / 2).all()
    if n > 1:
        with pytest.raises(LegoError, match="out of bounds"):
            sim.triton(axpy)[(4,)](x, y, 0.5, n + 1, stride, BLOCK=64)


class Tensor:
    """A stand-in for a torch tensor on the host."""

    def __init__(self, array, device="cpu"):
        self.array, self.device = array, device
        self.dtype = f"torch.{array.dtype}"

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def detach(self):
        return self

    def numpy(self):
        return self.array


def test_tensors():
    x, y = Tensor(np.ones(64, np.float32)), Tensor(np.ones(64, np.float32))
    sim.triton(axpy)[(1,)](x, y, 2.0, 64, 1, BLOCK=64)
    assert (y.array == 3).all()
    with pytest.raises(LegoError, match="a tensor on cuda:0: the simulator works on host memory"):
        sim.triton(axpy)[(1,)](Tensor(x.array, "cuda:0"), y, 2.0, 64, 1, BLOCK=64)


@triton.jit
def copy(source, target, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([i, j], source.load([i, j]) + 1)


def described(array, *block):
    strides = [s // array.itemsize for s in array.strides]
    return SimpleNamespace(
        base=array,
        shape=list(array.shape),
        strides=strides,
        block_shape=list(block),
        padding="zero",
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "i4"])
def test_tensor_descriptors(simulator, dtype):
    x, y = np.arange(40 * 96).astype(dtype).reshape(40, 96), np.zeros((40, 96), dtype)
    simulator.triton(copy)[(3, 2)](described(x, 16, 64), described(y, 16, 64), BM=16, BN=64)
    assert (y == x + 1).all()


@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=2)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def negated(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if EVEN else at < n
    tl.store(y + at, -tl.load(x + at, mask), mask)


@pytest.mark.parametrize("n", [128, 100])
def test_decorated_kernels(simulator, n):
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    simulator.triton(negated)[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    assert (y == -x).all()


def test_costs_by_line():
    x, y = np.zeros(1024, np.float32), np.zeros(1024, np.float32)
    costs = sim.triton(axpy, costs=True)[(4,)](x, y, 2.0, 1024, 1, BLOCK=256)
    loads = [row for row in costs.memory if row.instruction.opcode.startswith("ld.global")]
    assert sum(row.bytes for row in loads) == x.nbytes + y.nbytes
    assert costs.excess_sectors == 0


def test_errors_show_the_line_of_the_kernel():
    x, y = np.zeros(100, np.float32), np.zeros(90, np.float32)
    with pytest.raises(LegoError, match="out of bounds") as e:
        sim.triton(axpy)[(1,)](x, y, 2.0, 100, 1, BLOCK=128)
    assert e.value.location.file == __file__
    assert "tl.load(y + at, at < n)" in e.value.render()


X = np.zeros(64, np.float32)
WRONG = {
    "too few": ((X, X, 1.0), {}, "the arguments do not fit axpy"),
    "an unknown type": ((X.astype("c8"), X, 1.0, 64, 1), {"BLOCK": 64}, "an array of complex64"),
    "a text": ((X, X, "1", 64, 1), {"BLOCK": 64}, "the argument a of axpy is a str"),
    "negative strides": ((X[::-1], X, 1.0, 64, 1), {"BLOCK": 64}, "strides"),
    "no power of two": ((X, X, 1.0, 64, 1), {"BLOCK": 60}, "Triton cannot compile axpy"),
    "an unknown option": (
        (X, X, 1.0, 64, 1),
        {"BLOCK": 64, "warps": 4},
        "axpy has no parameter warps",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    args, options, message = WRONG[case]
    with pytest.raises(LegoError, match=message):
        sim.triton(axpy)[(1,)](*args, **options)


def test_wrong_kernels_and_grids():
    with pytest.raises(LegoError, match="is no Triton kernel"):
        sim.triton(len)
    for grid in ((), (1, 1, 1, 1), ("4",), (0,)):
        with pytest.raises(LegoError, match="grid"):
            sim.triton(axpy)[grid](X, X, 1.0, 64, 1, BLOCK=64)
