"""The bench of launches, as far as it goes without a GPU."""

from __future__ import annotations

import pytest

from bench.launch.kernels import TENSORS, sum_kernel
from bench.launch.peers import cute_sum, torch_sum
from bench.peers.base import Absent


def test_our_kernels_add() -> None:
    for count in TENSORS:
        result = sum_kernel(count).run(device="sim")
        *inputs, last = (result.inputs.get(f"x{i}") for i in range(count - 1)), result.outputs
        total = sum(inputs[0])
        assert abs(total - last[f"x{count - 1}"]).max() < 1e-5


def test_the_python_of_a_launch_is_measured() -> None:
    pytest.importorskip("torch")
    from bench.launch import host

    found = host.measure()
    assert len(found) == 16
    assert all(0 < us < 1e6 for us in found.values())
    for count in (3, 8):
        assert found[f"{count} tensors"] < found[f"{count} tensors, new addresses"]


def test_peers_that_are_absent() -> None:
    pytest.importorskip("torch")
    with pytest.raises(Absent, match="adds two tensors"):
        torch_sum([1] * 8)
    with pytest.raises(Absent, match="adds two tensors"):
        cute_sum([1] * 8)
