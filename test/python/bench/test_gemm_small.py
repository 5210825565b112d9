"""One small product of every way to compute one, in the simulator, with all of its checks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from bench.cases import Case
from bench.gemm.groups import Groups
from bench.gemm.product import Product
from bench.gemm.small import CASES
from lego_mlir import Artifact, runtime
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.simulator import Simulator


def drawn(reference: Product | Groups) -> list[Any]:
    """The elements of A, B and C as they lie in memory; nobody has written C."""
    numbers = np.random.default_rng(1)
    given: list[Any] = []
    for count in reference.counts[:2]:
        if dtypes.is_float(reference.dtype):
            given.append(dtypes.random((count,), reference.dtype, numbers))
        else:
            given.append(numbers.integers(-128, 128, count, np.int8))
    return [*given, np.full(reference.counts[2], 0x55, dtypes.numpy_dtype(reference.out))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_it_is_right(case: Case) -> None:
    artifact, reference = case.make("sm_90a").compile("sm_90a"), case.reference
    assert isinstance(reference, Product | Groups)
    products = list(reference.products(*drawn(reference)))
    if len(artifact.arguments) == 3 * len(products):
        given = [matrix for product in products for matrix in product]
    else:  # of a batch
        given = [np.stack(matrices) for matrices in zip(*products, strict=True)]
    outputs = list(runtime.run(artifact, given, Simulator()).outputs.values())
    found = outputs if len(outputs) == len(products) else outputs[0]
    relative, absolute = reference.tolerance
    for (a, b, _), c in zip(products, found, strict=True):
        x, y = (dtypes.decode(matrix, reference.dtype) for matrix in (a, b))
        error = abs(dtypes.decode(c, reference.out) - x @ y)
        assert (error <= abs(x @ y) * relative + absolute).all()


@pytest.mark.parametrize(
    ("name", "widths"),
    [("hmma", {"16"}), ("hmma_8_bytes", {"8"}), ("hmma_4_bytes", {"4"}), ("hmma_elements", set())],
)
def test_copies_are_as_wide_as_rows_allow(name: str, widths: set[str]) -> None:
    assert set(re.findall(r"cp\.async\.c[ag]\S* .*?, (\d+)", compiled(name).ptx)) == widths


def test_what_names_say() -> None:
    assert compiled("multicast_4").ptx.count(".multicast::cluster") == 1
    assert ".reqnctapercluster 8" in compiled("parts_8").ptx
    assert len(compiled("grouped").arguments) == 12


def compiled(name: str) -> Artifact:
    (case,) = (case for case in CASES if case.name == f"small_{name}")
    return case.make("sm_90a").compile("sm_90a")
