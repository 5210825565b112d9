"""Copies between layouts in shared memory, by lanes that do what `ldmatrix` and `stmatrix` do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.distributed.conversions.matrices import Matrices
from lego_mlir.analysis.distributed.conversions.memory_layouts import SharedMemory
from lego_mlir.analysis.distributed.conversions.shared_copies import SharedCopy, plan_shared_copy
from lego_mlir.analysis.distributed.conversions.shared_memory import access_side
from lego_mlir.analysis.shared_tiles import reshaped_tile, swizzled_tile, transposed_tile


def by_accumulator(tile: Layout) -> Layout:
    """Return a tile whose rows are in the order in which accumulators hold columns."""
    rows, columns = (int(n) for n in tile.dims)
    digits = reshaped_tile(tile, (rows // 16, 2, 4, 2, columns))
    return reshaped_tile(transposed_tile(digits, (0, 2, 1, 3, 4)), (rows, columns))


def rows_of(offsets: np.ndarray, matrices: Matrices, warp: int, number: int) -> np.ndarray:
    """Return the offset of the row whose address each lane gives."""
    at = matrices.rows.elements()[0, warp, :, matrices.starts[number]]
    return offsets[at]


def words(memory: np.ndarray, rows: np.ndarray, size: int, *, transposed: bool) -> np.ndarray:
    """Return what lanes load, by lane, matrix, and element of the word, as ldmatrix does."""
    length, half = 16 // size, 2 // size
    matrix = memory[rows.reshape(4, 8, 1) + np.arange(length)].reshape(4, 8, 8, half)
    by_row = matrix.swapaxes(1, 2) if transposed else matrix  # lane 4 a + b: halves of a, 2 b on
    return by_row.reshape(4, 32, 2 * half).swapaxes(0, 1)


def run(plan: SharedCopy, source: Layout, target: Layout, size: int, warps: int) -> np.ndarray:
    """Return the target's memory, of a source in which element k is the number k."""
    count = int(source.size)
    read = np.asarray(source.offsets()).reshape(-1)
    memory = np.empty(count, np.int64)
    memory[read] = np.arange(count)
    written = np.asarray(plan.memory(target).offsets()).reshape(-1)
    found = np.full(count, -1)
    for warp in range(warps):
        held = np.full((32, plan.loaded.registers), -1)
        for k, registers in enumerate(plan.load.registers):
            rows = rows_of(read, plan.load, warp, k)
            loaded = words(memory, rows, size, transposed=plan.load.is_transposed)
            held[:, registers] = loaded.reshape(32, -1)
        assert np.array_equal(held, plan.loaded.elements()[0, warp])
        renamed = np.argsort(plan.loaded.elements()[0, warp], axis=1)
        order = np.argsort(np.argsort(plan.stored.elements()[0, warp], axis=1), axis=1)
        stored = np.take_along_axis(held, np.take_along_axis(renamed, order, 1), 1)
        if plan.exchange is not None:
            lane, register = np.arange(32)[:, None], np.arange(plan.stored.registers)[None]
            there = lane // plan.exchange.lanes.weight % 2 == 1
            stored = np.where(there, stored[lane, register ^ plan.exchange.register], stored)
        for k, registers in enumerate(plan.store.registers):
            rows = rows_of(written, plan.store, warp, k).reshape(4, 8, 1)
            data = stored[:, registers].reshape(8, 4, 4, 4 // size)  # row, word, matrix, element
            places = rows + np.arange(16 // size)
            found[places] = data.transpose(2, 0, 1, 3).reshape(4, 8, -1)
    return found


@given(st.integers(2, 7), st.integers(1, 4), st.sampled_from([1, 2, 4]), st.booleans())
def test_bytes_are_transposed_without_conflicts(
    down: int, across: int, warps: int, is_ordered: bool
) -> None:
    rows, columns = 16 * down, 16 * across * warps
    source, target = (swizzled_tile((rows, columns), dim, 1) for dim in (1, 0))
    source = by_accumulator(source) if is_ordered else source
    plan = plan_shared_copy(source, target, 1, warps)
    assert plan is not None
    if len(plan.load.registers[0]) < 16:
        return  # too few matrices for instructions of four
    found = run(plan, source, target, 1, warps)
    assert np.array_equal(found[np.asarray(target.offsets()).reshape(-1)], np.arange(found.size))
    if columns % 128 == 0 and rows % 32 == 0:
        memory = SharedMemory(plan.memory(target), plan.stored.shape)
        side = access_side(plan.stored, memory, 1, 0, plan.store, is_store=True)
        assert side.wavefronts == side.ideal == rows * columns // 128


@pytest.mark.parametrize(("size", "contiguous"), [(2, 0), (2, 1), (1, 1)])
def test_other_copies(size: int, contiguous: int) -> None:
    """Those of 16 bits, and those that are not transposed."""
    source, target = (swizzled_tile((64, 64), dim, size) for dim in (1, contiguous))
    plan = plan_shared_copy(source, target, size, 2)
    assert plan is not None
    assert plan.exchange is None
    found = run(plan, source, target, size, 2)
    assert np.array_equal(found[np.asarray(target.offsets()).reshape(-1)], np.arange(found.size))


@pytest.mark.parametrize(
    ("shape", "size", "warps"), [((64, 64), 4, 4), ((24, 64), 1, 1), ((32, 32), 1, 8)]
)
def test_copies_that_matrices_do_not_make(shape: tuple[int, int], size: int, warps: int) -> None:
    source, target = OrderBy(Row(*shape)), transposed_tile(OrderBy(Row(*shape[::-1])), (1, 0))
    assert plan_shared_copy(source, target, size, warps) is None
