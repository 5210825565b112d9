"""The check of outputs: every element, every set, and what lies between them.

The driver is played by host memory, so that what a kernel would do wrong can be done by hand.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from host_driver import HostDriver

from bench import memory
from bench.memory import GAP, POISONS, Data, Verdict
from bench.movement import Permute

M, N, SETS = 5, 7, 3


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Data]:
    host = HostDriver()
    monkeypatch.setattr(memory, "driver", lambda: host)
    made = Data.allocate(Permute((M, N)), np.dtype(np.int16), 1 << 30, SETS, None)
    made.draw(0)
    yield made
    made.free()
    assert not host.held


def host(pointer: int, data: Data) -> npt.NDArray[np.uint8]:
    """All sets from an address on, as they lie."""
    whole = (ctypes.c_uint8 * (SETS * data.stride)).from_address(pointer)
    return np.frombuffer(whole, np.uint8).reshape(SETS, data.stride)


def transpose(data: Data, *, source: int = 0) -> None:
    """What a right kernel does; set k from the input of set k + source."""
    given, found = host(data.inputs, data), host(data.outputs, data)
    for k in range(SETS):
        x = given[(k + source) % SETS, : data.size].view(np.int16)
        y = found[k, : data.size].view(np.int16)
        for i, j in product(range(M), range(N)):
            y[j * M + i] = x[i * N + j]


def test_what_is_right_is_right(data: Data) -> None:
    for byte in POISONS:
        data.poison(byte)
        transpose(data)
        assert data.check(byte) == Verdict(SETS * M * N, 0, 0)
        assert data.check(byte).right


def test_an_output_that_nobody_wrote_is_wrong(data: Data) -> None:
    transpose(data)
    data.poison(POISONS[0])
    verdict = data.check(POISONS[0])
    assert not verdict.right
    assert verdict.differing > 0.9 * SETS * M * N


def test_one_element_left_out_is_found(data: Data) -> None:
    for byte in POISONS:
        data.poison(byte)
        transpose(data)
        host(data.outputs, data)[2, data.size - 2 : data.size] = byte
        assert data.check(byte) == Verdict(SETS * M * N, 1, 0)


def test_data_of_another_set_is_wrong(data: Data) -> None:
    data.poison(POISONS[0])
    transpose(data, source=1)
    assert not data.check(POISONS[0]).right


def test_a_write_beyond_the_output_is_found(data: Data) -> None:
    for column in (data.size, data.stride - 1):
        data.poison(POISONS[0])
        transpose(data)
        host(data.outputs, data)[1, column] ^= 1
        verdict = data.check(POISONS[0])
        assert verdict == Verdict(SETS * M * N, 0, 1)
        assert not verdict.right


def test_a_copy_is_checked_as_a_copy(data: Data) -> None:
    data.poison(POISONS[0])
    host(data.outputs, data)[:, : data.size] = host(data.inputs, data)[:, : data.size]
    assert data.check(POISONS[0], copied=True).right
    assert not data.check(POISONS[0]).right


def test_data_is_fresh_and_differs_from_set_to_set(data: Data) -> None:
    first = host(data.inputs, data).copy()
    data.draw(1)
    second = host(data.inputs, data)
    assert (first != second).mean() > 0.99
    assert (second[0] != second[1]).mean() > 0.99


@pytest.mark.parametrize("size", [1, GAP - 1, GAP, GAP + 1, 4 * GAP])
def test_sets_are_aligned_and_apart(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "driver", HostDriver)
    made = Data.allocate(Permute((1, size)), np.dtype(np.int8), 100 * size, 1000, None)
    assert made.sets == 50
    assert made.stride % GAP == 0
    assert made.stride - made.size >= GAP
    assert made.output(2).pointer - made.output(1).pointer == made.stride
