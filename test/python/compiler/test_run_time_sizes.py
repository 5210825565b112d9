"""Host functions of tensors whose sizes and strides only the launch knows, in the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lego_mlir.artifact import Artifact, Computed
from lego_mlir.compiler.driver import Compilation
from lego_mlir.compiler.options import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import launch

SHIFT = """
#A = #lego.layout<"OrderBy(Row(M, N))">
func.func @shift(%x: memref<?x?xf32, strided<[?, 1]>> {lego.layout = #A, PROMISED},
                 %y: memref<?x?xf32> {lego.layout = #A, PROMISED}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1]>>
  %n = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, 1]>>
  %columns = arith.ceildivsi %n, %c64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %columns, %gy = %m, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %first = arith.muli %bx, %c64 : index
    %j = arith.addi %first, %tx : index
    %in = arith.cmpi slt, %j, %n : index
    scf.if %in {
      %v = "lego.load"(%x, %by, %j, %m, %n) {layout = #A}
          : (memref<?x?xf32, strided<[?, 1]>>, index, index, index, index) -> f32
      %last = arith.subi %n, %c1 : index
      %back = arith.subi %last, %j : index
      "lego.store"(%v, %y, %by, %back, %m, %n) {layout = #A}
          : (f32, memref<?x?xf32>, index, index, index, index) -> ()
    }
    gpu.terminator
  }
  return
}
"""


def compiled(text: str, **options: object) -> Artifact:
    """Return the artifact of a module."""
    source = Source("test.mlir", text)
    return Compilation(source, Options(**options)).artifact(assemble=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "promised", ["lego.elements = 2147418112 : i64", "lego.alignment = 4 : i64"]
)
def test_sizes_and_strides_of_a_launch(promised: str) -> None:
    """One artifact serves all shapes and strides."""
    artifact = compiled(SHIFT.replace("PROMISED", promised), check=True)
    for rows, columns, pitch in ((3, 70, 70), (1, 1, 5), (5, 64, 100), (2, 200, 201)):
        x = np.arange(rows * pitch, dtype=np.float32).reshape(rows, pitch)[:, :columns]
        y = np.zeros((rows, columns), np.float32)
        launch(artifact, x, y, device="sim")
        np.testing.assert_array_equal(y, x[:, ::-1])


def test_width_of_indices_follows_promises() -> None:
    """Without a bound of the offsets indices have 64 bits, and a parameter is as wide."""
    copy = SHIFT.replace("arith.subi %last, %j", "arith.minsi %last, %j")
    narrow = compiled(copy.replace("PROMISED", "lego.elements = 2147418112 : i64"))
    wide = compiled(copy.replace("PROMISED", "lego.alignment = 4 : i64"))
    assert ".param .u32" in narrow.ptx
    assert ".param .u32" not in wide.ptx


def test_parameters_are_what_the_kernel_uses() -> None:
    """A kernel takes addresses, and each number of the host that it uses once."""
    (launched,) = compiled(SHIFT.replace("PROMISED", "lego.alignment = 4 : i64")).launches
    assert launched.grid == ("0 0 a0.d1 - 64 // -", "a0.d0", 1)
    computed = [p.expression for p in launched.parameters if isinstance(p, Computed)]
    assert sorted(computed) == ["a0.d1", "a0.s0"]


def test_sizes_that_do_not_agree() -> None:
    """The same symbol in two layouts is one size."""
    artifact = compiled(SHIFT.replace("PROMISED", "lego.alignment = 4 : i64"))
    with pytest.raises(LegoError, match="says that it is N"):
        launch(artifact, np.zeros((2, 8), np.float32), np.zeros((2, 9), np.float32), device="sim")


def test_promises_are_checked() -> None:
    """A launch that breaks a promise is an error that names the argument and the promise."""
    text = SHIFT.replace("PROMISED", "lego.bounds = array<i64: 5, 0>", 1)
    artifact = compiled(text.replace("PROMISED", "lego.alignment = 4 : i64"))
    with pytest.raises(LegoError, match=r"'x'.* 5, but lego.bounds says that it is 4 at most"):
        launch(artifact, np.zeros((5, 8), np.float32), np.zeros((5, 8), np.float32), device="sim")
    text = SHIFT.replace("PROMISED", "lego.least = array<i64: 6, 0>", 1)
    artifact = compiled(text.replace("PROMISED", "lego.alignment = 4 : i64"))
    with pytest.raises(LegoError, match=r"'x'.* 5, but lego.least says that it is 6 at least"):
        launch(artifact, np.zeros((5, 8), np.float32), np.zeros((5, 8), np.float32), device="sim")
    text = SHIFT.replace("PROMISED", "lego.stride_divisors = array<i64: 16, 1>", 1)
    artifact = compiled(text.replace("PROMISED", "lego.alignment = 4 : i64"))
    x = np.zeros((2, 33), np.float32)
    with pytest.raises(LegoError, match=r"'x'.* 33, but lego.stride_divisors says that 16 divides"):
        launch(artifact, x, np.zeros((2, 33), np.float32), device="sim")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("lego.bounds = array<i64: 5>", "lego.bounds of argument 0"),
        ("lego.least = array<i64: -1, 0>", "lego.least of argument 0"),
        ("lego.elements = 0 : i64", "lego.elements of argument 0"),
        ("lego.stride_divisors = array<i64: 0, 1>", "lego.stride_divisors of argument 0"),
        ('lego.bounds = "5"', "lego.bounds of argument 0"),
    ],
)
def test_promises_that_are_none(given: str, message: str) -> None:
    """An attribute that is no promise is an error where the function stands."""
    text = SHIFT.replace("PROMISED", given, 1).replace("PROMISED", "lego.alignment = 4 : i64")
    with pytest.raises(LegoError, match=message):
        compiled(text)


def test_a_symbol_that_is_no_size() -> None:
    """A symbol of an argument's layout has to be a size of some buffer."""
    text = """
    func.func @f(%x: memref<?xf32> {lego.layout = #lego.layout<"OrderBy(Row(P, Q))">}) {
      %c1 = arith.constant 1 : index
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
        %zero = arith.constant 0.0 : f32
        memref.store %zero, %x[%tx] : memref<?xf32>
        gpu.terminator
      }
      return
    }
    """
    with pytest.raises(LegoError, match="the symbolic size P, which is not the size of any"):
        compiled(text)


def test_host_arithmetic_that_no_launch_computes() -> None:
    """What the host computes of data is an error at the operation."""
    text = SHIFT.replace(
        "%columns = arith.ceildivsi %n, %c64 : index", "%columns = arith.xori %n, %c64 : index"
    ).replace("PROMISED", "lego.alignment = 4 : i64")
    with pytest.raises(LegoError, match=r"cannot compute what 'arith.xori' computes"):
        compiled(text)


RAW = """
func.func @raw(%x: memref<?x?x4xf32>, %y: memref<?x?x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %m = memref.dim %x, %c0 : memref<?x?x4xf32>
  %n = memref.dim %x, %c1 : memref<?x?x4xf32>
  %w = gpu.alloc (%m, %n) : memref<?x?x4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %m, %gy = %n, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%bx, %by, %tx] : memref<?x?x4xf32>
    memref.store %v, %w[%bx, %by, %tx] : memref<?x?x4xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %m, %gy = %n, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %size = memref.dim %w, %c0 : memref<?x?x4xf32>
    %one = arith.constant 1 : index
    %last = arith.subi %size, %one : index
    %row = arith.subi %last, %bx : index
    %v = memref.load %w[%row, %by, %tx] : memref<?x?x4xf32>
    memref.store %v, %y[%bx, %by, %tx] : memref<?x?x4xf32>
    gpu.terminator
  }
  return
}
"""


def test_upstream_accesses_and_workspaces() -> None:
    """Kernels index buffers of run-time sizes by dimensions, and share workspaces of such sizes."""
    artifact = compiled(RAW)
    assert artifact.workspaces[0].shape == ("a0.d0 a0.d1 * 4 *",)
    for shape in ((2, 3, 4), (5, 1, 4), (1, 7, 4)):
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        y = np.zeros_like(x)
        launch(artifact, x, y, device="sim")
        np.testing.assert_array_equal(y, x[::-1])


MATMUL = (Path(__file__).parents[3] / "docs/examples/matmul.mlir").read_text()
ANY_ROWS = {
    "M = 512, N = 512, K = 256": "N = 128, K = 128",
    "RegP([M/BM/4, 4, N/BN], [0, 2, 1])).GroupBy([M/BM, N/BN])": "Row(M/BM, N/BN))",
    "256x512xf16": "128x128xf16",
    "512x256xf16": "?x128xf16",
    "512x512xf16": "?x128xf16",
    '%tiles = "lego.size"() {layout = #blocks} : () -> index': """
      %rows = memref.dim %a, %c0 : memref<?x128xf16>
      %tiles = "lego.size"(%rows) {layout = #blocks} : (index) -> index""",
    'dim"() {layout = #A, dim = 1} : ()': 'dim"(%rows) {layout = #A, dim = 1} : (index)',
    "(%bx) {layout = #blocks} : (index)": "(%bx, %rows) {layout = #blocks} : (index, index)",
    "(%a, %m, %k, %c0, %c0)": "(%a, %m, %k, %c0, %c0, %rows)",
    "%c, %m, %n, %c0, %c0)": "%c, %m, %n, %c0, %c0, %rows)",
    f"?x128xf16>{', index' * 4})": f"?x128xf16>{', index' * 5})",
}
"""What makes the rows of the example's matrices a size of the launch."""


def test_a_schedule_takes_run_time_rows() -> None:
    """A GEMM by mma.sync is scheduled once for any number of tiles of rows."""
    text = MATMUL
    for old, new in ANY_ROWS.items():
        assert old in text
        text = text.replace(old, new)
    artifact = compiled(text, schedule="cp_async")
    random = np.random.default_rng(0)
    b = random.integers(-2, 3, (128, 128)).astype(np.float16)
    for rows in (128, 256):
        a = random.integers(-2, 3, (rows, 128)).astype(np.float16)
        c = np.zeros((rows, 128), np.float16)
        launch(artifact, a, b, c, device="sim")
        np.testing.assert_array_equal(c, a @ b)
    with pytest.raises(LegoError, match=r"'a'.* 130, but .*128 divides it"):
        launch(
            artifact,
            np.zeros((130, 128), np.float16),
            b,
            np.zeros((130, 128), np.float16),
            device="sim",
        )
