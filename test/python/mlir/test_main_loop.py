"""The main loop of GEMMs by `mma.sync`: fragments are loaded early, copies spread."""

import re
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import Col, OrderBy, Row, runtime
from lego_mlir.compiler.driver import Options
from lego_mlir.frontend import TensorType
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.mma.config import MmaConfig


def check(kernel: Any, *orders: str) -> None:
    for order in orders:
        result = runtime.run(kernel.compile(), device=runtime.select("sim", order=order))
        assert result.comparison is not None
        assert result.comparison.equal, f"{order}: {result.comparison}"


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
def test_loops_shorter_and_longer_than_the_pipeline(iterations: int, stages: int) -> None:
    config = MmaConfig((32, 32, 32), (2, 1), stages)
    kernel = matmul(32, 32, 32 * iterations, config=config, schedule="cp_async")
    check(kernel, "late", "early", "random:1")


@pytest.mark.parametrize("b", [Row, Col])
@pytest.mark.parametrize("a", [Row, Col])
def test_partial_tiles_of_every_transpose(a: Any, b: Any) -> None:
    m, n, k = 40, 72, 200
    config = MmaConfig((32, 32, 64), (1, 2), 3)
    check(
        matmul(m, n, k, a=OrderBy(a(m, k)), b=OrderBy(b(k, n)), config=config, schedule="cp_async"),
        "late",
    )


@pytest.mark.parametrize("k", [16, 32])
def test_tiles_of_one_step_and_of_two(k: int) -> None:
    check(matmul(32, 32, 96, config=MmaConfig((32, 32, k), (1, 1), 3), schedule="cp_async"), "late")


def test_copies_through_registers_stay_together() -> None:
    """Rows of 33 elements begin at odd addresses: no asynchronous copy is as narrow."""
    kernel = matmul(32, 33, 97, config=MmaConfig((32, 32, 32), (1, 1), 2), schedule="cp_async")
    assert "ld.global.b16" in kernel.compilation(Options(target=Target.parse("sm_80"))).ptx
    check(kernel, "late")


def test_the_next_fragments_are_loaded_before_the_last_mmas() -> None:
    kernel = matmul(64, 64, 512, config=MmaConfig((64, 64, 64), (2, 2), 3), schedule="cp_async")
    ptx = kernel.compilation(Options(target=Target.parse("sm_80"))).ptx
    words = re.findall(r"cp\.async\.(?:commit|wait)_group|bar\.sync|ldmatrix|mma\.sync", ptx)
    wait = words.index("cp.async.wait_group", words.index("cp.async.wait_group") + 1)
    following = words[wait:]
    loads = following.index("mma.sync")
    assert following[:loads] == ["cp.async.wait_group", "bar.sync", *["ldmatrix"] * 4]
    assert following[loads : loads + 8] == ["mma.sync"] * 8


A, B, C = OrderBy(Row(32, 160)), OrderBy(Row(160, 32)), OrderBy(Row(32, 32))


def two_products(total: Any, x: Any, y: Any, z: Any) -> Any:
    return lg.dot(x, z, lg.dot(x, y, total))


def halved(total: Any, x: Any, y: Any, z: Any) -> Any:
    return lg.dot(x, y, total * 0.5)


@pytest.mark.parametrize("step", [two_products, halved])
def test_other_loops_are_right_too(step: Any) -> None:
    half_a, half_b, full_c = (
        TensorType(kind, layout, 16) for kind, layout in (("f16", A), ("f16", B), ("f32", C))
    )

    @lg.kernel(grid=1, warps=2, schedule="cp_async")
    def kernel(a: half_a, b: half_b, d: half_b, c: full_c) -> None:
        @lg.fold(5, lg.zeros((32, 32), "f32"))
        def total(k, total):
            x, y, z = a.tile(32, 32)[0, k], b.tile(32, 32)[k, 0], d.tile(32, 32)[k, 0]
            return step(total, x, y, z)

        c[:, :] = total

    random = np.random.default_rng(0)
    a = random.integers(-4, 5, (32, 160)).astype(np.float16)
    b, d = (random.integers(-4, 5, (160, 32)).astype(np.float16) for _ in range(2))
    want = np.zeros((32, 32), np.float32)
    for k in range(0, 160, 32):
        x, y, z = (v.astype(np.float32) for v in (a[:, k : k + 32], b[k : k + 32], d[k : k + 32]))
        want = want + x @ y + x @ z if step is two_products else want * 0.5 + x @ y
    for order in ("late", "early"):
        device = runtime.select("sim", order=order)
        found = runtime.run(kernel.compile("sm_80"), {"a": a, "b": b, "d": d}, device=device)
        assert np.array_equal(found.outputs["c"], want), order
