"""The cases of products, the kernels that they ask for, and the peers that can take part."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lego_mlir.kernels
from bench.gemm.cases import CASES, FAST, OTHERS, SQUARES, TRANSPOSES, make, multiplied
from bench.gemm.product import Product
from bench.peers import Absent, Setup, cublas
from lego_mlir import Col, OrderBy, Row


def setup_of(product: Product, torch: Any = None) -> Setup:
    data: Any = SimpleNamespace(reference=product, sets=0)
    return Setup(data, product.dtype, None, None, torch, Path())


def test_all_squares_and_transposes_of_f16_are_measured() -> None:
    names = {case.name for case in CASES}
    for n in SQUARES:
        assert {f"gemm_f16_{n}_{t.lower()}" for t in TRANSPOSES} <= names
    for m, n, k in OTHERS:
        assert f"gemm_f16_{m}x{n}x{k}_nt" in names
    assert len(names) == len(CASES)


def test_names_tell_type_sizes_orders_and_schedule() -> None:
    assert multiplied(8, 8, 8).name == "gemm_f16_8_nn"
    assert multiplied(8, 8, 16, "f8E4M3FN", "NT").name == "gemm_e4m3_8x8x16_nt"
    assert multiplied(8, 8, 8, c="col", variant="hmma").name == "gemm_f16_8_nn_col_hmma"
    assert FAST in multiplied(8, 8, 8, "f8E5M2", "NT").peers
    assert FAST not in multiplied(8, 8, 8, "bf16").peers


def test_the_kernel_gets_the_layouts_of_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def matmul(*sizes: Any, **options: Any) -> str:
        asked.update(options, sizes=sizes)
        return "a kernel"

    monkeypatch.setattr(lego_mlir.kernels, "matmul", matmul)
    assert multiplied(16, 32, 64, "i8", "TN", c="col").make("sm_80") == "a kernel"
    assert asked["sizes"] == (16, 32, 64, "i8")
    assert asked["out"] == "i32"
    assert (asked["a"], asked["b"], asked["c"]) == (
        OrderBy(Col(16, 64)),
        OrderBy(Row(64, 32)),
        OrderBy(Col(16, 32)),
    )
    assert asked["schedule"] is asked["config"] is None
    assert asked["target"] == "sm_80"
    make(Product(8, 8, 8, "f16", "f16"), "hmma", "sm_90a", "a config")
    assert (asked["schedule"], asked["config"]) == ("hmma", "a config")


def test_who_cannot_take_part_says_why() -> None:
    half = Product(8, 8, 8, "f16", "f16")
    eight = Product(8, 8, 8, "f8E4M3FN", "f16")
    with pytest.raises(Absent, match="PyTorch with CUDA is not installed"):
        cublas.prepare(setup_of(half))
    with pytest.raises(Absent, match="only the sums of fp8 are short"):
        cublas.fast(setup_of(half))
    with pytest.raises(Absent, match="only where k is contiguous in both"):
        cublas.prepare(setup_of(eight, torch=SimpleNamespace()))
