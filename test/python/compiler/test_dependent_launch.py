"""Programmatic dependent launch: kept from sm_90 on, dropped before."""

from __future__ import annotations

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import OrderBy, Row

N = 64
F32 = lg.Tensor["f32", OrderBy(Row(N))]


@lg.kernel(grid=2, block=32, pdl=True)
def double(x: F32, y: F32) -> None:
    i = OrderBy(Row(2, 32)).apply(lg.block_id(), lg.thread_id())
    y[i] = 2 * x[i]


@pytest.mark.parametrize(("target", "has"), [("sm_90a", True), ("sm_100", True), ("sm_80", False)])
def test_older_targets_wait_for_the_launch_ahead(target: str, has: bool) -> None:
    artifact = double.compile(target)
    assert artifact.launches[0].pdl == has
    assert ("griddepcontrol.wait" in artifact.ptx) == has
    y = np.zeros(N, np.float32)
    lg.launch(artifact, np.ones(N, np.float32), y, device="sim")
    assert (y == 2).all()


@lg.kernel(grid=2, block=32)
def fenced(x: F32, y: F32) -> None:
    i = OrderBy(Row(2, 32)).apply(lg.block_id(), lg.thread_id())
    y[i] = x[i]
    lg.fence()


def test_a_fence_orders_the_accesses_of_the_gpu() -> None:
    lines = fenced.compile("sm_90a").ptx.splitlines()
    (at,) = (n for n, line in enumerate(lines) if "fence.acq_rel.gpu" in line)
    assert any("st.global" in line for line in lines[:at])
