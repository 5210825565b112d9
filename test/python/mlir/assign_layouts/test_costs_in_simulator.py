"""Programs without any schedule access memory as well as can be, by the simulator's counts."""

import re

import numpy as np
import pytest

import lego_mlir as lg

F32, F16 = np.float32, np.float16


F32_64_512 = lg.Tensor["f32", (64, 512)]
F16_64_512 = lg.Tensor["f16", (64, 512)]
F32_64_256 = lg.Tensor["f32", (64, 256)]
F32_64_128 = lg.Tensor["f32", (64, 128)]
F32_128_64 = lg.Tensor["f32", (128, 64)]
F16_64_128 = lg.Tensor["f16", (64, 128)]
F16_128_64 = lg.Tensor["f16", (128, 64)]
F32_2_4096 = lg.Tensor["f32", (2, 4096)]


@lg.kernel(grid=4, warps=4)
def scaled(x: F32_64_512, y: F32_64_512):
    y.tile(16, 512)[lg.block_id(), 0] = x.tile(16, 512)[lg.block_id(), 0] * 2.0


@lg.kernel(grid=4, warps=4)
def halved(x: F16_64_512, y: F16_64_512):
    y.tile(16, 512)[lg.block_id(), 0] = x.tile(16, 512)[lg.block_id(), 0] * 0.5


@lg.kernel(grid=2, warps=4)
def row_sums(x: F32_64_256, y: F32_64_256):
    tile = x.tile(32, 256)[lg.block_id(), 0]
    y.tile(32, 256)[lg.block_id(), 0] = tile - lg.sum(tile, axis=1, keepdims=True)


@lg.kernel(grid=2, warps=4)
def column_sums(x: F32_64_128, y: F32_64_128):
    tile = x.tile(64, 64)[0, lg.block_id()]
    y.tile(64, 64)[0, lg.block_id()] = tile - lg.sum(tile, axis=0, keepdims=True)


@lg.kernel(grid=2, warps=4)
def transposed(x: F32_64_128, y: F32_128_64):
    y.tile(64, 64)[lg.block_id(), 0] = x.tile(64, 64)[0, lg.block_id()].T


@lg.kernel(grid=2, warps=4)
def half_transposed(x: F16_64_128, y: F16_128_64):
    y.tile(64, 64)[lg.block_id(), 0] = x.tile(64, 64)[0, lg.block_id()].T


@pytest.mark.parametrize(
    ("kernel", "dtype", "shape", "result"),
    [
        (scaled, F32, (64, 512), lambda x: x * 2),
        (halved, F16, (64, 512), lambda x: x * F16(0.5)),
        (row_sums, F32, (64, 256), lambda x: x - x.sum(1, keepdims=True)),
        (column_sums, F32, (64, 128), lambda x: x - x.sum(0, keepdims=True)),
        (transposed, F32, (64, 128), np.transpose),
        (half_transposed, F16, (64, 128), np.transpose),
    ],
    ids=lambda p: getattr(p, "name", None),
)
def test_accesses_are_coalesced_vectorised_and_without_conflicts(
    kernel: lg.Kernel, dtype: type, shape: tuple[int, int], result: object
) -> None:
    x = np.random.default_rng(0).integers(-8, 8, shape).astype(dtype)
    expected = result(x)  # type: ignore[operator]
    run = kernel.run(x, np.zeros_like(expected), device="sim", costs=True)
    np.testing.assert_array_equal(np.asarray(run.outputs["y"]).reshape(expected.shape), expected)
    (costs,) = run.costs
    assert (costs.excess_sectors, costs.excess_wavefronts) == (0, 0)
    accesses = re.findall(r"(?:ld|st)\.global\S*", kernel.compile().ptx)
    assert accesses
    assert all(re.search(r"v4\.b32|v4\.f32|v2\.b64|v8\.b16", a) for a in accesses), accesses


@lg.kernel(grid=2, warps=8)
def softmax(x: F32_2_4096, y: F32_2_4096):
    row = x[lg.block_id(), :]
    e = lg.exp(row - lg.max(row))
    y[lg.block_id(), :] = e / lg.sum(e)


def test_a_softmax_of_4096_columns_is_short() -> None:
    compilation = softmax.compilation()
    body = re.findall(r"^\t(?!\.)\S.*;$", compilation.ptx, re.MULTILINE)
    assert len(body) <= 180
    (resources,) = compilation.cubin.resources
    assert resources.registers <= 40
    assert resources.spill_store_bytes == resources.spill_load_bytes == 0
