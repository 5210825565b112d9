"""The check of data movements: every element of every set, and the gaps between them.

Host memory stands in for the driver, so that the tests can make a kernel's mistakes by hand.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from host_driver import HostDriver

from bench.measure.device_memory import GAP, POISONS, Verdict
from bench.permute import operands
from bench.permute.operands import PermuteOperands
from bench.permute.reference import PermuteReference

M, N, SETS = 5, 7, 3


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[PermuteOperands]:
    host = HostDriver()
    monkeypatch.setattr(operands, "driver", lambda: host)
    made = PermuteOperands.allocate(
        PermuteReference((M, N)), np.dtype(np.int16), 1 << 30, SETS, None
    )
    made.fill_inputs(0)
    yield made
    made.free()
    assert not host.held


def host(pointer: int, data: PermuteOperands) -> npt.NDArray[np.uint8]:
    """Return all sets from an address on, a row of bytes each."""
    whole = (ctypes.c_uint8 * (SETS * data.stride)).from_address(pointer)
    return np.frombuffer(whole, np.uint8).reshape(SETS, data.stride)


def transpose(data: PermuteOperands, *, source: int = 0) -> None:
    """Transpose as a correct kernel does, set k from the input of set k + source."""
    inputs, outputs = host(data.inputs, data), host(data.outputs, data)
    for k in range(SETS):
        x = inputs[(k + source) % SETS, : data.size].view(np.int16)
        y = outputs[k, : data.size].view(np.int16)
        for i, j in product(range(M), range(N)):
            y[j * M + i] = x[i * N + j]


def test_a_correct_output_passes(data: PermuteOperands) -> None:
    for byte in POISONS:
        data.poison(byte)
        transpose(data)
        assert data.check(byte) == Verdict(SETS * M * N, 0, 0)
        assert data.check(byte).is_correct


def test_an_unwritten_output_is_wrong(data: PermuteOperands) -> None:
    transpose(data)
    data.poison(POISONS[0])
    verdict = data.check(POISONS[0])
    assert not verdict.is_correct
    assert verdict.differing > 0.9 * SETS * M * N


def test_one_unwritten_element_is_found(data: PermuteOperands) -> None:
    for byte in POISONS:
        data.poison(byte)
        transpose(data)
        host(data.outputs, data)[2, data.size - 2 : data.size] = byte
        assert data.check(byte) == Verdict(SETS * M * N, 1, 0)


def test_the_output_of_another_set_is_wrong(data: PermuteOperands) -> None:
    data.poison(POISONS[0])
    transpose(data, source=1)
    assert not data.check(POISONS[0]).is_correct


def test_a_write_beyond_the_output_is_found(data: PermuteOperands) -> None:
    for column in (data.size, data.stride - 1):
        data.poison(POISONS[0])
        transpose(data)
        host(data.outputs, data)[1, column] ^= 1
        verdict = data.check(POISONS[0])
        assert verdict == Verdict(SETS * M * N, 0, 1)
        assert not verdict.is_correct


def test_a_copy_is_compared_with_its_input(data: PermuteOperands) -> None:
    data.poison(POISONS[0])
    host(data.outputs, data)[:, : data.size] = host(data.inputs, data)[:, : data.size]
    assert data.check(POISONS[0], copied=True).is_correct
    assert not data.check(POISONS[0]).is_correct


def test_inputs_differ_between_seeds_and_sets(data: PermuteOperands) -> None:
    first = host(data.inputs, data).copy()
    data.fill_inputs(1)
    second = host(data.inputs, data)
    assert (first != second).mean() > 0.99
    assert (second[0] != second[1]).mean() > 0.99


@pytest.mark.parametrize("size", [1, GAP - 1, GAP, GAP + 1, 4 * GAP])
def test_sets_are_aligned_with_gaps_between(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operands, "driver", HostDriver)
    made = PermuteOperands.allocate(
        PermuteReference((1, size)), np.dtype(np.int8), 100 * size, 1000, None
    )
    assert made.sets == 50
    assert made.stride % GAP == 0
    assert made.stride - made.size >= GAP
    assert made.output(2).pointer - made.output(1).pointer == made.stride
