"""Tensor maps from layouts, against the simulator's copy engine."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from swizzled_tiles import by_columns, by_rows

from lego_mlir.algebra import (
    Col,
    GenP,
    Layout,
    OrderBy,
    RegP,
    Row,
    antidiagonal,
    ceildiv,
    parse_layout,
    swizzle,
)
from lego_mlir.analysis.instructions.tma_boxes import TensorMapBoxes, tensor_map_boxes
from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.instructions.copies.tma import units
from lego_mlir.sim.machine.tensor_map import Tiles

TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def whole(layout: Layout) -> object:
    return layout[(slice(None),) * len(layout.dims)]


def tiled(tensor: Layout, shape: tuple[int, ...], tile: tuple[int, ...]) -> Layout:
    counts = [ceildiv(n, t) for n, t in zip(shape, tile, strict=True)]
    return tensor.TileBy(counts, list(tile))


def copied(found: TensorMapBoxes, corner: tuple[int, ...], element: int) -> dict[int, int | None]:
    """Which byte of the tensor lands at which byte of shared memory; None: zeros do."""
    tiles = Tiles(
        0,
        TYPES[element],
        found.shape,
        (element, *found.strides),
        found.box,
        (1,) * len(found.box),
        f"{found.swizzle}B" if found.swizzle else "none",
        False,
    )
    image: dict[int, int | None] = {}
    for box in found.boxes:
        position = tuple(corner[dim] + at for dim, at in zip(found.dims, box.at, strict=True))
        where, inside, source = units(tiles, position, box.offset * element, element)
        values = np.full(len(where), -1)
        values[inside] = source
        for address, value in zip(where.tolist(), values.tolist(), strict=True):
            assert address not in image, "two boxes write the same element"
            image[address] = None if value < 0 else value
    return image


def check(layout: Layout, shared: Layout, element: int, parts: int = 1) -> TensorMapBoxes:
    """Every tile lands as the layouts say; the tensor map."""
    found = tensor_map_boxes(layout, whole(shared), element, parts)
    assert len(found.boxes) % parts == 0
    assert prod(found.box) * len(found.boxes) == shared.size
    rank = len(shared.dims)
    counts, tile = layout.dims[:rank], layout.dims[rank:]
    inside = np.indices(tile)
    to = np.asarray(shared.apply(*inside)).reshape(-1) * element
    first, last = (0,) * rank, tuple(n - 1 for n in counts)
    for number in {first, last}:
        index = [np.full(tile, n) for n in number]
        exists = np.broadcast_to(layout.mask(*index, *inside), tile).reshape(-1)
        known = np.where(exists, np.asarray([i.reshape(-1) for i in (*index, *inside)]), 0)
        offsets = np.broadcast_to(layout.apply(*known), exists.shape) * element
        corner = tuple(n * t for n, t in zip(number, tile, strict=True))
        expected = {
            address: offset if there else None
            for address, offset, there in zip(
                to.tolist(), offsets.tolist(), exists.tolist(), strict=True
            )
        }
        assert copied(found, corner, element) == expected
    return found


def test_a_worked_example() -> None:
    layout = OrderBy(Row(4096, 4096)).TileBy([32, 64], [128, 64])
    found = tensor_map_boxes(layout, whole(by_rows(128, 64)), 2)
    assert (found.dims, found.shape, found.strides) == ((1, 0), (4096, 4096), (8192,))
    assert (found.box, found.swizzle, found.alignment) == ((64, 128), 128, 1024)
    (box,) = found.boxes
    assert (box.at, box.offset) == ((0, 0), 0)


def test_a_wide_tile_takes_several_boxes() -> None:
    layout = OrderBy(Row(64, 512)).TileBy([1, 2], [64, 256])
    found = check(layout, by_rows(64, 256), 2)
    assert found.box == (64, 64)
    assert [(b.at, b.offset) for b in found.boxes] == [((64 * p, 0), 64 * 64 * p) for p in range(4)]


def test_a_tall_tile_takes_several_boxes() -> None:
    found = check(OrderBy(Row(1024, 64)).TileBy([2, 1], [512, 64]), by_rows(512, 64), 2)
    assert found.box == (64, 256)
    assert len(found.boxes) == 2


@pytest.mark.parametrize("element", [1, 2, 4, 8])
@pytest.mark.parametrize("mode", [128, 64, 32])
@pytest.mark.parametrize("panels", [1, 3])
@pytest.mark.parametrize("major", ["row", "col"])
def test_tiles_of_matrices(element: int, mode: int, panels: int, major: str) -> None:
    long, short = mode // element * panels, 24
    tile = (short, long) if major == "row" else (long, short)
    shape = tuple(2 * n for n in tile)
    tensor, shared = (Row, by_rows) if major == "row" else (Col, by_columns)
    layout = tiled(OrderBy(tensor(*shape)), shape, tile)
    assert check(layout, shared(*tile, element, mode), element).swizzle == mode


@pytest.mark.parametrize("major", ["row", "col"])
@pytest.mark.parametrize("shape", [(40, 200), (48, 64), (17, 8), (1000, 136)])
def test_partial_tiles_are_filled_with_zeros(major: str, shape: tuple[int, int]) -> None:
    """Where a tile reaches past the tensor's edge, and the rows are multiples of 16 bytes."""
    tensor, shared = (Row, by_rows) if major == "row" else (Col, by_columns)
    sizes = shape if major == "row" else shape[::-1]
    tile = (32, 64) if major == "row" else (64, 32)
    check(tiled(OrderBy(tensor(*sizes)), sizes, tile), shared(*tile), 2)


def test_a_tile_without_swizzle() -> None:
    found = check(OrderBy(Row(64, 64)).TileBy([2, 2], [32, 32]), OrderBy(Row(32, 32)), 4)
    assert (found.swizzle, found.box, found.alignment) == (0, (32, 32), 128)


def test_a_batch() -> None:
    layout = OrderBy(Row(3, 64, 128)).TileBy([3, 2, 2], [1, 32, 64])
    shared = by_rows(32, 64).OrderBy(Row(32, 64)).GroupBy([1, 32, 64])
    found = check(layout, shared, 2)
    assert (found.dims, found.box) == ((2, 1, 0), (64, 32, 1))
    assert found.strides == (256, 64 * 256)


def test_a_tensor_of_five_dimensions() -> None:
    order = RegP([2, 16, 3, 4, 5], [0, 2, 3, 4, 1])  # the second dimension is contiguous
    layout = OrderBy(order).TileBy([2, 1, 3, 2, 5], [1, 16, 1, 2, 1])
    shared = OrderBy(RegP([1, 16, 1, 2, 1], [0, 2, 3, 4, 1]))
    with pytest.raises(LegoError, match="the tile"):  # 2*16 bytes of 1: a box of 32
        tensor_map_boxes(layout, whole(OrderBy(Row(1, 16, 1, 2, 1))), 1)
    found = check(layout, shared, 1)
    assert found.dims[0] == 1
    assert prod(found.box) == 32


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("columns", [64, 128, 256])
def test_boxes_divide_among_the_ctas_of_a_cluster(parts: int, columns: int) -> None:
    layout = OrderBy(Row(256, 2 * columns)).TileBy([2, 2], [128, columns])
    found = check(layout, by_rows(128, columns), 2, parts)
    assert len(found.boxes) == max(parts, columns // 64)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Layout, Layout, int, int]:
    element = draw(st.sampled_from([1, 2, 4]))
    mode = draw(st.sampled_from([32, 64, 128]))
    long = mode // element * draw(st.integers(1, 3))
    short = 8 * draw(st.integers(1, 6))
    by_row = draw(st.booleans())
    tile = (short, long) if by_row else (long, short)
    unit = 16 // element
    along = unit * draw(st.integers(1, 3 * long // unit))
    across = draw(st.integers(1, 3 * short))
    shape = (across, along) if by_row else (along, across)
    tensor, shared = (Row, by_rows) if by_row else (Col, by_columns)
    layout = tiled(OrderBy(tensor(*shape)), shape, tile)
    parts = draw(st.sampled_from([1, 2]))
    return layout, shared(*tile, element, mode), element, parts


@given(_cases())
def test_random_tiles(case: tuple[Layout, Layout, int, int]) -> None:
    check(*case)


TENSOR = OrderBy(Row(256, 256))
GOOD = by_rows(64, 64)


@pytest.mark.parametrize(
    ("layout", "shared", "element", "message"),
    [
        (TENSOR, GOOD, 2, "TMA copies tiles, and .* has none"),
        (TENSOR.TileBy([4, 2], [64, 128]), GOOD, 2, r"is \[64, 128\], in shared .* is \[64, 64\]"),
        (
            TENSOR.TileBy([4, 4], [64, 64]),
            OrderBy(GenP([64, 64], swizzle(8, 2, 4))),
            2,
            "cannot write the tile",
        ),
        (TENSOR.TileBy([4, 4], [64, 64]), by_columns(64, 64), 2, "cannot write the tile"),
        (TENSOR.TileBy([4, 4], [64, 64]), GOOD, 4, "cannot write the tile"),
        (OrderBy(Row(256, 257)).TileBy([4, ceildiv(257, 64)], [64, 64]), GOOD, 2, "514 bytes, no"),
        (
            OrderBy(GenP([64, 64], antidiagonal)).TileBy([1, 1], [64, 64]),
            GOOD,
            2,
            "TMA addresses a tensor by strides",
        ),
        (
            OrderBy(RegP([4, 64, 256], [1, 0, 2])).TileBy([4, 4], [64, 64]),
            GOOD,
            2,
            "not have one stride per dimension",
        ),
        (
            parse_layout("OrderBy(Row(64, M)).TileBy([1, M/4], [64, 4])"),
            OrderBy(Row(64, 4)),
            2,
            r"a row of .* has 2\*M bytes, and nothing says that 16 divides",
        ),
        (
            OrderBy(Row(*[2] * 5, 64)).TileBy([2] * 5 + [1], [1] * 5 + [64]),
            OrderBy(Row(*[1] * 5, 64)),
            2,
            "1 to 5 dimensions, .* has 6",
        ),
    ],
)
def test_tiles_that_tma_cannot_copy_are_refused(
    layout: Layout, shared: Layout, element: int, message: str
) -> None:
    with pytest.raises(LegoError, match=message):
        tensor_map_boxes(layout, whole(shared), element)


def test_rows_of_an_odd_size_say_how_to_pad_them() -> None:
    layout = OrderBy(Row(64, 100)).TileBy([1, ceildiv(100, 64)], [64, 64])
    with pytest.raises(LegoError) as caught:
        tensor_map_boxes(layout, whole(GOOD), 2)
    assert caught.value.hint is not None
    assert "multiple of 8 elements" in caught.value.hint


def test_sizes_that_the_launch_knows() -> None:
    """The map's sizes are expressions; what divides them follows from the layout."""
    rows = parse_layout("OrderBy(Row(M, 64)).TileBy([ceildiv(M, 64), 1], [64, 64])")
    (m,) = rows.symbols
    found = tensor_map_boxes(rows, GOOD[:, :], 2)
    assert (found.shape, found.strides, found.box) == ((64, m), (128,), (64, 64))
    batch = parse_layout("OrderBy(Row(B, M, N{8})).TileBy([B, ceildiv(M, 64), N/64], [1, 64, 64])")
    b, m, n = batch.symbols
    found = tensor_map_boxes(batch, GOOD[:, :], 2)
    assert (found.dims, found.shape) == ((2, 1, 0), (n, m, b))
    assert found.strides == (2 * n, 2 * m * n)
