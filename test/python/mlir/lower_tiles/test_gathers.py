"""Gathers and scatters access the elements at the indices that tiles hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile_kernels import compiled, kernel, load, outputs, store, tile

from lego_mlir.analysis.distributed import DistributedLayout, coalesced, reduced
from lego_mlir.diagnostics import LegoError


def lookup(rows: int, columns: int, warps: int, dtype: str = "f32") -> tuple[dict[str, Any], str]:
    """Return arguments and body of a lookup of rows in a table."""
    rng = np.random.default_rng(1)
    numpy = {"f32": np.float32, "f16": np.float16}[dtype]
    arguments = {
        "table": rng.integers(0, 99, (50, columns)).astype(numpy),
        "index": rng.integers(0, 50, (rows, 1)).astype(np.int32),
        "y": np.zeros((rows, columns), numpy),
    }
    layout = coalesced((rows, columns), numpy().itemsize, warps)
    value, bits = tile(layout, dtype), tile(layout, "i32")
    one = tile(reduced(layout, 1), "i32")
    body = f"""
    %rows = {load(arguments, "index", one)}
    %all = "lego.broadcast"(%rows) : ({one}) -> {bits}
    %columns = "lego.iota"() {{dim = 1 : i64}} : () -> {bits}
    %v = "lego.gather"(%table, %all, %columns)
        {{layout = #table, operandSegmentSizes = array<i32: 1, 2, 0>}}
        : (memref<{50 * columns}x{dtype}>, {bits}, {bits}) -> {value}
    {store(arguments, "y", "%v", value)}
"""
    return arguments, kernel(arguments, warps, body)


@pytest.mark.parametrize(("dtype", "warps"), [("f32", 4), ("f16", 1)])
def test_rows_of_a_table_are_read_by_vectors(dtype: str, warps: int) -> None:
    arguments, text = lookup(16, 64, warps, dtype)
    expected = arguments["table"][arguments["index"][:, 0]]
    np.testing.assert_array_equal(outputs(text, arguments)["y"], expected)
    ptx = compiled(text).ptx
    assert "ld.global.v4" in ptx
    assert "ld.global.b16" not in ptx


def masked(operation: str, warps: int = 2) -> tuple[dict[str, Any], str]:
    """Return arguments and a kernel of a permutation of 256 elements of which some are masked."""
    rng = np.random.default_rng(2)
    arguments = {
        "x": rng.integers(1, 99, 256).astype(np.int32),
        "index": rng.permutation(256).astype(np.int32),
        "bound": np.arange(256).astype(np.int32) % 50,
        "y": np.full(256, -1, np.int32),
    }
    layout = coalesced((256,), 4, warps)
    bits, truth = tile(layout, "i32"), tile(layout, "i1")
    memref = "memref<256xi32>"
    segments = {"gather": "1, 1, 0", "scatter": "1, 1, 1, 0"}[operation]
    attributes = f"{{layout = #x, operandSegmentSizes = array<i32: {segments}>}}"
    last = {
        "gather": f"""
    %v = "lego.gather"(%x, %some) {attributes} : ({memref}, {bits}) -> {bits}
    {store(arguments, "y", "%v", bits)}""",
        "scatter": f"""
    %v = {load(arguments, "x", bits)}
    "lego.scatter"(%v, %y, %some) {attributes} : ({bits}, {memref}, {bits}) -> ()""",
    }[operation]
    body = f"""
    %at = {load(arguments, "index", bits)}
    %low = {load(arguments, "bound", bits)}
    %limit = arith.constant dense<30> : {bits}
    %mask = arith.cmpi slt, %low, %limit : {bits}
    %some = "lego.restrict"(%at, %mask) : ({bits}, {truth}) -> {bits}
    {last}
"""
    return arguments, kernel(arguments, warps, body)


def test_a_masked_gather_reads_nothing_where_the_mask_is_false() -> None:
    arguments, text = masked("gather")
    valid = arguments["bound"] < 30
    arguments["index"][~valid] = 10**8  # far outside
    read = arguments["x"][np.where(valid, arguments["index"], 0)]
    expected = np.where(valid, read, arguments["y"])  # and what is invalid is not stored
    np.testing.assert_array_equal(outputs(text, arguments)["y"], expected)


def test_a_masked_scatter_writes_nothing_where_the_mask_is_false() -> None:
    arguments, text = masked("scatter")
    valid = arguments["bound"] < 30
    expected = np.full(256, -1, np.int32)
    expected[arguments["index"][valid]] = arguments["x"][valid]
    np.testing.assert_array_equal(outputs(text, arguments)["y"], expected)


@pytest.mark.parametrize(
    "layout",
    [coalesced((512,), 4, 4), reduced(coalesced((512, 8), 4, 4), 1)],
    ids=["each element once", "copies of elements"],
)
def test_a_histogram_counts_every_element_once(layout: DistributedLayout) -> None:
    shape = layout.shape
    arguments = {
        "x": np.random.default_rng(3).integers(0, 16, shape).astype(np.int32),
        "count": np.zeros(16, np.int32),
    }
    bits = tile(layout, "i32")
    body = f"""
    %bin = {load(arguments, "x", bits)}
    %one = arith.constant dense<1> : {bits}
    "lego.scatter"(%one, %count, %bin)
        {{layout = #count, kind = "add", operandSegmentSizes = array<i32: 1, 1, 1, 0>}}
        : ({bits}, memref<16xi32>, {bits}) -> ()
"""
    text = kernel(arguments, 4, body)
    expected = np.bincount(arguments["x"].reshape(-1), minlength=16)
    np.testing.assert_array_equal(outputs(text, arguments)["count"], expected)


def test_an_index_outside_is_found_where_indices_are_checked() -> None:
    arguments, text = lookup(16, 64, 1)
    arguments["index"][3] = 50
    with pytest.raises(LegoError, match="index 0 of 'table' is 50, its size is 50"):
        outputs(text, arguments, check=True)
