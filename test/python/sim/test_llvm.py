"""The PTX that the compiler itself emits, debug directives and all."""

from pathlib import Path

import numpy as np
import pytest

from lego_mlir import data
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.kernels import transpose
from lego_mlir.mlir.context import Source

KERNELS = Path(__file__).parent / "kernels.mlir.in"
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("level", "branches"), [(0, True), (3, False)], ids=["loop", "unrolled"])
def test_transpose(run, level, branches):
    """32×32 tiles through swizzled shared memory, 256 threads a block, four rows each."""
    nvvm = (data.pipelines() / "nvvm.pipeline").read_text().replace("O=3", f"O={level}")
    ptx = transpose(1024, 1024, variant="shared").compilation(Options(pipelines={"nvvm": nvvm})).ptx
    assert (" bra" in ptx) == branches
    a = RNG.random((1024, 1024), dtype="f4")
    b = np.zeros_like(a)
    options = {"grid": (1024, 1, 1), "block": (256, 1, 1), "record": False}
    # Outlining orders the parameters by their first use in the kernel.
    run(ptx, [b, a], kernel="transpose_kernel", **options)
    assert np.array_equal(b, a.T)


@pytest.fixture(scope="module")
def compiled():
    """The PTX of the kernels beside this file."""
    return Compilation(Source(KERNELS.name, KERNELS.read_text())).ptx


@pytest.fixture
def llvm(run, compiled):
    def launch(kernel, arguments, **options):
        run(compiled, arguments, kernel=kernel, record=False, **options)

    return launch


def test_loop_with_divergent_conditions(llvm):
    """A loop, unrolled by two with a remainder, with a branch on loaded data and fused adds."""
    a = RNG.standard_normal((31, 128)).astype("f4")
    b = np.zeros((32, 128), "f4")
    padded = np.zeros((32, 128), "f4")
    padded[:31] = a
    llvm("loop", [padded, b, np.int32(31)], block=(128, 1, 1))
    want = np.zeros((32, 128), "f4")
    total = np.zeros(128, "f4")
    with np.errstate(all="ignore"):
        for i, row in enumerate(a):
            w = np.where(row > 0, row / total, row)
            want[i] = np.where(row > 0, 0, row)
            # The square is exact in float64, and the sum rounds the same but for rare ties.
            total = (w.astype("f8") ** 2 + total).astype("f4")
    want[0] = total
    assert np.array_equal(b, want, equal_nan=True)


def test_elements_of_every_type(llvm):
    f16 = RNG.standard_normal(4096).astype("f2")
    i8 = RNG.integers(-128, 128, 4096).astype("i1")
    f64 = RNG.standard_normal(4096)
    bf16 = RNG.standard_normal(4096).astype("f4").view("u4") >> np.uint32(16)
    i16 = RNG.integers(1, 1000, 4096).astype("i2")
    i64 = RNG.integers(-(2**60), 2**60, 4096)
    got = [f16.copy(), i8.copy(), f64.copy(), bf16.astype("u2"), i16.copy(), i64.copy()]
    scalars = [np.float32(1.5), np.float16(2), np.int8(3)]
    llvm("types", [*got, *scalars], grid=(32, 1, 1), block=(128, 1, 1))
    rest = np.maximum(np.fmod(i64, i16.astype("i8")), i16)
    assert np.array_equal(got[0], f16 * np.float16(2))
    assert np.array_equal(got[1], np.trunc((i8 + np.int8(3)).astype("f4") / 3).astype("i1"))
    assert np.array_equal(got[2], f64 / 1.5)
    assert np.array_equal(got[4], rest.astype("i2"))
    assert np.array_equal(got[5], rest)
    x = (bf16 << np.uint32(16)).view("f4").astype("f8")
    y = (got[3].astype("u4") << np.uint32(16)).view("f4").astype("f8")
    assert np.allclose(y, np.maximum((x + 1.5) * 1.5, x), rtol=2**-7, atol=2**-9)


def test_vectors(llvm):
    a, b = RNG.standard_normal(4096).astype("f4"), np.zeros(4096, "f4")
    halves = RNG.standard_normal(4096).astype("f2")
    octets = RNG.integers(-128, 128, 4096).astype("i1")
    h, o = halves.copy(), octets.copy()
    llvm("vec", [a, b, h, o], block=(512, 1, 1))
    assert np.array_equal(b[:2048], a[:2048])
    assert np.array_equal(h, (halves + halves) * halves)
    assert np.array_equal(o[:2048], octets[:2048] * np.int8(2))


@pytest.mark.parametrize("rows", [0, 1, 3, 4])
def test_unrolled_loop_with_barriers(llvm, rows):
    a, b = RNG.standard_normal((64, 128)).astype("f4"), np.zeros(128, "f4")
    llvm("unroll", [a, b, np.int32(rows)], block=(128, 1, 1))
    want = np.abs(a[rows - 1]) + np.arange(128, dtype="f4") if rows else np.zeros(128, "f4")
    assert np.array_equal(b, want)


def test_reductions_atomics_and_local_memory(llvm):
    a, n, d = np.ones(128, "f4"), RNG.integers(0, 100, 128).astype("i4"), np.arange(128.0)
    before = n.copy()
    llvm("red", [a, n, d], block=(128, 1, 1))
    assert np.array_equal(n, before + before.reshape(4, 32).sum(axis=1).repeat(32))
    # Thread t writes element t % 16 of its array and reads element 3: nothing, but where t is 3.
    lanes = np.arange(128) % 16
    assert np.isnan(a[lanes != 3]).all()
    assert (a[lanes == 3] == 2).all()
    assert np.array_equal(d, np.arange(128.0) ** 2)
