"""Several products as PyTorch computes them: in one launch, and one after another by cuBLAS."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.gemm.groups import Groups
from bench.gemm.operands import Operands
from bench.peers.base import Setup
from bench.peers.cublas import memory
from bench.timing import Call


@dataclass(frozen=True, slots=True)
class Grouped:
    """A call of `torch._grouped_mm`, which puts its output into memory of its own.

    Attributes:
        torch: the module.
        given: by set all A, all B, and the last row of each group, plus one.
        wanted: by set where the output belongs.
        found: by set the last output; while a graph is recorded, which keeps their addresses, all.
    """

    torch: Any
    given: list[tuple[Any, Any, Any]]
    wanted: list[Any]
    found: dict[int, list[Any]] = field(default_factory=dict)

    def __call__(self, k: int) -> None:
        """Enqueue the products of set k."""
        a, b, ends = self.given[k]
        outputs = self.found.setdefault(k, [])
        if not self.torch.cuda.is_current_stream_capturing():
            outputs.clear()
        outputs.append(self.torch._grouped_mm(a, b, offs=ends))

    def deliver(self) -> None:
        """Put all outputs where they belong: for their check, outside the time."""
        for k, outputs in self.found.items():
            self.wanted[k].copy_(outputs[-1])


def together(setup: Setup) -> Call:
    """All products in one launch; the rows of a group are known to the device alone."""
    data: Operands = setup.data
    reference, torch = data.reference, setup.torch
    assert isinstance(reference, Groups)
    groups, n, k = len(reference.rows), reference.n, reference.k
    given, wanted = [], []
    for number in range(data.sets):
        a, b, c = (memory(setup, matrix, number) for matrix in (data.a, data.b, data.c))
        factors = b.view(groups, k, n) if reference.b == "row" else b.view(groups, n, k).mT
        assert torch is not None
        ends = torch.tensor(reference.ends, dtype=torch.int32, device="cuda")
        given.append((a.view(-1, k), factors, ends))
        wanted.append(c.view(-1, n))
    return Grouped(torch, given, wanted)


def apart(setup: Setup) -> Call:
    """`torch.mm` for each group, into its rows of the output."""
    data: Operands = setup.data
    sets = [
        list(data.reference.products(*(memory(setup, x, k) for x in (data.a, data.b, data.c))))
        for k in range(data.sets)
    ]
    torch = setup.torch
    assert torch is not None

    def launch(k: int) -> None:
        for a, b, c in sets[k]:
            torch.mm(a, b, out=c)

    return launch
