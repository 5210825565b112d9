"""The small GEMMs, one for every way to compute one, in the simulator with all its checks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from bench.case import Case
from bench.gemm.references import GemmReference, GroupedGemmReference
from bench.gemm.small import CASES
from lego_mlir import Artifact, runtime
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.simulator import Simulator


def random_operands(reference: GemmReference | GroupedGemmReference) -> list[Any]:
    """Return the elements of A, B and an unwritten C in memory order."""
    numbers = np.random.default_rng(1)
    operands: list[Any] = []
    for count in reference.counts[:2]:
        if dtypes.is_float(reference.dtype):
            operands.append(dtypes.random((count,), reference.dtype, numbers))
        else:
            operands.append(numbers.integers(-128, 128, count, np.int8))
    return [*operands, np.full(reference.counts[2], 0x55, dtypes.numpy_dtype(reference.out))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_the_output_is_correct(case: Case) -> None:
    artifact, reference = case.make("sm_90a").compile("sm_90a"), case.reference
    assert isinstance(reference, GemmReference | GroupedGemmReference)
    gemms = list(reference.gemms(*random_operands(reference)))
    if len(artifact.arguments) == 3 * len(gemms):
        arguments = [matrix for gemm in gemms for matrix in gemm]
    else:  # of a batch
        arguments = [np.stack(matrices) for matrices in zip(*gemms, strict=True)]
    outputs = list(runtime.run(artifact, arguments, Simulator()).outputs.values())
    found = outputs if len(outputs) == len(gemms) else outputs[0]
    relative, absolute = reference.tolerance
    for (a, b, _), c in zip(gemms, found, strict=True):
        x, y = (dtypes.decode(matrix, reference.dtype) for matrix in (a, b))
        error = abs(dtypes.decode(c, reference.out) - x @ y)
        assert (error <= abs(x @ y) * relative + absolute).all()


@pytest.mark.parametrize(
    ("name", "widths"),
    [("mma", {"16"}), ("mma_8_bytes", {"8"}), ("mma_4_bytes", {"4"}), ("mma_elements", set())],
)
def test_copies_are_as_wide_as_the_rows_allow(name: str, widths: set[str]) -> None:
    assert set(re.findall(r"cp\.async\.c[ag]\S* .*?, (\d+)", compiled(name).ptx)) == widths


def test_kernels_use_what_their_names_promise() -> None:
    assert compiled("multicast_4").ptx.count(".multicast::cluster") == 1
    assert ".reqnctapercluster 8" in compiled("split_k_8").ptx
    assert len(compiled("grouped").arguments) == 12


def compiled(name: str) -> Artifact:
    (case,) = (case for case in CASES if case.name == f"small_{name}")
    return case.make("sm_90a").compile("sm_90a")
