"""What host code is told of the driver: needs its bindings, no GPU."""

from __future__ import annotations

from lego_mlir.artifact import Argument, TensorMapParameter
from lego_mlir.runtime.cuda.tensor_maps import TensorMapEncoder


def test_numbers_of_a_tensor_map_whose_sizes_the_launch_knows() -> None:
    found = TensorMapParameter(0, (64, "a0.d0"), ("a0.s0 4 *",), (32, 8), 128, 256)
    numbers = TensorMapEncoder(found, Argument("x", "f32", (None, 64))).numbers
    # CUtensorMapDataType FLOAT32, no interleave, SWIZZLE_128B, L2_256B, no fill (cuda.h).
    assert numbers == (7, 0, 3, 3, 0)
