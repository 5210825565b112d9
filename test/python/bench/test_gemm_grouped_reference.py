"""The reference of grouped GEMMs: where each group lies, and what its output must be."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from host_driver import HostDriver

from bench.gemm import operands
from bench.gemm.operands import GemmOperands
from bench.gemm.references import GemmReference, GroupedGemmReference, gemm_reference_of
from bench.gemm.variants import grouped_case, uneven_group_rows
from bench.measure.device_memory import POISONS

ROWS, N, K, SETS = (3, 1, 0, 4), 5, 7, 2


def multiply(data: GemmOperands, reference: GroupedGemmReference) -> None:
    """Compute what a correct kernel does, by loops, through the addresses of its arguments."""
    for number in range(data.sets):
        arrays = data.arrays(number, [None] * (3 * len(ROWS)))
        for group, rows in enumerate(ROWS):
            a, b, c = (memory(x.pointer) for x in arrays[3 * group : 3 * group + 3])
            for i, j in np.ndindex(rows, N):
                column = [k * N + j if reference.b == "row" else j * K + k for k in range(K)]
                terms = [float(a[i * K + k]) * float(b[at]) for k, at in enumerate(column)]
                c[i * N + j] = np.float16(sum(terms))


def memory(address: int) -> Any:
    return np.frombuffer((ctypes.c_uint8 * 2 * 256).from_address(address), np.float16)


@pytest.mark.parametrize("b", ["row", "col"])
def test_the_check_follows_the_groups_in_memory(b: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = HostDriver()
    monkeypatch.setattr(operands, "driver", lambda: driver)
    reference = GroupedGemmReference(ROWS, N, K, "f16", "f16", b)
    data = GemmOperands.allocate(reference, 1 << 30, SETS, None)
    data.fill_inputs(1)
    for byte in POISONS:
        data.poison(byte)
        assert data.check(byte).differing > 0.9 * SETS * sum(ROWS) * N
        multiply(data, reference)
        assert data.check(byte).is_correct
    ends = data.arrays(1, [None, None, None, (len(ROWS),)])[3]
    memory_of_ends = (ctypes.c_int32 * len(ROWS)).from_address(ends.pointer)
    assert tuple(memory_of_ends) == reference.ends == (3, 4, 4, 8)
    address = data.arrays(1, [None] * 12)[9 + 2].pointer
    memory(address)[N] += 8  # the second row of the last group
    assert data.check(byte).differing == 1
    data.free()


def test_a_manifest_distinguishes_gemms_and_grouped_gemms() -> None:
    groups = GroupedGemmReference((8, 16), 32, 64, "bf16", "bf16", "col")
    entry = {x: getattr(groups, x) for x in groups.__dataclass_fields__} | {"rows": [8, 16]}
    assert gemm_reference_of(entry) == groups
    assert gemm_reference_of({"shape": [2, 2], "axes": [1, 0]}) is None
    assert groups.flops == 2 * 24 * 32 * 64
    assert groups.counts == (24 * 64, 2 * 64 * 32, 24 * 32)
    one = GemmReference(8, 32, 64, "bf16", "bf16", "row", "col")
    assert (groups.tolerance, groups.deviation) == (one.tolerance, one.deviation)


def test_argument_starts_follow_the_number_of_arguments() -> None:
    groups = GroupedGemmReference((8, 8), 32, 64, "f16", "f16")
    assert groups.argument_starts(3) == [(0, 0), (1, 0), (2, 0)]
    assert groups.argument_starts(4) == [(0, 0), (1, 0), (2, 0), (3, 0)]  # and the end rows
    assert groups.ends == (8, 16)
    assert groups.argument_starts(6)[3:] == [(0, 8 * 64), (1, 64 * 32), (2, 8 * 32)]


def test_group_rows_are_uneven_and_reproducible() -> None:
    rows = uneven_group_rows(32, 64)
    assert rows == uneven_group_rows(32, 64)
    assert len(set(rows)) > 5
    assert all(16 <= n <= 112 and n % 8 == 0 for n in rows)
    assert 48 < sum(rows) / 32 < 80
    assert grouped_case(8, 512, 7168, 4096, b="col").name == "grouped_bf16_8x512x7168x4096_nt"
