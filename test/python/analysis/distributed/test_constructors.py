"""Named distributed layouts: against the PTX ISA's formulas, F2 matrices, and what they are for."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.analysis import linear, sectors
from lego_mlir.analysis.distributed import (
    DistributedLayout,
    blocked,
    coalesced,
    from_linear,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    replicated,
    to_linear,
    transposed,
    wgmma_accumulator,
    wgmma_operand_a,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WGMMA_COLUMNS

LANE, G, T = np.arange(32)[:, None], np.arange(32)[:, None] // 4, np.arange(32)[:, None] % 4


def lanes_and_registers(layout: DistributedLayout) -> tuple[np.ndarray, ...]:
    """The coordinates that the first warp holds, each of shape (32, registers)."""
    return layout.apply(0, 0, LANE, np.arange(layout.registers)).coordinates


# PTX ISA's formulas, "Matrix Fragments for mma.m16n8k..." and "Register Fragments for wgmma...".
def test_accumulator_of_one_instruction() -> None:
    i = np.arange(4)
    row, column = lanes_and_registers(mma_accumulator((16, 8)))
    assert np.array_equal(row, np.where(i < 2, G, G + 8))
    assert np.array_equal(column, T * 2 + (i & 1))


def test_operands_of_one_instruction_by_element_size() -> None:
    i = np.arange(4)  # m16n8k8, .tf32
    row, k = lanes_and_registers(mma_operand_a((16, 8), 32))
    assert np.array_equal(row, np.where((i == 0) | (i == 2), G, G + 8))
    assert np.array_equal(k, np.where(i < 2, T, T + 4))
    i = np.arange(2)
    k, column = lanes_and_registers(mma_operand_b((8, 8), 32))
    assert np.array_equal(k, np.where(i < 1, T, T + 4))
    assert np.array_equal(column, G + 0 * i)
    i = np.arange(8)  # m16n8k16, .f16
    row, k = lanes_and_registers(mma_operand_a((16, 16), 16))
    low = (i < 2) | ((i >= 4) & (i < 6))
    assert np.array_equal(row, np.where(low, G, G + 8))
    assert np.array_equal(k, np.where(i < 4, T * 2 + (i & 1), T * 2 + (i & 1) + 8))
    i = np.arange(4)
    k, column = lanes_and_registers(mma_operand_b((16, 8), 16))
    assert np.array_equal(k, np.where(i < 2, T * 2 + (i & 1), T * 2 + (i & 1) + 8))
    assert np.array_equal(column, G + 0 * i)
    i = np.arange(16)  # m16n8k32, .e4m3
    row, k = lanes_and_registers(mma_operand_a((16, 32), 8))
    low = (i < 4) | ((i >= 8) & (i < 12))
    assert np.array_equal(row, np.where(low, G, G + 8))
    assert np.array_equal(k, np.where(i < 8, T * 4 + (i & 3), T * 4 + (i & 3) + 16))
    i = np.arange(8)
    k, column = lanes_and_registers(mma_operand_b((32, 8), 8))
    assert np.array_equal(k, np.where(i < 4, T * 4 + (i & 3), T * 4 + (i & 3) + 16))


@pytest.mark.parametrize("columns", list(WGMMA_COLUMNS))
def test_wgmma_accumulators_of_every_width(columns: int) -> None:
    layout = wgmma_accumulator((64, columns))
    assert layout.sizes == (1, 4, 32, columns // 2)
    warp = np.arange(4)[:, None, None]
    i = np.arange(columns // 2)
    row, column = layout.apply(0, warp, LANE, i).coordinates
    assert np.array_equal(row, np.broadcast_to(warp * 16 + G + 8 * (i // 2 % 2), row.shape))
    assert np.array_equal(column, np.broadcast_to(i // 4 * 8 + T * 2 + (i & 1), row.shape))


def test_an_accumulator_is_the_next_operand_a() -> None:
    assert wgmma_accumulator((64, 16)).text == wgmma_operand_a((64, 16), 16).text
    assert wgmma_accumulator((128, 176), (2, 1)) == wgmma_operand_a((128, 176), 16, (2, 1))
    assert mma_accumulator((64, 48), (4, 1)) == mma_operand_a((64, 48), 16, (4, 1))
    assert mma_accumulator((64, 32), (4, 1)) != mma_operand_a((64, 32), 8, (4, 1))


def test_the_catalogue_over_f2_agrees() -> None:
    for bits in (8, 16, 32):
        k = 256 // bits
        assert from_linear(linear.mma_lhs(bits)) == mma_operand_a((16, k), bits)
        assert from_linear(linear.mma_rhs(bits)) == mma_operand_b((k, 8), bits)
        assert from_linear(linear.wgmma_lhs(bits)) == wgmma_operand_a((64, k), bits)
    for columns in (8, 16, 32, 64, 128, 256):
        expected = from_linear(linear.wgmma_accumulator(columns))
        found = wgmma_accumulator((64, columns))
        # The catalogue repeats by columns above the rows' halves, as the instruction does.
        assert found == expected
        assert linear.is_distributed(to_linear(found).select(["register", "lane", "warp"]))


def test_warps_divide_tiles_into_contiguous_parts() -> None:
    shape, warps = (96, 48), (3, 2)
    layout = mma_accumulator(shape, warps)
    a, b = mma_operand_a((96, 64), 16, warps), mma_operand_b((64, 48), 16, warps)
    for warp in range(6):
        m, n = divmod(warp, 2)
        for x, (rows, columns) in (
            (layout, (range(32 * m, 32 * m + 32), range(24 * n, 24 * n + 24))),
            (a, (range(32 * m, 32 * m + 32), range(64))),
            (b, (range(64), range(24 * n, 24 * n + 24))),
        ):
            i, j = x.apply(0, warp, LANE, np.arange(x.registers)).coordinates
            assert {*zip(i.ravel().tolist(), j.ravel().tolist(), strict=True)} == {
                (r, c) for r in rows for c in columns
            }
    wide = wgmma_accumulator((128, 160), (2, 2))
    rows, columns = wide.apply(
        0, np.arange(16)[:, None, None], LANE, np.arange(wide.registers)
    ).coordinates
    for warp, (i, j) in enumerate(zip(rows, columns, strict=True)):
        group, quarter = divmod(warp, 4)
        first = group // 2 * 64 + quarter * 16
        assert (i.min(), i.max()) == (first, first + 15)
        assert (j.min(), j.max()) == (group % 2 * 80, group % 2 * 80 + 79)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mma_accumulator((24, 8)),
            "dimension 0 of the tile [24, 8] is no multiple of 1 w",
        ),
        (lambda: mma_accumulator((16, 8), (1, 2)), "dimension 1 of the tile [16, 8] is no multip"),
        (lambda: mma_accumulator((2, 16, 8)), "mma.m16n8: a tile [2, 16, 8] and warps"),
        (lambda: mma_operand_a((16, 8), 16), "operand A of mma.m16n8k16: dimension 1"),
        (lambda: mma_operand_b((16, 8), 8), "operand B of mma.m16n8k32: dimension 0"),
        (lambda: mma_operand_a((16, 8), 64), "elements of 8, 16 or 32 bits, not 64"),
        (lambda: wgmma_accumulator((64, 264)), "wgmma has 8 to 256 columns, not 264"),
        (lambda: wgmma_accumulator((64, 12)), "no multiple of 1 warpgroups times 8"),
        (lambda: wgmma_operand_a((64, 16), 16, (2, 1)), "no multiple of 2 warpgroups times 64"),
    ],
)
def test_tiles_that_instructions_do_not_divide(
    call: Callable[[], DistributedLayout], message: str
) -> None:
    with pytest.raises(LegoError) as error:
        call()
    assert message in str(error.value)


# Blocked layouts.
@given(st.data())
@settings(max_examples=50)
def test_blocked_layouts_of_powers_of_two_are_the_catalogues(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    bits = st.integers(0, 3)
    shape, registers, warps = ([1 << data.draw(bits) for _ in range(rank)] for _ in range(3))
    while prod(warps) > 16:
        warps[warps.index(max(warps))] //= 2
    lanes = [1] * rank
    for _ in range(5):
        lanes[data.draw(st.integers(0, rank - 1))] *= 2
    order = data.draw(st.permutations(range(rank)))
    found = blocked(shape, registers, lanes, warps, order=order)
    catalogue = linear.blocked(shape, registers, lanes, warps, order=order[::-1])
    expected = from_linear(catalogue)
    # The catalogue keeps copies in registers; here they are left out.
    threads = (found.elements(), expected.elements())
    assert found.sizes[:3] == expected.sizes[:3]
    held = [[set(t.tolist()) for t in x.reshape(-1, x.shape[-1])] for x in threads]
    assert held[0] == held[1]
    assert found.registers == len(held[0][0])


@given(
    st.lists(st.sampled_from([1, 2, 3, 7, 8, 12, 40, 64, 96]), min_size=1, max_size=3),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 3, 4, 8]),
    st.sampled_from([1, 2, 3]),
    st.data(),
)
@settings(max_examples=100)
def test_coalesced_layouts_need_the_fewest_sectors(
    shape: list[int], size: int, warps: int, ctas: int, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    layout = coalesced(shape, size, warps, ctas=ctas, order=order)
    assert layout.sizes[:3] == (ctas, warps, 32)
    memory = transposed(layout, order)
    offsets = memory.elements() * size
    vector = gcd(16 // size, memory.contiguous(len(shape) - 1))
    wide = offsets.reshape(*offsets.shape[:-1], -1, vector)
    assert (np.diff(wide, axis=-1) == size).all()  # vectors are neighbours, so one access
    # Lanes side by side along the fastest dimension take whole sectors.
    if shape[order[-1]] * size % (16 * 32) == 0 and vector * size == 16:
        requests = np.moveaxis(wide[..., 0], -1, -2)
        assert (sectors(requests, 16).excess == 0).all()
    assert prod(layout.shape) <= prod(layout.sizes)


def test_a_row_in_vectors_of_sixteen_bytes() -> None:
    layout = coalesced((128, 64), 4, 4)
    assert layout.table() == (
        "warp      4 along dim 0 by 2\nlane      2 along dim 0, 16 along dim 1 by 4\n"
        "register  16 along dim 0 by 8, 4 along dim 1"
    )
    assert coalesced((4096,), 2, 8).table() == (
        "warp      8 along dim 0 by 256\nlane      32 along dim 0 by 8\n"
        "register  2 along dim 0 by 2048, 8 along dim 0"
    )
    assert coalesced((1, 32), 4, 1).registers == 1  # every lane has something to do
    # 640 vectors of 16 bytes for 256 threads would be 1280 accesses, as many as of 8 bytes.
    assert coalesced((1, 5120), 2, 8).registers == 20
    column_major = coalesced((64, 128), 4, 4, order=(1, 0))
    assert column_major == transposed(layout)


def test_scalars_and_constants_are_in_every_thread() -> None:
    assert replicated((), 4).text == "OrderBy(Row(4, 32, 1)).GroupBy([128])"
    assert replicated((1, 1), 4).text == "OrderBy(Row(4, 32, 1)).GroupBy([1, 1, 128])"
    layout = replicated((2, 3), 2, ctas=2)
    assert layout.elements().reshape(-1, 6).tolist() == [list(range(6))] * 128
    assert coalesced((), 4, 4) == replicated((), 4)


def test_errors_of_blocked_layouts() -> None:
    for call, message in (
        (lambda: blocked((8, 8), (1, 1), (8, 4), (1,)), "warps are [1], the tile is [8, 8]"),
        (lambda: blocked((8, 8), (1, 0), (8, 4), (1, 1)), "registers are [1, 0]"),
        (lambda: blocked((8,), (1,), (16,), (1,)), "a warp has 32 lanes, the layout 16"),
        (lambda: blocked((8,), (1,), (32,), (1,), order=(1,)), "[1] is no order of the 1 dim"),
        (lambda: coalesced((8, 8), 4, 0), "are at least 1"),
        (lambda: coalesced((8, 8), 4, 1, order=(0,)), "[0] is no order of the 2 dimensions"),
    ):
        with pytest.raises(LegoError) as error:
            call()
        assert message in str(error.value)
