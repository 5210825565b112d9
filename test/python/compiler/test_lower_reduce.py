"""Reductions over warps and CTAs, run in the simulator and compared with NumPy's."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

KERNEL = """
func.func @f(%a: memref<SIZExTYPE>, %b: memref<COUNTxTYPE>) {
  %c1 = arith.constant 1 : index
  %x = arith.constant BX : index
  %y = arith.constant BY : index
  %z = arith.constant BZ : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%nx = %x, %ny = %y, %nz = %z) {
    %t = affine.apply affine_map<(x, y, z) -> (x + BX * (y + BY * z))>(%tx, %ty, %tz)
    %v = memref.load %a[%t] : memref<SIZExTYPE>
BODY
    gpu.terminator
  }
  return
}
"""

Block = tuple[int, int, int]


def reduced(reductions: list[str], values: Any, kind: str, block: Block, target: str) -> Any:
    """What threads get of each reduction, a row for each."""
    size = len(values)
    body = ""
    for k, text in enumerate(reductions):
        body += f"    %r{k} = {text} : ({kind}) -> {kind}\n"
        body += f"    %i{k} = affine.apply affine_map<(t) -> (t + {k * size})>(%t)\n"
        body += f"    memref.store %r{k}, %b[%i{k}] : memref<COUNTxTYPE>\n"
    text = KERNEL.replace("BODY", body).replace("COUNT", str(size * len(reductions)))
    for name, value in (
        ("SIZE", size),
        ("TYPE", kind),
        *zip(("BX", "BY", "BZ"), block, strict=True),
    ):
        text = text.replace(name, str(value))
    compilation = Compilation(Source("r.mlir", text), Options(target=Target.parse(target)))
    result = np.zeros(size * len(reductions), values.dtype)
    lg.launch(compilation.artifact(assemble=False), values.copy(), result, device="sim")
    return result.reshape(len(reductions), size)


UNSIGNED = {"i8": "u1", "i16": "u2", "i32": "u4", "i64": "u8"}
INTEGERS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x.sum(dtype=x.dtype),
    "mul": lambda x: x.prod(dtype=x.dtype),
    "minsi": np.min,
    "maxsi": np.max,
    "minui": lambda x: x.view(f"u{x.itemsize}").min().view(x.dtype),
    "maxui": lambda x: x.view(f"u{x.itemsize}").max().view(x.dtype),
    "and": lambda x: functools.reduce(operator.and_, x),
    "or": lambda x: functools.reduce(operator.or_, x),
    "xor": lambda x: functools.reduce(operator.xor, x),
}
FLOATS: dict[str, Callable[[Any], Any]] = {
    "add": np.sum, "mul": np.prod,
    "minnumf": np.min, "maxnumf": np.max, "minimumf": np.min, "maximumf": np.max,
}  # fmt: skip
DTYPES = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8",
          "bf16": ml_dtypes.bfloat16}  # fmt: skip
BLOCKS = [(64, 1, 1), (40, 1, 1), (33, 1, 1), (7, 3, 4), (5, 1, 1)]


def numbers(kind: str, size: int) -> Any:
    random = np.random.default_rng(size)
    if kind.startswith("i"):
        return random.integers(-100, 100, size).astype(DTYPES[kind])
    # Powers of two, whose sums and products are exact in any order.
    return (2.0 ** random.integers(-1, 2, size) * random.choice([-1, 1], size)).astype(DTYPES[kind])


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("kind", ["f32", "i32"])
def test_blocks_of_any_shape(kind: str, block: Block) -> None:
    check_cta(kind, block)


@pytest.mark.parametrize("kind", ["i8", "i16", "i64", "f16", "bf16", "f64"])
def test_all_types_and_operations_over_a_cta(kind: str) -> None:
    check_cta(kind, (40, 1, 1))


def check_cta(kind: str, block: Block) -> None:
    expected = INTEGERS if kind.startswith("i") else FLOATS
    values = numbers(kind, int(np.prod(block)))
    texts = [f"gpu.all_reduce {name} %v {{}}" for name in expected]
    found = reduced(texts, values, kind, block, "sm_90a")
    for name, row in zip(expected, found, strict=True):
        np.testing.assert_array_equal(row, np.full(len(values), expected[name](values)), name)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
def test_all_types_and_operations_over_a_warp(kind: str, target: str) -> None:
    expected = INTEGERS if kind.startswith("i") else FLOATS
    values = numbers(kind, 64)
    texts = [f"gpu.subgroup_reduce {name} %v uniform" for name in expected]
    found = reduced(texts, values, kind, (64, 1, 1), target)
    for name, row in zip(expected, found, strict=True):
        warps = [np.full(32, expected[name](w)) for w in values.reshape(2, 32)]
        np.testing.assert_array_equal(row, np.concatenate(warps), name)


@pytest.mark.parametrize(("size", "stride"), [(4, 1), (8, 2), (2, 16), (1, 1)])
def test_clusters_of_lanes(size: int, stride: int) -> None:
    values = numbers("i32", 64)
    text = f"gpu.subgroup_reduce add %v cluster(size = {size}, stride = {stride})"
    (found,) = reduced([text], values, "i32", (64, 1, 1), "sm_90a")
    apart = values.reshape(-1, size, stride).sum(axis=1, keepdims=True, dtype="i4")
    np.testing.assert_array_equal(
        found, np.broadcast_to(apart, (64 // (size * stride), size, stride)).ravel()
    )


def test_a_region_defines_the_reduction() -> None:
    region = """gpu.all_reduce %v {
      ^bb(%p: i32, %q: i32):
        %less = arith.cmpi slt, %p, %q : i32
        %m = scf.if %less -> i32 { scf.yield %p : i32 } else { scf.yield %q : i32 }
        gpu.yield %m : i32
    }"""
    values = numbers("i32", 72)
    (found,) = reduced([region], values, "i32", (72, 1, 1), "sm_90a")
    np.testing.assert_array_equal(found, np.full(72, values.min()))


def test_vectors_by_their_elements_and_again_and_again_in_a_loop() -> None:
    text = """
func.func @f(%a: memref<128xf32>, %b: memref<128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%nx = %c64, %ny = %c1, %nz = %c1) {
    %i = affine.apply affine_map<(t) -> (t * 2)>(%t)
    %v = vector.load %a[%i] : memref<128xf32>, vector<2xf32>
    %w = gpu.subgroup_reduce maxnumf %v : (vector<2xf32>) -> vector<2xf32>
    %first = vector.extract %w[0] : f32 from vector<2xf32>
    %last = scf.for %k = %c0 to %c3 step %c1 iter_args(%x = %first) -> f32 {
      %sum = gpu.all_reduce add %x {} : (f32) -> f32
      scf.yield %sum : f32
    }
    %r = vector.insert %last, %w[0] : f32 into vector<2xf32>
    vector.store %r, %b[%i] : memref<128xf32>, vector<2xf32>
    gpu.terminator
  }
  return
}
"""
    a = np.random.default_rng(0).integers(-8, 8, 128).astype("f4")
    b = np.zeros_like(a)
    lg.launch(Compilation(Source("v.mlir", text)).artifact(assemble=False), a, b, device="sim")
    most = a.reshape(2, 32, 2).max(axis=1)
    total = 32 * most[:, 0].sum() * 64 * 64
    np.testing.assert_array_equal(b.reshape(64, 2)[:, 0], np.full(64, total))
    np.testing.assert_array_equal(b.reshape(64, 2)[:, 1], np.repeat(most[:, 1], 32))


def test_a_type_that_no_shuffle_takes_is_an_error_with_a_location() -> None:
    with pytest.raises(LegoError, match=r"r\.mlir:\d+:\d+: error: .*of type i24"):
        reduced(["gpu.all_reduce add %v {}"], np.zeros(64, "i4"), "i24", (64, 1, 1), "sm_90a")
