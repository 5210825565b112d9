"""GEMM cases: their names, the kernels that they request, and when a peer is absent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lego_mlir.kernels
from bench.gemm.cases import (
    CASES,
    CUBLAS_FAST,
    OTHER_SHAPES,
    SQUARES,
    TRANSPOSES,
    gemm_case,
    make_kernel,
)
from bench.gemm.references import GemmReference
from bench.peers import Absent, Setup, cublas
from lego_mlir import Col, OrderBy, Row


def setup_of(reference: GemmReference, torch: Any = None) -> Setup:
    data: Any = SimpleNamespace(reference=reference, sets=0)
    return Setup(data, reference.dtype, None, None, torch, Path())


def test_f16_is_measured_for_all_squares_and_transposes() -> None:
    names = {case.name for case in CASES}
    for n in SQUARES:
        assert {f"gemm_f16_{n}_{t.lower()}" for t in TRANSPOSES} <= names
    for m, n, k in OTHER_SHAPES:
        assert f"gemm_f16_{m}x{n}x{k}_nt" in names
    assert len(names) == len(CASES)


def test_names_contain_type_sizes_orders_and_schedule() -> None:
    assert gemm_case(8, 8, 8).name == "gemm_f16_8_nn"
    assert gemm_case(8, 8, 16, "f8E4M3FN", "NT").name == "gemm_e4m3_8x8x16_nt"
    assert gemm_case(8, 8, 8, c="col", variant="cp_async").name == "gemm_f16_8_nn_col_cp_async"
    assert CUBLAS_FAST in gemm_case(8, 8, 8, "f8E5M2", "NT").peers
    assert CUBLAS_FAST not in gemm_case(8, 8, 8, "bf16").peers


def test_a_case_passes_its_layouts_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: dict[str, Any] = {}

    def matmul(*sizes: Any, **options: Any) -> str:
        passed.update(options, sizes=sizes)
        return "a kernel"

    monkeypatch.setattr(lego_mlir.kernels, "matmul", matmul)
    assert gemm_case(16, 32, 64, "i8", "TN", c="col").make("sm_80") == "a kernel"
    assert passed["sizes"] == (16, 32, 64, "i8")
    assert passed["out"] == "i32"
    assert (passed["a"], passed["b"], passed["c"]) == (
        OrderBy(Col(16, 64)),
        OrderBy(Row(64, 32)),
        OrderBy(Col(16, 32)),
    )
    assert passed["schedule"] is passed["config"] is None
    assert passed["target"] == "sm_80"
    make_kernel(GemmReference(8, 8, 8, "f16", "f16"), "cp_async", "sm_90a", "a config")
    assert (passed["schedule"], passed["config"]) == ("cp_async", "a config")


def test_absent_peers_give_a_reason() -> None:
    half = GemmReference(8, 8, 8, "f16", "f16")
    eight = GemmReference(8, 8, 8, "f8E4M3FN", "f16")
    with pytest.raises(Absent, match="PyTorch with CUDA is not installed"):
        cublas.prepare(setup_of(half))
    with pytest.raises(Absent, match="only fp8 has fast accumulation"):
        cublas.prepare_fast(setup_of(half))
    with pytest.raises(Absent, match="only if k is contiguous in A and B"):
        cublas.prepare(setup_of(eight, torch=SimpleNamespace()))
