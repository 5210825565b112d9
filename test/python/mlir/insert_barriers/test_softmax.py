"""A softmax over several warps has one barrier for each reduction, and needs both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile_kernels import access, compiled, kernel, outputs, tile

from lego_mlir.analysis.distributed import coalesced, reduced
from lego_mlir.compiler import driver
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel


def softmax(columns: int, extent: int, warps: int) -> tuple[dict[str, Any], str]:
    """Return arguments and a kernel of the softmax, to base 2, of rows in tiles of `extent`."""
    rng = np.random.default_rng(0)
    arguments = {
        "x": rng.standard_normal((4, columns)).astype(np.float32),
        "y": np.zeros((4, columns), np.float32),
    }
    layout = coalesced((1, extent), 4, warps)
    t, r = tile(layout, "f32"), tile(reduced(layout, 1), "f32")
    memref = f"memref<{4 * columns}xf32>"
    body = f"""
    %v = "lego.load"(%x, %block, %c0) {access(arguments, "x")} : ({memref}, index, index) -> {t}
    %m = "lego.reduce"(%v) {{kind = "max", dim = 1 : i64}} : ({t}) -> {r}
    %mb = "lego.broadcast"(%m) : ({r}) -> {t}
    %d = arith.subf %v, %mb : {t}
    %e = math.exp2 %d : {t}
    %s = "lego.reduce"(%e) {{kind = "add", dim = 1 : i64}} : ({t}) -> {r}
    %sb = "lego.broadcast"(%s) : ({r}) -> {t}
    %o = arith.divf %e, %sb : {t}
    "lego.store"(%o, %y, %block, %c0) {access(arguments, "y")}
        : ({t}, {memref}, index, index) -> ()
"""
    return arguments, kernel(arguments, warps, body, grid=4)


def check(arguments: dict[str, Any], text: str) -> None:
    powers = np.exp2(arguments["x"].astype(np.float64))
    expected = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(outputs(text, arguments)["y"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("columns", "extent", "warps", "barriers"),
    [(256, 256, 1, 0), (4096, 4096, 8, 2), (1000, 1024, 4, 2)],
)
def test_it_has_a_barrier_for_each_reduction_across_warps(
    columns: int, extent: int, warps: int, barriers: int
) -> None:
    arguments, text = softmax(columns, extent, warps)
    ptx = compiled(text).ptx
    assert ptx.count("bar.sync") == barriers
    assert "bar.warp.sync" not in ptx
    accesses = extent // (4 * 32 * warps)
    assert ptx.count("ld.global.v4") == ptx.count("st.global.v4") == accesses
    assert ptx.count("ld.global") == ptx.count("st.global") == accesses
    check(arguments, text)


@pytest.mark.parametrize("number", [0, 1])
def test_without_one_of_its_barriers_there_is_a_race(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(kernel: TileKernel) -> None:
        found = [op for op in operations_in(kernel.launch) if op.name == "gpu.barrier"]
        found[number].erase()

    monkeypatch.setattr(driver, "LOWERING", (*driver.LOWERING, remove))
    arguments, text = softmax(512, 512, 4)
    with pytest.raises(LegoError, match="race"):
        check(arguments, f"{text}// without barrier {number}\n")  # a text is compiled once
