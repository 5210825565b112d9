"""Tiles printed for Triton: its interpreter loads through them what the layout has there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import printed
import pytest
import sympy

from lego_mlir.algebra import Layout, OrderBy, Row, parse_layout, size_symbol
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym
from lego_mlir.printers import TritonTile, to_triton

SIZES = {"M": 48, "K": 64}
LAYOUTS = {
    "rows": "OrderBy(Row(M, K)).TileBy([M/16, K/32], [16, 32])",
    "columns": "OrderBy(Col(M, K)).TileBy([M/16, K/32], [16, 32])",
    "padded": "OrderBy(Row(M, K)).TileBy([ceildiv(M, 32), ceildiv(K, 128)], [32, 128])",
    "tiled": "OrderBy(Row(M/8, K/8), Row(8, 8)).TileBy([M/16, K/32], [16, 32])",
    "swizzled": "OrderBy(GenP([64, 64], swizzle(8))).TileBy([4, 2], [16, 32])",
    "morton": "OrderBy(GenP([64, 64], morton)).TileBy([4, 2], [16, 32])",
    "one dimension": "OrderBy(Row(M)).TileBy([ceildiv(M, 32)], [32])",
    "three levels": "OrderBy(Row(M, K)).TileBy([M/16, K/32], [2, 2], [8, 16])",
}


def tile_of(name: str) -> tuple[Layout, TritonTile]:
    layout = parse_layout(LAYOUTS[name])
    rank = len(layout.tensor_shape)
    fixed = [f"p{k}" for k in range(layout.rank - rank)]
    tile = to_triton(layout[*fixed, ...])
    assert isinstance(tile, TritonTile)
    return layout, tile


def program(layout: Layout, tile: TritonTile, load: str) -> str:
    """A kernel that copies the tile at p0, p1, ... to a row-major array of its shape."""
    rank = len(tile.shape)
    fixed = [f"p{k}" for k in range(layout.rank - rank)]
    sizes = [s.name for s in layout.symbols]
    out, scale = "", 1
    for k in reversed(range(rank)):
        subscript = ", ".join(":" if k == d else "None" for d in range(rank))
        out += f" + tl.arange(0, {tile.shape[k]})[{subscript}] * {scale}"
        scale *= int(tile.shape[k])
    return (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        f"def copy(a, out, {', '.join([*fixed, *sizes])}):\n"
        f"    value = {load}\n    tl.store(out{out}, value)\n"
    )


def copied(layout: Layout, tile: TritonTile, load: str, folder: Path) -> dict[Any, Any]:
    """What the kernel copies for each tile: of an array whose elements are their offsets."""
    module = printed.triton_module(program(layout, tile, load), folder)
    whole = layout.bind(**{s.name: SIZES[s.name] for s in layout.symbols})
    memory = np.arange(whole.size, dtype=np.int32)
    found = {}
    rank = len(tile.shape)
    for at in np.ndindex(*whole.dims[:-rank]):
        out = np.full(whole.dims[-rank:], -7, np.int32)
        sizes = [SIZES[s.name] for s in layout.symbols]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")
            module.copy[(1,)](printed.Tensor(memory), printed.Tensor(out), *at, *sizes)
        index = [*at, *np.indices(out.shape)]
        mask = np.broadcast_to(np.asarray(whole.mask(*index), bool), out.shape)
        found[at] = out, mask, whole
    return found


def check(found: dict[Any, Any]) -> None:
    """Compare with the layout, element by element; padding is 0."""
    for at, (out, mask, whole) in found.items():
        for inner in np.ndindex(*out.shape):
            truth = whole.apply(*at, *inner) if mask[inner] else 0
            assert out[inner] == truth, (at, inner)


@pytest.mark.parametrize("name", LAYOUTS)
def test_offsets_and_mask_load_the_tile(name: str, tmp_path: Path) -> None:
    layout, tile = tile_of(name)
    mask = "" if tile.mask is None else f", mask={tile.mask}, other=0"
    check(copied(layout, tile, f"tl.load(a + {tile}{mask})", tmp_path))


class BlockPointers:
    """Triton's definition of `tl.make_block_ptr`, which Triton 3.9 has removed, in NumPy."""

    def make_block_ptr(
        self, base: int, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
    ) -> tuple[Any, Any]:
        assert sorted(order) == list(range(len(shape)))
        assert sorted(order, key=lambda d: strides[d]) == list(order)
        at = np.indices(block_shape)
        at = [o + i for o, i in zip(offsets, at, strict=True)]
        inside = np.all([(i >= 0) & (i < n) for i, n in zip(at, shape, strict=True)], axis=0)
        return base + sum(i * d for i, d in zip(at, strides, strict=True)), inside


@pytest.mark.parametrize("name", ["rows", "columns", "padded", "one dimension"])
def test_a_block_pointer_points_to_the_tile(name: str) -> None:
    layout, tile = tile_of(name)
    whole = layout.bind(**{s.name: SIZES[s.name] for s in layout.symbols})
    rank = len(tile.shape)
    for at in np.ndindex(*whole.dims[:-rank]):
        names = {"a": 0, "tl": BlockPointers(), **SIZES}
        names |= {f"p{k}": i for k, i in enumerate(at)}
        offsets, inside = eval(tile.block_pointer("a"), names)  # noqa: S307
        index = [*at, *np.indices(whole.dims[-rank:])]
        mask = np.broadcast_to(np.asarray(whole.mask(*index), bool), inside.shape)
        assert (mask == inside).all()
        assert tile.boundary_check or mask.all()
        truth = whole.apply(*(np.broadcast_to(i, mask.shape)[mask] for i in index))
        assert (offsets[mask] == truth).all()


@pytest.mark.parametrize("name", ["rows", "columns", "padded", "one dimension"])
def test_a_tensor_descriptor_loads_the_tile(name: str, tmp_path: Path) -> None:
    layout, tile = tile_of(name)
    load = f"{tile.descriptor('a')}.load({tile.descriptor_offsets}){tile.descriptor_permute}"
    check(copied(layout, tile, load, tmp_path))


def test_a_dimension_that_the_tile_lacks_moves_the_base() -> None:
    layout = OrderBy(Row(4, size_symbol("M"), 64)).TileBy([4, 1, 1], [1, size_symbol("M"), 64])
    whole = OrderBy(Row(4, 32, 64))
    assert "a + b * 2048" in to_triton(whole["b", :, :]).block_pointer("a")
    assert to_triton(layout["b", 0, 0, :, 0, :]).block_pointer("a") == (
        "tl.make_block_ptr(a, shape=(4, 64), strides=(M * 64, 1), offsets=(b, 0), "
        "block_shape=(1, 64), order=(1, 0))"
    )
    levels = OrderBy(Row(64, 64)).TileBy([4, 4], [4, 4], [4, 4])
    with pytest.raises(LegoError, match="is not one dimension of the tile"):
        to_triton(levels["i", "j", :, 0, :, 0]).block_pointer("a")


def test_what_is_printed() -> None:
    layout, tile = tile_of("rows")
    assert str(tile) == (
        "(p0 * 16 + tl.arange(0, 16)[:, None]) * K + p1 * 32 + tl.arange(0, 32)[None, :]"
    )
    assert tile.mask is None
    assert tile.block_pointer("a_ptr") == (
        "tl.make_block_ptr(a_ptr, shape=(M, K), strides=(K, 1), offsets=(p0 * 16, p1 * 32), "
        "block_shape=(16, 32), order=(1, 0))"
    )
    assert tile.descriptor_permute == ""
    assert tile_of("columns")[1].descriptor_permute == ".permute(1, 0)"
    _, padded = tile_of("padded")
    assert padded.boundary_check == (0, 1)
    x = sympy.Symbol("x", integer=True, nonnegative=True)
    assert str(to_triton(layout[x, Sym("y", 0, 1), :, 3])) == (
        "(tl.arange(0, 16) + x * 16) * K + y * 32 + 3"
    )
    assert to_triton(layout["p0", "p1", 2, 3]) == "(p0 * 16 + 2) * K + p1 * 32 + 3"


def test_known_large_offsets_take_64_bits() -> None:
    layout = OrderBy(Row(1 << 20, 1 << 14)).TileBy([1 << 13, 1 << 7], [128, 128])
    assert str(to_triton(layout["p", "q", :, :])).count("tl.int64") == 4
    assert "int64" not in str(to_triton(layout["p", "q", :, :], bits=32))
    assert "int64" in str(to_triton(tile_of("rows")[0]["p", "q", :, :], bits=64))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: to_triton(OrderBy(Row(6, 8))["i", :]).block_pointer("a"), None),
        (lambda: to_triton(OrderBy(Row(8, 6))["i", :]), "6 elements wide.*powers of two"),
        (
            lambda: tile_of("tiled")[1].block_pointer("a"),
            "no box of a strided tensor.*do not divide",
        ),
        (lambda: tile_of("swizzled")[1].block_pointer("a"), "no box.*has no strides"),
        (lambda: to_triton(OrderBy(Row(8, 8))[:, 2]).descriptor("a"), "needs stride 1"),
        (lambda: to_triton(OrderBy(Row(4, 8))["lambda", :]), "'lambda' is a word of triton"),
        (lambda: to_triton(OrderBy(Row(4, 8))["i; x", :]), "no name in triton"),
        (lambda: to_triton(OrderBy(Row(4, 8))["i", :], bits=16), "32 or 64 bits, not 16"),
        (lambda: tile_of("three levels")[1].descriptor("a"), None),
        (lambda: to_triton(OrderBy(Row(1, 8))[:, :]).descriptor("a"), None),
    ],
)
def test_mistakes_are_errors(make: Any, message: str | None) -> None:
    if message is None:
        assert make()
        return
    with pytest.raises(LegoError, match=message):
        make()
