"""Stores of tiles that update memory atomically."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile_kernels import kernel, outputs, store, tile

from lego_mlir.analysis.distributed import DistributedLayout, coalesced, reduced
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

COLUMNS, CTAS = 100, 3
ONCE = coalesced((1, 128), 4, 1)
COPIES = reduced(coalesced((8, 128), 4, 2), 0)


def updated(dtype: type, kind: str, layout: DistributedLayout) -> tuple[dict[str, Any], str]:
    """Return arguments and a kernel whose CTAs all update y; tiles are wider than y."""
    rng = np.random.default_rng(4)
    arguments = {
        "x": rng.integers(-9, 10, (CTAS, 1, COLUMNS)).astype(dtype),
        "y": rng.integers(-9, 10, (1, COLUMNS)).astype(dtype),
    }
    element = {np.float32: "f32", np.int32: "i32"}[dtype]
    value = tile(layout, element)
    body = f"""
    %v = "lego.load"(%x, %block, %c0, %c0) {{layout = #x, slice = array<i64: 1, 2>}}
        : (memref<{CTAS * COLUMNS}x{element}>, index, index, index) -> {value}
    "lego.store"(%v, %y, %c0, %c0) {{layout = #y, slice = array<i64: 0, 1>, kind = "{kind}"}}
        : ({value}, memref<{COLUMNS}x{element}>, index, index) -> ()
"""
    return arguments, kernel(arguments, layout.warps, body, grid=CTAS)


@pytest.mark.parametrize("layout", [ONCE, COPIES], ids=["each element once", "copies of elements"])
@pytest.mark.parametrize(("dtype", "kind"), [(np.float32, "add"), (np.int32, "max")])
def test_every_element_is_updated_once_by_each_cta(
    dtype: type, kind: str, layout: DistributedLayout
) -> None:
    arguments, text = updated(dtype, kind, layout)
    combine = {"add": np.add, "max": np.maximum}[kind]
    expected = combine(arguments["y"], combine.reduce(arguments["x"]))
    np.testing.assert_array_equal(outputs(text, arguments)["y"], expected)


@pytest.mark.parametrize(
    ("target", "dtype", "kind", "instruction"),
    [
        ("sm_90a", np.float32, "add", "red.relaxed.gpu.global.add.v4.f32"),
        ("sm_80", np.float32, "add", "add.f32"),
        ("sm_90a", np.int32, "add", "add.u32"),
    ],
)
def test_vectors_of_f32_are_added_by_one_instruction(
    target: str, dtype: type, kind: str, instruction: str
) -> None:
    _, text = updated(dtype, kind, ONCE)
    found = Compilation(Source("tiles.mlir", text), Options(target=Target.parse(target)))
    lines = [line for line in found.ptx.splitlines() if "red." in line or "atom." in line]
    assert lines
    assert all(instruction in line for line in lines)
    assert any(".v4." in line for line in lines) == ("v4" in instruction)


KINDS = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exchange": lambda old, new: new,
}


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        *((np.int32, kind) for kind in KINDS),
        *((np.float32, kind) for kind in ("add", "max", "min", "exchange")),
    ],
)
def test_ordered_updates_of_an_element(dtype: type, kind: str) -> None:
    element = {np.float32: "f32", np.int32: "i32"}[dtype]
    arguments = {"y": np.asarray([5, -6, 7], dtype), "old": np.zeros(1, dtype)}
    number = "-3.0" if dtype is np.float32 else "-3"
    body = f"""
    %n = arith.constant {number} : {element}
    %v = "lego.atomic"(%n, %y, %c1) {{layout = #y, kind = "{kind}", ordered}}
        : ({element}, memref<3x{element}>, index) -> {element}
    %t = "lego.full"(%v) : ({element}) -> {tile(coalesced((1,), 4, 1), element)}
    {store(arguments, "old", "%t", tile(coalesced((1,), 4, 1), element))}
"""
    found = outputs(kernel(arguments, 1, body), arguments)
    expected = np.asarray([5, KINDS[kind](dtype(-6), dtype(-3)), 7], dtype)
    np.testing.assert_array_equal(found["y"], expected)
    np.testing.assert_array_equal(found["old"], arguments["y"][1:2])
