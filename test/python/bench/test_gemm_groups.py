"""The oracle of several products of one launch: where each lies, and what it must be."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from host_driver import HostDriver

from bench.gemm import operands
from bench.gemm.groups import Groups
from bench.gemm.operands import Operands
from bench.gemm.product import Product
from bench.gemm.references import product_of
from bench.gemm.variants import grouped, uneven
from bench.memory import POISONS

ROWS, N, K, SETS = (3, 1, 0, 4), 5, 7, 2


def multiply(data: Operands, reference: Groups) -> None:
    """What a right kernel does, by loops, through the addresses that its arguments get."""
    for number in range(data.sets):
        arrays = data.arrays(number, [None] * (3 * len(ROWS)))
        for group, rows in enumerate(ROWS):
            a, b, c = (memory(x.pointer) for x in arrays[3 * group : 3 * group + 3])
            for i, j in np.ndindex(rows, N):
                column = [k * N + j if reference.b == "row" else j * K + k for k in range(K)]
                products = [float(a[i * K + k]) * float(b[at]) for k, at in enumerate(column)]
                c[i * N + j] = np.float16(sum(products))


def memory(address: int) -> Any:
    return np.frombuffer((ctypes.c_uint8 * 2 * 256).from_address(address), np.float16)


@pytest.mark.parametrize("b", ["row", "col"])
def test_groups_lie_one_below_the_other(b: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = HostDriver()
    monkeypatch.setattr(operands, "driver", lambda: driver)
    reference = Groups(ROWS, N, K, "f16", "f16", b)
    data = Operands.allocate(reference, 1 << 30, SETS, None)
    data.draw(1)
    for byte in POISONS:
        data.poison(byte)
        assert data.check(byte).differing > 0.9 * SETS * sum(ROWS) * N
        multiply(data, reference)
        assert data.check(byte).right
    ends = data.arrays(1, [None, None, None, (len(ROWS),)])[3]
    found = (ctypes.c_int32 * len(ROWS)).from_address(ends.pointer)
    assert tuple(found) == reference.ends == (3, 4, 4, 8)
    address = data.arrays(1, [None] * 12)[9 + 2].pointer
    memory(address)[N] += 8  # the second row of the last group
    assert data.check(byte).differing == 1
    data.free()


def test_a_manifest_tells_groups_and_products_apart() -> None:
    groups = Groups((8, 16), 32, 64, "bf16", "bf16", "col")
    told = {x: getattr(groups, x) for x in groups.__dataclass_fields__} | {"rows": [8, 16]}
    assert product_of(told) == groups
    assert product_of({"shape": [2, 2], "axes": [1, 0]}) is None
    assert groups.flops == 2 * 24 * 32 * 64
    assert groups.counts == (24 * 64, 2 * 64 * 32, 24 * 32)
    one = Product(8, 32, 64, "bf16", "bf16", "row", "col")
    assert (groups.tolerance, groups.deviation) == (one.tolerance, one.deviation)


def test_a_batch_has_three_arguments() -> None:
    groups = Groups((8, 8), 32, 64, "f16", "f16")
    assert groups.starts(3) == [(0, 0), (1, 0), (2, 0)]
    assert groups.starts(4) == [(0, 0), (1, 0), (2, 0), (3, 0)]  # and where they end
    assert groups.ends == (8, 16)
    assert groups.starts(6)[3:] == [(0, 8 * 64), (1, 64 * 32), (2, 8 * 32)]


def test_rows_are_uneven_and_always_the_same() -> None:
    rows = uneven(32, 64)
    assert rows == uneven(32, 64)
    assert len(set(rows)) > 5
    assert all(16 <= n <= 112 and n % 8 == 0 for n in rows)
    assert 48 < sum(rows) / 32 < 80
    assert grouped(8, 512, 7168, 4096, b="col").name == "grouped_bf16_8x512x7168x4096_nt"
