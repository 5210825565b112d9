"""Configs that the planner tries where the machine code of its first one is slow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import SlowCodeError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import GemvConfig, matmul
from lego_mlir.kernels.gemm import planner
from lego_mlir.kernels.gemm.choice import Option
from lego_mlir.kernels.gemm.gemv import heuristic
from lego_mlir.kernels.gemm.gemv.chunks import warp_unit
from lego_mlir.kernels.gemm.problem import Problem

PROBLEM = Problem(256, 32, 2048, "f16", "f16")


def spilling() -> GemvConfig:
    """Return a config of far more accumulators and chunks than a thread has registers."""
    rows, k = warp_unit(PROBLEM)
    return GemvConfig((rows * 8, 32, k * 16), (1, 4), 4)


def first(monkeypatch: pytest.MonkeyPatch, configs: Sequence[GemvConfig]) -> None:
    """Make these the configs with the best estimates."""
    gpu = planner.spec_of(Target.parse("sm_90a"))
    found = [Option(heuristic.estimate(PROBLEM, config, gpu)) for config in configs]
    known = planner.options
    monkeypatch.setattr(planner, "options", lambda *rest: found + known(*rest))


def test_a_config_that_spills_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    first(monkeypatch, [spilling(), spilling()])
    kernel = matmul(256, 32, 2048, target="sm_90a")
    assert str(spilling()) in kernel.explain()
    artifact = kernel.compile("sm_90a")
    assert kernel.substitute is not None
    assert str(spilling()) not in kernel.explain().splitlines()[3]
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((256, 2048), (2048, 32)))
    c = np.zeros((256, 32), np.float16)
    lg.launch(artifact, a, b, c, device="sim")
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(c, expected, rtol=2e-3, atol=0.25)


def test_a_config_of_the_callers_does_not() -> None:
    kernel = matmul(256, 32, 2048, config=spilling(), target="sm_90a")
    with pytest.raises(SlowCodeError, match="spills"):
        kernel.compile("sm_90a")
    assert kernel.substitute is None


def test_code_with_checks_may_spill() -> None:
    kernel = matmul(256, 32, 2048, config=spilling(), target="sm_90a")
    assert kernel.compile("sm_90a", check=True).cubin


def test_the_error_is_the_first_ones_if_all_spill(monkeypatch: pytest.MonkeyPatch) -> None:
    first(monkeypatch, [spilling()])
    kernel = matmul(256, 32, 2048, target="sm_90a")
    other = matmul(256, 32, 2048, config=spilling(), target="sm_90a")
    kernel.alternatives = lambda: [other]
    with pytest.raises(SlowCodeError, match="spills"):
        kernel.compile("sm_90a")
