"""With checks a tile that begins before its tensor is found; one that ends behind it is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parts_kernels import compiled

from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import run, select

TEXT = """#X = #lego.layout<"OrderBy(Row(100))">
func.func @main(%x: memref<100xf32>, %y: memref<128xf32>, %at: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %threads, %tyy = %c1, %tzz = %c1) {
    %origin = "lego.load"(%at, %c0) {layout = #lego.layout<"OrderBy(Row(1))">}
        : (memref<1xi32>, index) -> i32
    %first = arith.index_cast %origin : i32 to index
    %own = arith.muli %t, %c4 : index
    %i = arith.addi %first, %own : index
    %v = "lego.load_parts"(%x, %i) {layout = #X, registers = array<i64: 0, 4, 1>,
        operandSegmentSizes = array<i32: 1, 1, 0>} : (memref<100xf32>, index) -> vector<4xf32>
    "lego.store_parts"(%y, %own, %v) {layout = #lego.layout<"OrderBy(Row(128))">,
        registers = array<i64: 0, 4, 1>, operandSegmentSizes = array<i32: 1, 1, 1, 0>}
        : (memref<128xf32>, index, vector<4xf32>) -> ()
    gpu.terminator
  }
  return
}
"""


def read_from(origin: int) -> Any:
    """Return 128 elements from an origin on."""
    arrays = {
        "x": np.arange(1, 101, dtype=np.float32),
        "y": np.zeros(128, np.float32),
        "at": np.array([origin], np.int32),
    }
    artifact = compiled(TEXT, check=True).artifact(assemble=False)
    return run(artifact, arrays, device=select("sim")).outputs["y"]


@pytest.mark.parametrize("origin", [0, 3, 99, 100, 200])
def test_elements_past_the_end_are_zeros(origin: int) -> None:
    expected = np.pad(np.arange(1, 101, dtype=np.float32), (0, 328))[origin : origin + 128]
    np.testing.assert_array_equal(read_from(origin), expected)


def test_an_origin_before_the_tensor_is_found() -> None:
    with pytest.raises(LegoError, match="index 0 of 'x' is -1"):
        read_from(-1)
