"""Errors for contractions that contract_to_mma does not support: message, location and hint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gemm_kernels import MmaKernel, compilation

from lego_mlir.diagnostics import LegoError

KERNEL = MmaKernel()
TILE = "vector<32x32xf32>"


def refused(text: str, folder: Path, attributes: str = "", target: str = "sm_90a") -> LegoError:
    with pytest.raises(LegoError) as caught:
        compilation(text, folder, attributes, target).text("index")
    error = caught.value
    assert error.location is not None
    assert error.location.line > 1
    assert error.hint
    return error


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        (
            'lego.warps = #lego.layout<"OrderBy(Row(1, 1))">',
            "other = 1",
            "the contraction has no lego.warps",
            "2 by 2 warps",
        ),
        (
            "iterator_types",
            "kind = #vector.kind<maxnumf>, iterator_types",
            "looked for a contraction that adds, found #vector.kind<maxnumf>",
            "tensor cores have no instruction",
        ),
        (
            "OrderBy(Row(1, 1))",
            "OrderBy(Row(1))",
            "has 1 dimensions, but needs 2",
            "Row",
        ),
        (
            "OrderBy(Row(1, 1))",
            "OrderBy(Row(4, 1))",
            r"32 rows, no multiple of 64: 4 warps of instructions m16n8k16 with 16",
            "tile's sizes",
        ),
        (
            "OrderBy(Row(1, 1))",
            "OrderBy(Row(2, 1))",
            "are 64 threads, a CTA has 32",
            "32 times",
        ),
    ],
)
def test_contractions_that_warps_cannot_compute(
    tmp_path: Path, old: str, new: str, says: str, hint: str
) -> None:
    text = KERNEL.text()
    assert old in text
    error = refused(text.replace(old, new), tmp_path)
    assert error.message.startswith("contract_to_mma: ")
    with pytest.raises(LegoError, match=says):
        raise error
    assert hint in (error.hint or "")


def test_a_matrix_vector_product_is_no_matmul(tmp_path: Path) -> None:
    other = """%row = arith.constant dense<1.0> : vector<32xf16>
        %sums = arith.constant dense<0.0> : vector<32xf32>
        %no = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>,
            affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>],
            iterator_types = ["parallel", "reduction"]} %x, %row, %sums
            : vector<32x32xf16>, vector<32xf16> into vector<32xf32>
        %next = vector.contract"""
    error = refused(KERNEL.text().replace("%next = vector.contract", other), tmp_path)
    assert (
        "looked for a matmul, found a contraction with the maps "
        "(d0, d1) -> (d0, d1), (d0, d1) -> (d1), (d0, d1) -> (d0)" in error.message
    )
    assert "parallel, reduction" in error.message
    assert "in either order" in (error.hint or "")


def test_a_type_without_an_instruction(tmp_path: Path) -> None:
    error = refused(replace(KERNEL, element="f32").text(), tmp_path)
    assert "sm_90a has no mma.sync of f32 by f32 to f32" in error.message
    assert "f16 to f32 (m16n8k16)" in (error.hint or "")


def test_a_target_without_the_instruction(tmp_path: Path) -> None:
    problem = replace(KERNEL, element="f8E5M2", shared_b="OrderBy(Col(BK, BN))")
    error = refused(problem.text(), tmp_path, target="sm_80")
    assert "sm_80 has no mma.sync of f8E5M2 to f32" in error.message
    assert "sm_89 or later; this target has: f16 to f32" in (error.hint or "")
    error = refused(KERNEL.text(), tmp_path, target="sm_75")
    assert "this target has: none" in (error.hint or "")


def test_m_n_k_must_be_those_of_the_instruction(tmp_path: Path) -> None:
    error = refused(KERNEL.text(), tmp_path, "k = 8 : i64")
    assert "k is 8, but mma.sync of f16 to f32 (m16n8k16) has 16" in error.message
    assert error.location is not None
    assert error.location.file.endswith("schedule.mlir")


def test_combined_contractions_need_the_same_warps(tmp_path: Path) -> None:
    inside = """%other = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
            affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
            iterator_types = ["parallel", "parallel", "reduction"],
            lego.warps = #lego.layout<"OrderBy(Col(2, 2))">} %x, %y, %next
            : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
        %last = arith.addf %next, %other : vector<32x32xf32>"""
    problem = replace(KERNEL, warps="OrderBy(Row(2, 2))", after_dot=inside)
    error = refused(problem.text(), tmp_path)
    assert "whose lego.warps is 'OrderBy(Row(2, 2))', not 'OrderBy(Col(2, 2))'" in error.message


@pytest.mark.parametrize("element", ["i8", "f8E4M3FN"])
def test_bytes_are_not_transposed(tmp_path: Path, element: str) -> None:
    sums = "i32" if element == "i8" else "f32"
    problem = replace(KERNEL, element=element, accumulator=sums, out=sums)
    if element == "i8":
        problem = replace(problem, epilogue="%result = arith.addi %sum, %sum : vector<32x32xi32>")
    error = refused(problem.text(), tmp_path)
    assert "they are not contiguous at multiples of" in error.message
    assert "make the K dimension contiguous" in (error.hint or "")


def test_ldmatrix_needs_contiguous_rows(tmp_path: Path) -> None:
    error = refused(replace(KERNEL, shared_a="OrderBy(GenP([BM, BK], swizzle))").text(), tmp_path)
    assert "moves 8 neighbours at once" in error.message
    assert "swizzle(8, 1, 8)" in (error.hint or "")


def test_operands_must_be_in_shared_memory(tmp_path: Path) -> None:
    text = KERNEL.text().replace(
        "%next = vector.contract",
        "%z = arith.constant dense<1.0> : vector<32x32xf16>\n        %next = vector.contract",
    )
    error = refused(text.replace("%x, %y, %acc", "%z, %y, %acc"), tmp_path)
    assert "lhs operand in shared memory, found 'arith.constant'" in error.message
    assert "stage_in_shared" in (error.hint or "")
    load = (
        '%g = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>} '
        ": (memref<2048xf16>, index, index) -> vector<32x32xf16>"
    )
    text = KERNEL.text().replace("%next = vector.contract", f"{load}\n  %next = vector.contract")
    error = refused(text.replace("%x, %y, %acc", "%g, %y, %acc"), tmp_path)
    assert "the lhs operand is read from the buffer memref<2048xf16>" in error.message


def test_no_barrier_between_a_load_and_the_contraction(tmp_path: Path) -> None:
    text = KERNEL.text().replace("%next = vector.contract", "gpu.barrier %next = vector.contract")
    text = text.replace("gpu.barrier %next", "gpu.barrier\n        %next")
    error = refused(text, tmp_path)
    assert "the load of the lhs operand cannot move to the contraction: a barrier" in error.message


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (
            f"%result = vector.transpose %sum, [1, 0] : {TILE} to {TILE}",
            "is used by 'vector.transpose'",
        ),
        (
            f"%numbers = vector.step : vector<32xindex>\n"
            "      %words = arith.index_cast %numbers : vector<32xindex> to vector<32xi32>\n"
            "      %floats = arith.sitofp %words : vector<32xi32> to vector<32xf32>\n"
            f"      %all = vector.broadcast %floats : vector<32xf32> to {TILE}\n"
            f"      %result = arith.addf %sum, %all : {TILE}",
            "is made by 'vector.step'",
        ),
    ],
)
def test_operations_that_cannot_be_distributed(tmp_path: Path, operation: str, says: str) -> None:
    error = refused(replace(KERNEL, epilogue=operation).text(), tmp_path)
    assert says in error.message
    assert "vector.broadcast" in (error.hint or "")


def test_the_payload_must_be_a_contraction(tmp_path: Path) -> None:
    schedule = compilation(KERNEL.text(), tmp_path)
    script = (tmp_path / "schedule.mlir").read_text()
    (tmp_path / "schedule.mlir").write_text(script.replace('"vector.contract"', '"gpu.barrier"'))
    with pytest.raises(LegoError, match=r"looked for a vector\.contract, found 'gpu\.barrier'"):
        schedule.text("index")
