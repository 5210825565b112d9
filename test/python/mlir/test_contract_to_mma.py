"""Products on tensor cores, end to end: the PTX that comes out, simulated, against NumPy.

The payloads are those of `gemm_kernels`; sums are of small integers, and exact.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gemm_kernels import MmaKernel, compilation, run

from lego_mlir.sim.cost.counter import Costs

TILE = "vector<32x32xf32>"


def check(problem: MmaKernel, tmp_path: Path, target: str = "sm_90a") -> Costs:
    """Twice the product, as the epilogue that is there by default has it."""
    out, inputs, costs = run(problem, tmp_path, target)
    assert np.array_equal(out, 2 * (inputs["a"] @ inputs["b"]))
    return costs


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_operands_transposed_or_not(tmp_path: Path, left: bool, right: bool) -> None:
    shared_left = "OrderBy(Row(BK, BM))" if left else "OrderBy(Row(BM, BK))"
    shared_right = "OrderBy(Row(BN, BK))" if right else "OrderBy(Row(BK, BN))"
    check(
        MmaKernel(shared_a=shared_left, shared_b=shared_right, transposed=(left, right)), tmp_path
    )


@pytest.mark.parametrize("right", ["Row", "Col"])
@pytest.mark.parametrize("left", ["Row", "Col"])
def test_shared_memory_row_by_row_or_column_by_column(
    tmp_path: Path, left: str, right: str
) -> None:
    check(
        MmaKernel(
            shared_a=f"OrderBy({left}(BM, BK))", shared_b=f"OrderBy({right}(BK, BN))", prefetch=1
        ),
        tmp_path,
    )


@pytest.mark.parametrize("swizzled", [False, True])
def test_tiles_in_pipeline_stages(tmp_path: Path, swizzled: bool) -> None:
    left, right = "OrderBy(Row(BM, BK))", "OrderBy(Col(BK, BN))"
    if swizzled:
        left, right = (f"OrderBy(GenP([{t}], swizzle(8, 1, 4)))" for t in ("BM, BK", "BK, BN"))
    check(MmaKernel(iterations=3, separate_stages=True, shared_a=left, shared_b=right), tmp_path)


def contraction(result: str, start: str, warps: str = "OrderBy(Row(1, 1))") -> str:
    return f"""{result} = vector.contract {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
            affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
            iterator_types = ["parallel", "parallel", "reduction"],
            lego.warps = #lego.layout<"{warps}">}} %x, %y, {start}
            : vector<32x32xf16>, vector<32x32xf16> into {TILE}"""


@pytest.mark.parametrize("start", ["%next", "%zero"])
def test_two_gemms_in_one_accumulator(tmp_path: Path, start: str) -> None:
    inside = contraction("%last", start)
    if start == "%zero":
        inside = contraction("%other", start) + f"%last = arith.addf %next, %other : {TILE}"
        inside = inside.replace("%last", "\n        %last")
    problem = MmaKernel(after_dot=inside, epilogue=f"%result = arith.addf %sum, %zero : {TILE}")
    out, inputs, _ = run(problem, tmp_path)
    assert np.array_equal(out, 2 * (inputs["a"] @ inputs["b"]))


def test_two_gemms_with_one_initial_value_stay_separate(tmp_path: Path) -> None:
    apart = (
        contraction("%other", "%zero")
        + f"""
        %two = arith.addf %other, %other : {TILE}
        "lego.store"(%two, %c, %c0, %c0) {{layout = #C, slice = array<i64: 2, 3>}}
            : ({TILE}, memref<1024xf32>, index, index) -> ()
        %same = arith.constant dense<0.0> : {TILE}
        %last = arith.addf %next, %same : {TILE}"""
    )
    problem = MmaKernel(iterations=1, after_dot=apart, epilogue=" ", store=" ")
    out, inputs, _ = run(problem, tmp_path)
    assert np.array_equal(out, 2 * (inputs["a"] @ inputs["b"]))


def test_sums_that_are_changed_from_step_to_step(tmp_path: Path) -> None:
    inside = f"""%two = arith.constant dense<2.0> : {TILE}
        %last = arith.mulf %next, %two : {TILE}"""
    out, inputs, _ = run(
        MmaKernel(after_dot=inside, epilogue=f"%result = arith.negf %sum : {TILE}"), tmp_path
    )
    a, b = inputs["a"], inputs["b"]
    assert np.array_equal(out, -(4 * a[:, :32] @ b[:32] + 2 * a[:, 32:] @ b[32:]))


def test_the_second_operand_may_have_the_rows(tmp_path: Path) -> None:
    # Summed up over (j, i), the square tile is the transposed product.
    out, inputs, _ = run(MmaKernel(result_map="(j, i)", prefetch=1), tmp_path)
    assert np.array_equal(out, 2 * (inputs["a"] @ inputs["b"]).T)


@pytest.mark.parametrize("element", ["f16", "bf16", "i8", "f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("target", ["sm_89", "sm_90a"])
def test_every_element_type_is_lowered(tmp_path: Path, element: str, target: str) -> None:
    integers = element == "i8"
    tile = "vector<32x32xi32>"
    problem = MmaKernel(
        element=element,
        accumulator="i32" if integers else "f32",
        out="i32" if integers else "f32",
        shared_b="OrderBy(Col(BK, BN))",
        epilogue=f"%result = arith.addi %sum, %sum : {tile}" if integers else "",
    )
    check(problem, tmp_path, target)


@pytest.mark.parametrize(
    ("tile", "warps"),
    [
        ((64, 64, 32), "OrderBy(Row(2, 2))"),
        ((64, 64, 32), "OrderBy(Col(2, 2))"),
        ((64, 32, 16), "OrderBy(Row(4, 1))"),
        ((16, 64, 48), "OrderBy(Row(1, 4))"),
        ((48, 24, 16), "OrderBy(Row(3, 1))"),
        ((16, 8, 16), "OrderBy(Row(1, 1))"),
        ((32, 24, 32), "OrderBy(Row(2, 3))"),
    ],
)
@pytest.mark.parametrize("prefetch", [0, 1])
def test_warps_and_sizes(
    tmp_path: Path, tile: tuple[int, int, int], warps: str, prefetch: int
) -> None:
    check(MmaKernel(tile=tile, warps=warps, prefetch=prefetch), tmp_path)


def test_swizzled_operands_are_read_without_bank_conflicts(tmp_path: Path) -> None:
    problem = MmaKernel(tile=(64, 64, 64), warps="OrderBy(Row(2, 2))", iterations=1)
    swizzled = replace(
        problem,
        shared_a="OrderBy(GenP([BM, BK], swizzle(8, 1, 8)))",
        shared_b="OrderBy(GenP([BK, BN], swizzle(8, 1, 8)))",
    )
    plain = [row for row in check(problem, tmp_path).memory if "ldmatrix" in row.instruction.opcode]
    better = [
        row for row in check(swizzled, tmp_path).memory if "ldmatrix" in row.instruction.opcode
    ]
    assert sum(row.wavefronts for row in plain) == 8 * sum(row.least_wavefronts for row in plain)
    assert better
    assert all(row.wavefronts == row.least_wavefronts for row in better)


WHOLE = "slice = array<i64: 2, 3>"


def epilogue(*operations: str) -> str:
    return "\n      ".join(operations)


def test_a_row_is_added_to_every_row(tmp_path: Path) -> None:
    problem = MmaKernel(
        out="f16",
        epilogue=epilogue(
            '%row = "lego.load"(%bias) {layout = #lego.layout<"OrderBy(Row(BN))">, '
            "slice = array<i64: 0>} : (memref<32xf32>) -> vector<32xf32>",
            "%half = arith.constant dense<0.5> : vector<32xf32>",
            "%less = arith.mulf %row, %half : vector<32xf32>",
            f"%all = vector.broadcast %less : vector<32xf32> to {TILE}",
            f"%more = arith.addf %sum, %all : {TILE}",
            f"%none = arith.constant dense<0.0> : {TILE}",
            f"%positive = arith.maximumf %more, %none : {TILE}",
            f"%result = arith.truncf %positive : {TILE} to vector<32x32xf16>",
        ),
    )
    out, inputs, _ = run(problem, tmp_path)
    expected = np.maximum(inputs["a"] @ inputs["b"] + 0.5 * inputs["bias"], 0)
    assert np.array_equal(out, expected)


def test_a_column_is_added_to_every_column(tmp_path: Path) -> None:
    problem = MmaKernel(
        epilogue=epilogue(
            '%flat = "lego.load"(%bias) {layout = #lego.layout<"OrderBy(Row(BM))">, '
            "slice = array<i64: 0>} : (memref<32xf32>) -> vector<32xf32>",
            "%column = vector.shape_cast %flat : vector<32xf32> to vector<32x1xf32>",
            f"%all = vector.broadcast %column : vector<32x1xf32> to {TILE}",
            f"%result = arith.addf %all, %sum : {TILE}",
        ),
    )
    out, inputs, _ = run(problem, tmp_path)
    assert np.array_equal(out, inputs["a"] @ inputs["b"] + inputs["bias"][:, None])


def test_a_number_scales_what_is_chosen(tmp_path: Path) -> None:
    problem = MmaKernel(
        epilogue=epilogue(
            '%number = "lego.load"(%bias, %c0) {layout = #lego.layout<"OrderBy(Row(BN))">} '
            ": (memref<32xf32>, index) -> f32",
            f"%factor = vector.broadcast %number : f32 to {TILE}",
            f"%scaled = arith.mulf %sum, %factor : {TILE}",
            f"%none = arith.constant dense<0.0> : {TILE}",
            f"%chosen = arith.cmpf ogt, %sum, %none : {TILE}",
            f"%result = arith.select %chosen, %scaled, %sum : vector<32x32xi1>, {TILE}",
        ),
    )
    out, inputs, _ = run(problem, tmp_path)
    product = inputs["a"] @ inputs["b"]
    assert np.array_equal(out, np.where(product > 0, product * inputs["bias"][0], product))


def load_start(name: str) -> str:
    return (
        f'%{name} = "lego.load"(%initial, %c0, %c0) {{layout = #C, {WHOLE}}} '
        f": (memref<1024xf32>, index, index) -> {TILE}"
    )


def test_a_tile_is_added(tmp_path: Path) -> None:
    problem = MmaKernel(
        epilogue=epilogue(load_start("old"), f"%result = arith.addf %sum, %old : {TILE}")
    )
    out, inputs, _ = run(problem, tmp_path)
    assert np.array_equal(out, inputs["a"] @ inputs["b"] + inputs["initial"])


def test_the_sums_begin_with_a_tile_in_any_layout(tmp_path: Path) -> None:
    layout = "OrderBy(GenP([M, N], antidiagonal)).TileBy([1, 1], [BM, BN])"
    problem = MmaKernel(
        c=layout, initial=load_start("zero"), epilogue=f"%result = arith.negf %sum : {TILE}"
    )
    out, inputs, _ = run(problem, tmp_path)
    assert np.array_equal(out, -(inputs["a"] @ inputs["b"] + inputs["initial"]))


@pytest.mark.parametrize("size", [(27, 30), (5, 31), (32, 9)])
def test_partial_tiles_are_stored_as_far_as_they_go(tmp_path: Path, size: tuple[int, int]) -> None:
    out, inputs, _ = run(MmaKernel(size=size), tmp_path)
    m, n = size
    assert np.array_equal(out, 2 * (inputs["a"] @ inputs["b"])[:m, :n])


def through_shared(layout: str, element: str) -> str:
    space = "#gpu.address_space<workgroup>"
    return f"""
      %sc = "lego.alloc"() {{layout = #lego.layout<"{layout}">}}
          : () -> memref<?x{element}, {space}>
      "lego.store"(%result, %sc) {{layout = #lego.layout<"{layout}">, slice = array<i64: 0, 1>}}
          : (vector<64x64x{element}>, memref<?x{element}, {space}>) -> ()
      gpu.barrier
      %all = arith.constant 4096 : index
      scf.for %f = %tx to %all step %threads {{
        %i, %j = "lego.inv"(%f) {{layout = #lego.layout<"OrderBy(Row(64, 64))">}}
            : (index) -> (index, index)
        %v = "lego.load"(%sc, %i, %j) {{layout = #lego.layout<"{layout}">}}
            : (memref<?x{element}, {space}>, index, index) -> {element}
        "lego.store"(%v, %c, %c0, %c0, %i, %j) {{layout = #C}}
            : ({element}, memref<4096x{element}>, index, index, index, index) -> ()
      }}"""


def wavefronts(costs: Costs, opcode: str) -> tuple[int, int]:
    """Those that the accesses of shared memory took, and the least that they can."""
    rows = [r for r in costs.memory if r.space == "shared" and opcode in r.instruction.opcode]
    return sum(r.wavefronts for r in rows), sum(r.least_wavefronts for r in rows)


@pytest.mark.parametrize("order", ["Row", "Col"])
def test_f16_goes_to_shared_memory_by_matrices(tmp_path: Path, order: str) -> None:
    tile = "vector<64x64xf32>"
    truncated = f"%result = arith.truncf %sum : {tile} to vector<64x64xf16>"
    problem = MmaKernel(
        tile=(64, 64, 16), warps="OrderBy(Row(2, 2))", out="f16", epilogue=truncated
    )
    layout = f"OrderBy({order}(64, 64))"
    out, inputs, costs = run(replace(problem, store=through_shared(layout, "f16")), tmp_path)
    assert np.array_equal(out, inputs["a"] @ inputs["b"])
    # 16 by 16 elements an instruction, 16 of them in each of four warps.
    assert sum(r.requests for r in costs.memory if "stmatrix" in r.instruction.opcode) == 4 * 4
    stores = [r for r in costs.memory if "stmatrix" in r.instruction.opcode]
    assert all(("trans" in r.instruction.opcode) == (order == "Col") for r in stores)


@pytest.mark.parametrize(
    ("target", "element", "swizzle", "opcode"),
    [
        ("sm_90a", "f16", "swizzle(8, 1, 8)", "stmatrix"),
        ("sm_80", "f16", "swizzle(8, 1, 8)", "st.shared.b32"),
        ("sm_90a", "f32", "swizzle(8, 1, 4)", "st.shared.v2.b32"),
    ],
)
def test_a_swizzled_result_is_stored_without_bank_conflicts(
    tmp_path: Path, target: str, element: str, swizzle: str, opcode: str
) -> None:
    tile = "vector<64x64xf32>"
    problem = MmaKernel(
        tile=(64, 64, 16),
        warps="OrderBy(Row(2, 2))",
        out=element,
        epilogue=f"%half = arith.truncf %sum : {tile} to vector<64x64xf16>\n"
        "      %result = arith.addf %half, %half : vector<64x64xf16>"
        if element == "f16"
        else "",
        store=through_shared(f"OrderBy(GenP([64, 64], {swizzle}))", element),
    )
    out, inputs, costs = run(problem, tmp_path, target)
    assert np.array_equal(out, 2 * (inputs["a"] @ inputs["b"]))
    moved, least = wavefronts(costs, opcode)
    assert moved == least > 0


@pytest.mark.parametrize("element", ["f16", "f8E5M2"])
def test_mmas_stay_where_all_lanes_execute(tmp_path: Path, element: str) -> None:
    # Their sums are only used under the masks of a partial tile: no reason to be computed there.
    problem = MmaKernel(
        size=(27, 30), iterations=1, element=element, shared_b="OrderBy(Col(BK, BN))"
    )
    ptx = compilation(problem.text(), tmp_path).ptx
    first, last = ptx.index("mma.sync"), ptx.rindex("mma.sync")
    assert "bra" in ptx[last:]
    assert "bra" not in ptx[first:last]


@pytest.mark.parametrize("element", ["f32", "i8"])
def test_other_types_go_to_shared_memory_in_pairs(tmp_path: Path, element: str) -> None:
    tile, integers = "vector<64x64xf32>", element == "i8"
    problem = MmaKernel(
        tile=(64, 64, 16),
        iterations=1,
        warps="OrderBy(Row(4, 1))",
        out=element,
        epilogue=f"%result = arith.fptosi %sum : {tile} to vector<64x64xi8>"
        if integers
        else f"%result = arith.addf %sum, %sum : {tile}",
        store=through_shared("OrderBy(Row(64, 64))", element),
    )
    out, inputs, _ = run(problem, tmp_path)
    expected = (inputs["a"] @ inputs["b"]) * (1 if integers else 2)
    inside = np.abs(expected) < 128 if integers else np.full(expected.shape, True)
    assert inside.mean() > 0.9
    assert np.array_equal(out[inside], expected[inside])
