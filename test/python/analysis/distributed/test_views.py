"""Layouts of views, against what NumPy does to arrays of the elements."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_distributed import any_layouts

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    Factor,
    Place,
    block,
    broadcast,
    broadcast_registers,
    coalesced,
    joined,
    mma_accumulator,
    reduced,
    replicas,
    reshaped,
    sliced,
    split,
    squeezed,
    transposed,
    unsqueezed,
    wgmma_accumulator,
)
from lego_mlir.analysis.distributed.slices import slice_of_cta, slice_registers, stacked
from lego_mlir.diagnostics import LegoError


def tile(layout: DistributedLayout) -> np.ndarray:
    """A tile of distinct values."""
    return np.arange(prod(layout.shape)).reshape(layout.shape)


def held(layout: DistributedLayout, values: np.ndarray) -> np.ndarray:
    """What the registers hold, by `inverse` only: (ctas, warps, lanes, registers)."""
    found = np.full(layout.sizes, -1)
    index = np.indices((*layout.shape, layout.replicas))
    found[tuple(layout.inverse(index[:-1], index[-1]))] = values[..., None]
    return found


@given(any_layouts(), st.data())
@settings(max_examples=50)
def test_a_transposition_moves_nothing(layout: DistributedLayout, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(layout.rank)))
    x = tile(layout)
    assert np.array_equal(held(transposed(layout, order), x.transpose(order)), held(layout, x))


@given(any_layouts(), st.data())
@settings(max_examples=50)
def test_a_reshape_moves_nothing(layout: DistributedLayout, data: st.DataObject) -> None:
    n, shape = prod(layout.shape), []
    while n > 1 and len(shape) < 3:
        shape.append(data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])))
        n //= shape[-1]
    shape = data.draw(st.permutations([*shape, n]))
    x = tile(layout)
    try:
        view = reshaped(layout, shape)
    except LegoError:
        assert not np.all([p.bit_count() < 2 for p in shape])  # powers of two always divide
        return
    assert np.array_equal(held(view, x.reshape(shape)), held(layout, x))
    assert reshaped(view, layout.shape) == layout


@given(any_layouts())
@settings(max_examples=50)
def test_dimensions_of_size_one_come_and_go(layout: DistributedLayout) -> None:
    x = tile(layout)
    for dim in range(layout.rank + 1):
        view = unsqueezed(layout, dim)
        assert np.array_equal(held(view, np.expand_dims(x, dim)), held(layout, x))
        assert squeezed(view, dim) == layout


@given(any_layouts(), st.integers(1, 4))
@settings(max_examples=50)
def test_joined_tiles_are_in_neighbouring_registers(layout: DistributedLayout, n: int) -> None:
    parts = [tile(layout) + 1000 * k for k in range(n)]
    view = joined(layout, n)
    expected = np.stack([held(layout, p) for p in parts], axis=-1).reshape(view.sizes)
    assert np.array_equal(held(view, np.stack(parts, axis=-1)), expected)
    assert split(view) == layout


@given(any_layouts(), st.data())
@settings(max_examples=50)
def test_the_quotient_has_its_elements_wherever_one_of_the_dimension_was(
    layout: DistributedLayout, data: st.DataObject
) -> None:
    dim = data.draw(st.integers(0, layout.rank - 1))
    quotient = reduced(layout, dim)
    x = tile(layout)
    before = held(layout, np.broadcast_to(x.min(axis=dim, keepdims=True), x.shape))
    after = held(quotient, x.min(axis=dim, keepdims=True))
    threads = prod(layout.sizes[:3])
    for a, b in zip(before.reshape(threads, -1), after.reshape(threads, -1), strict=True):
        assert set(a.tolist()) == set(b.tolist())
    copies = [f.size for p, f in layout.factors_of(-1) if p is Place.REGISTER]
    assert after.size == threads * len(set(b.tolist())) * prod(copies)
    assert sliced(layout, dim) == squeezed(quotient, dim)
    # Reduced place by place: the same.
    partial = reduced(layout, dim, (Place.LANE, Place.REGISTER))
    assert reduced(partial, dim) == quotient


@given(any_layouts(), st.data())
@settings(max_examples=50)
def test_broadcasts_hold_every_repetition(layout: DistributedLayout, data: st.DataObject) -> None:
    dim = data.draw(st.integers(0, layout.rank - 1))
    quotient = reduced(layout, dim)
    view = broadcast(quotient, layout.shape)
    x = tile(quotient)
    wide = held(view, np.broadcast_to(x, layout.shape)).reshape(
        -1, layout.shape[dim], quotient.registers
    )
    assert (wide == held(quotient, x).reshape(-1, 1, quotient.registers)).all()


@given(any_layouts(), st.data())
@settings(max_examples=50)
def test_a_quotient_is_broadcast_by_registers(
    layout: DistributedLayout, data: st.DataObject
) -> None:
    dims = data.draw(st.sets(st.integers(0, layout.rank - 1), min_size=1))
    quotient = layout
    for dim in dims:
        quotient = reduced(quotient, dim)
    x = tile(quotient)
    registers = list(broadcast_registers(layout, dims))
    expected = held(layout, np.broadcast_to(x, layout.shape))
    assert np.array_equal(held(quotient, x)[..., registers], expected)


@given(any_layouts(), st.data())
@settings(max_examples=200)
def test_every_thread_holds_its_part_of_each_block(
    layout: DistributedLayout, data: st.DataObject
) -> None:
    shape = [
        data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])) for n in layout.shape
    ]
    try:
        piece = block(layout, shape)
    except LegoError:
        return
    counts = [n // m for n, m in zip(layout.shape, shape, strict=True)]
    assert piece.registers * prod(counts) == layout.registers
    for at in np.ndindex(*counts):
        origin = [k * m for k, m in zip(at, shape, strict=True)]
        assert slice_registers(layout, piece, origin) is not None


def test_the_accumulators_row_sums_are_four_copies() -> None:
    sums = reduced(wgmma_accumulator((64, 176)), 1)
    assert sums.text == (
        "OrderBy(Row(4, 32, 2)).OrderBy(RegP([4, 2, 8, 4], [0, 2, 3, 1])).GroupBy([64, 1, 4])"
    )


def test_errors() -> None:
    layout = mma_accumulator((16, 8))
    six = DistributedLayout.of((6,), lanes=[replicas(32)], registers=[Factor(0, 6, 1)])
    for call, message in (
        (lambda: reduced(layout, 2), "there is no dimension 2 in a tile [16, 8]"),
        (lambda: squeezed(layout, 0), "has size 16; only a dimension of size 1"),
        (lambda: unsqueezed(layout, 4), "gets no new dimension 4"),
        (lambda: broadcast(layout, (16, 16)), "does not broadcast to [16, 16]"),
        (lambda: broadcast(layout, (16,)), "does not broadcast to [16]"),
        (lambda: transposed(layout, (0, 0)), "[0, 0] is no order"),
        (lambda: reshaped(layout, (16, 9)), "of 128 elements is not reshaped to [16, 9]"),
        (lambda: split(layout), "but 4 lanes divide it"),
        (lambda: split(DistributedLayout.of((), lanes=[replicas(32)])), "there is no dimension -1"),
        (lambda: joined(layout, 0), "sizes of at least 1, not 0"),
    ):
        with pytest.raises(LegoError) as error:
            call()
        assert message in str(error.value)
    assert reshaped(reshaped(six, (2, 3)), (3, 2)) == reshaped(six, (3, 2))  # joined, then cut
    whole = DistributedLayout.of(
        (4, 6), lanes=[Factor(1, 2, 1), replicas(16)], registers=[Factor(1, 3, 2), Factor(0, 4, 1)]
    )
    with pytest.raises(LegoError, match="would cut 3 registers, which hold elements 2 apart"):
        reshaped(whole, (6, 4))


@given(any_layouts(), st.data(), st.integers(2, 5))
@settings(max_examples=30)
def test_every_thread_holds_its_part_of_stacked_slices(
    layout: DistributedLayout, data: st.DataObject, count: int
) -> None:
    dim = data.draw(st.integers(0, layout.rank - 1))
    whole = stacked(layout, dim, count)
    assert whole.shape[dim] == count * layout.shape[dim]
    assert block(whole, layout.shape) == layout
    x = tile(whole)
    registers = held(whole, x).reshape(*whole.sizes[:3], count, -1)
    for number, part in enumerate(np.split(x, count, dim)):
        assert np.array_equal(registers[..., number, :], held(layout, part))


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 6]), st.sampled_from([64, 512, 1000]))
def test_slices_of_ctas_lie_one_after_another(ctas: int, rows: int, columns: int) -> None:
    """CTA k holds slice k, and in it what every other CTA holds of its own."""
    layout = coalesced((rows, columns), 4, 2, ctas=ctas)
    own = slice_of_cta(layout)
    if own is None:
        assert max(f.size for f in layout.places[0]) < ctas or layout.replicas > 1
        return
    assert own.ctas == 1
    assert prod(own.shape) * ctas == rows * columns
    threads = np.ix_(range(ctas), range(2), range(32), range(layout.registers))
    whole = layout.apply(*threads).coordinates
    part = own.apply(0, *threads[1:]).coordinates
    for x, y, n, size in zip(whole, part, own.shape, layout.shape, strict=True):
        first = np.asarray(x) - y
        assert (first % n == 0).all()
        assert first.max() < size
