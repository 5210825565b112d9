"""A network of two layers whose linear layers are ours, under torch.compile, against eager."""

from __future__ import annotations

import itertools
import shutil
from typing import Any

import pytest
import torch

from lego_mlir.torch import Linear

WIDTHS = (24, 40, 16)


def mlp(linear: Any) -> Any:
    torch.manual_seed(1)
    first, second = (linear(k, n) for k, n in itertools.pairwise(WIDTHS))
    return torch.nn.Sequential(first, torch.nn.GELU(), second).half()


def step(model: Any, x: Any, target: Any) -> tuple[Any, list[Any]]:
    """Return the loss, and the gradients of the input and of all parameters."""
    x = x.detach().requires_grad_()
    loss = torch.nn.functional.mse_loss(model(x).float(), target)
    return loss.detach(), list(torch.autograd.grad(loss, [x, *model.parameters()]))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_forward_and_backward(backend: str) -> None:
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("Inductor compiles C++ for the CPU")
    ours, theirs = mlp(Linear), mlp(torch.nn.Linear)
    compiled = torch.compile(ours, fullgraph=True, backend=backend)
    compiled.parameters = ours.parameters
    generator = torch.Generator().manual_seed(2)
    for _ in range(2):
        x = torch.randn(8, WIDTHS[0], dtype=torch.float16, generator=generator)
        target = torch.randn(8, WIDTHS[-1], generator=generator)
        loss, found = step(compiled, x, target)
        reference, expected = step(theirs.float(), x.float(), target)
        torch.testing.assert_close(loss, reference, rtol=5e-3, atol=1e-3)
        for mine, yours in zip(found, expected, strict=True):
            scale = float(yours.abs().max())
            torch.testing.assert_close(mine.float() / scale, yours / scale, rtol=0, atol=5e-3)
        with torch.no_grad():  # new weights: nothing of them is remembered
            for mine, yours in zip(ours.parameters(), theirs.parameters(), strict=True):
                mine.mul_(0.5)
                yours.copy_(mine.float())
