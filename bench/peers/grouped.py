"""Grouped GEMMs as PyTorch computes them: in one launch, or group by group through cuBLAS."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.gemm.operands import GemmOperands
from bench.gemm.references import GroupedGemmReference
from bench.measure.timing import Call
from bench.peers.base import Setup
from bench.peers.cublas import flat_tensor


@dataclass(frozen=True, slots=True)
class GroupedMm:
    """A call of `torch._grouped_mm`, which allocates its output.

    Attributes:
        torch: the module.
        operands: for each set all A, all B, and the end row of each group.
        outputs: for each set the memory in which the output is checked.
        results: for each set the last result; while a graph is captured, which keeps their
            addresses, all results.
    """

    torch: Any
    operands: list[tuple[Any, Any, Any]]
    outputs: list[Any]
    results: dict[int, list[Any]] = field(default_factory=dict)

    def __call__(self, k: int) -> None:
        """Enqueue the grouped GEMM of set k."""
        a, b, ends = self.operands[k]
        results = self.results.setdefault(k, [])
        if not self.torch.cuda.is_current_stream_capturing():
            results.clear()
        results.append(self.torch._grouped_mm(a, b, offs=ends))

    def copy_outputs(self) -> None:
        """Copy all results to where they are checked, outside the timed part."""
        for k, results in self.results.items():
            self.outputs[k].copy_(results[-1])


def one_launch(setup: Setup) -> Call:
    """Return a call of all groups in one launch, which reads the group sizes on the device."""
    data: GemmOperands = setup.data
    reference, torch = data.reference, setup.torch
    assert isinstance(reference, GroupedGemmReference)
    groups, n, k = len(reference.rows), reference.n, reference.k
    operands, outputs = [], []
    for number in range(data.sets):
        a, b, c = (flat_tensor(setup, matrix, number) for matrix in (data.a, data.b, data.c))
        all_b = b.view(groups, k, n) if reference.b == "row" else b.view(groups, n, k).mT
        assert torch is not None
        ends = torch.tensor(reference.ends, dtype=torch.int32, device="cuda")
        operands.append((a.view(-1, k), all_b, ends))
        outputs.append(c.view(-1, n))
    return GroupedMm(torch, operands, outputs)


def per_group(setup: Setup) -> Call:
    """Return a call of `torch.mm` for each group, into its rows of the output."""
    data: GemmOperands = setup.data
    sets = [
        list(data.reference.gemms(*(flat_tensor(setup, x, k) for x in (data.a, data.b, data.c))))
        for k in range(data.sets)
    ]
    torch = setup.torch
    assert torch is not None

    def launch(k: int) -> None:
        for a, b, c in sets[k]:
            torch.mm(a, b, out=c)

    return launch
