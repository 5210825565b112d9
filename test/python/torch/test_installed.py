"""Says that the tests of this folder are left out where PyTorch is not installed."""

from __future__ import annotations

import pytest


def test_what_this_room_gives() -> None:
    pytest.importorskip("torch", reason="the tests of lego_mlir.torch need PyTorch, see .ci/torch")
    import lego_mlir.torch

    for name in lego_mlir.torch.__all__:
        assert callable(getattr(lego_mlir.torch, name))
