"""The operators and launches on a GPU: streams, graphs, and tensors that are launched on again."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import lego_mlir as lg
from lego_mlir.kernels import transpose
from lego_mlir.torch import Linear, matmul

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU answers"),
]


def halves(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float16, device="cuda")


def test_repeated_launches_on_the_current_stream() -> None:
    kernel = transpose(512, 256)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):
            a = torch.randn(512, 256, device="cuda", requires_grad=True)
            b = torch.empty(256, 512, device="cuda")
            kernel(a, b)
            assert torch.equal(a.t(), b)


def test_a_stream_that_is_not_the_current_one() -> None:
    kernel, other = transpose(4096, 4096), torch.cuda.Stream()
    for _ in range(5):
        a, b = torch.randn(4096, 4096, device="cuda"), torch.empty(4096, 4096, device="cuda")
        kernel(a, b, stream=other)
        other.synchronize()
        assert torch.equal(a.t(), b)


def test_a_cuda_graph() -> None:
    a, b = halves(256, 256), halves(256, 256)
    matmul(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = matmul(a, b)
    for _ in range(3):
        a.copy_(halves(256, 256))
        graph.replay()
        torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=2e-3, atol=0.1)


def test_a_compiled_network_and_its_gradients() -> None:
    torch.manual_seed(0)
    layers = (Linear(128, 256), torch.nn.GELU(), Linear(256, 64))
    network = torch.nn.Sequential(*layers).half().cuda()
    compiled = torch.compile(network, fullgraph=True)
    x = halves(512, 128)
    expected = torch.autograd.grad(network(x).float().sum(), list(network.parameters()))
    found = torch.autograd.grad(compiled(x).float().sum(), list(network.parameters()))
    for ours, theirs in zip(found, expected, strict=True):
        scale = float(theirs.abs().max())
        torch.testing.assert_close(ours / scale, theirs / scale, rtol=0, atol=1e-2)


def test_host_memory_beside_a_gpu() -> None:
    a, b = torch.zeros(64, 64, device="cuda"), torch.zeros(64, 64)
    with pytest.raises(lg.LegoError, match="for 'a' live on a GPU, those for 'b' in host memory"):
        transpose(64, 64)(a, b)
