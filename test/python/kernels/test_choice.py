"""The choice among all ways to compute a GEMM: what it costs, and what it prefers."""

from __future__ import annotations

import cProfile
from typing import Any

import pytest

from lego_mlir import Col, OrderBy, Row
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import GemvConfig, WgmmaConfig
from lego_mlir.kernels.gemm.planner import plan, ways
from lego_mlir.kernels.gemm.problem import Problem

H200 = Target.parse("sm_90a")

_MOST_CALLS = 40_000
"""Calls of Python functions in 5 ms, about; they do not depend on what else the machine runs."""


def gemm(m: int, n: int, k: int, b: Any = Row) -> tuple[Problem, list[Any]]:
    """Return a GEMM of f16 and the layouts of A, B and C."""
    layouts = [OrderBy(Row(m, k)), OrderBy(b(k, n)), OrderBy(Row(m, n))]
    return Problem(m, n, k, "f16", "f16", b="row" if b is Row else "col"), layouts


@pytest.mark.parametrize(
    "sizes", [(3000, 5000, 1000), (28, 6535, 1548), (1, 8191, 8193), (1001, 777, 333)]
)
def test_a_choice_takes_no_more_than_5_ms(sizes: tuple[int, int, int]) -> None:
    problem, layouts = gemm(*sizes)
    plan(problem, layouts, H200)  # what is made once in a process
    profile = cProfile.Profile()
    profile.runcall(plan, problem, layouts, H200)
    assert sum(entry.callcount for entry in profile.getstats()) < _MOST_CALLS


def test_many_unaligned_columns_are_packed() -> None:
    (first, *_) = ways(*gemm(16, 8191, 8193, Col), H200)
    assert isinstance(first, GemvConfig)
    assert first.packs_b


def test_clusters_divide_k_of_few_rows() -> None:
    """For 64 tiles of 128 rows of the transpose, on 132 multiprocessors."""
    (first, *_) = ways(*gemm(16, 8192, 8192, Col), H200)
    assert isinstance(first, WgmmaConfig)
    assert (first.split_k, first.split_k_through, first.tile[1]) == (2, "cluster", 16)
