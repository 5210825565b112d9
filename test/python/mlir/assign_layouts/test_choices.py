"""Which layouts programs get: where conversions are, and what is computed again instead."""

from __future__ import annotations

import pytest
from support.placed_tiles import Placed
from support.tile_modules import load, memref, store, tile_module

from lego_mlir.analysis.distributed import coalesced, mma_accumulator, reduced
from lego_mlir.analysis.distributed.mma_grids import operand_a
from lego_mlir.diagnostics import LegoError

SQUARE = ("f32", (64, 64))
F32, F16, SMALL = memref("f32", (64, 64)), memref("f16", (64, 64)), memref("f32", (64, 1))
TILE, ROW_SUMS, COLUMN_SUMS = "tensor<64x64xf32>", "tensor<64x1xf32>", "tensor<1x64xf32>"
ZEROS = "%c0, %c0"
REDUCE = '      %{0} = "lego.reduce"(%{1}) {{kind = "{4}", dim = {5} : i64}} : ({2}) -> {3}\n'
BROADCAST = '      %{0} = "lego.broadcast"(%{1}) : ({2}) -> {3}\n'
TRANSPOSE = '      %{0} = "lego.transpose"(%{1}) {{order = array<i64: 1, 0>}} : ({2}) -> {3}\n'
ROWS = coalesced((64, 64), 4, 4)


def placed(body: str, warps: int = 4, **layouts: str) -> Placed:
    """Place a module of square tensors `x` and `y` of f32, `h` of f16, and `s` of 64×1."""
    tensors = {"x": SQUARE, "y": SQUARE, "h": ("f16", (64, 64)), "s": ("f32", (64, 1))}
    return Placed(tile_module(tensors, body, warps=warps, layouts=layouts))


def load_x(name: str = "v") -> str:
    return load(name, "x", F32, TILE, ZEROS)


def store_y(value: str) -> str:
    return store(value, "y", F32, TILE, ZEROS)


def test_pointwise_programs_are_coalesced_without_conversions() -> None:
    found = placed(
        load_x()
        + f"      %c = arith.constant dense<2.0> : {TILE}\n"
        + f"      %w = arith.mulf %v, %c : {TILE}\n"
        + store_y("w")
    )
    assert found.layouts("lego.load") == found.layouts("lego.store") == [ROWS]
    assert found.layouts("arith.constant") == [ROWS]
    assert not found.conversions()


def test_a_softmax_needs_no_conversion() -> None:
    found = placed(
        load_x()
        + REDUCE.format("m", "v", TILE, ROW_SUMS, "max", 1)
        + BROADCAST.format("bm", "m", ROW_SUMS, TILE)
        + f"      %d = arith.subf %v, %bm : {TILE}\n"
        + f"      %e = math.exp2 %d : {TILE}\n"
        + REDUCE.format("s1", "e", TILE, ROW_SUMS, "add", 1)
        + BROADCAST.format("bs", "s1", ROW_SUMS, TILE)
        + f"      %q = arith.divf %e, %bs : {TILE}\n"
        + store_y("q")
    )
    assert not found.conversions()
    assert found.layouts("lego.reduce") == [reduced(ROWS, 1)] * 2


def test_a_transpose_is_converted_and_both_sides_are_coalesced() -> None:
    found = placed(load_x() + TRANSPOSE.format("tr", "v", TILE, TILE) + store_y("tr"))
    assert found.layouts("lego.load") == found.layouts("lego.store") == [ROWS]
    (conversion,) = found.conversions()
    assert conversion.shared is not None
    assert conversion.shared.store.wavefronts == conversion.shared.store.ideal
    assert conversion.shared.load.wavefronts == conversion.shared.load.ideal


def test_a_column_major_tensor_is_loaded_along_its_columns() -> None:
    found = placed(load_x() + store_y("v"), x="OrderBy(Col(64, 64))", y="OrderBy(Col(64, 64))")
    columns = coalesced((64, 64), 4, 4, order=(1, 0))
    assert found.layouts("lego.load") == found.layouts("lego.store") == [columns]
    assert not found.conversions()


def test_the_smaller_side_of_a_cast_is_converted() -> None:
    half = "tensor<64x64xf16>"
    cast = f"      %w = arith.extf %v : {half} to {TILE}\n"
    to = load("v", "h", F16, half, ZEROS) + cast
    found = placed(to + store_y("w"), y="OrderBy(Col(64, 64))")
    assert [c.element_bytes for c in found.conversions()] == [2]
    cast = f"      %w = arith.truncf %v : {TILE} to {half}\n"
    found = placed(load_x() + cast + store("w", "h", F16, half, ZEROS), x="OrderBy(Col(64, 64))")
    assert [c.element_bytes for c in found.conversions()] == [2]


def test_a_tile_is_converted_before_it_is_broadcast() -> None:
    found = placed(
        load("v", "s", SMALL, ROW_SUMS, ZEROS)
        + f"      %e = math.exp2 %v : {ROW_SUMS}\n"
        + BROADCAST.format("bm", "e", ROW_SUMS, TILE)
        + load_x("w")
        + f"      %q = arith.mulf %bm, %w : {TILE}\n"
        + store_y("q")
    )
    assert all(c.source.shape == (64, 1) for c in found.conversions())
    assert found.layouts("lego.store") == [ROWS]


MASK = (
    '      %i = "lego.iota"() {dim = 0 : i64} : () -> tensor<64x64xi32>\n'
    '      %j = "lego.iota"() {dim = 1 : i64} : () -> tensor<64x64xi32>\n'
    "      %lt = arith.cmpi sle, %j, %i : tensor<64x64xi32>\n"
    f"      %z = arith.constant dense<0.0> : {TILE}\n"
)


def select(name: str, value: str) -> str:
    return f"      %{name} = arith.select %lt, %{value}, %z : tensor<64x64xi1>, {TILE}\n"


def test_cheap_tiles_are_computed_in_each_layout() -> None:
    """A mask that is needed in two layouts is not converted."""
    found = placed(
        load_x()
        + MASK
        + select("u", "v")
        + TRANSPOSE.format("tr", "u", TILE, TILE)
        + select("w", "tr")
        + store_y("w")
    )
    (conversion,) = found.conversions()
    assert conversion.element_bytes == 4
    masks = found.layouts("arith.cmpi")
    assert masks == found.layouts("arith.select")
    assert len(set(masks)) == 2


def test_dead_tiles_are_erased() -> None:
    found = placed(load_x() + MASK + store_y("v"))
    assert not found.operations("lego.iota")
    assert not found.operations("arith.cmpi")


def test_what_a_loop_carries_is_converted_outside_of_it() -> None:
    found = placed(
        "      %n = arith.constant 16 : index\n"
        + load_x()
        + f"      %r = scf.for %k = %c0 to %n step %c1 iter_args(%a = %v) -> ({TILE}) {{\n"
        + load("u", "y", F32, TILE, ZEROS)
        + f"      %s1 = arith.addf %a, %u : {TILE}\n"
        + f"      scf.yield %s1 : {TILE}\n      }}\n"
        + store_y("r"),
        x="OrderBy(Col(64, 64))",
    )
    (convert,) = found.operations("lego.convert")
    assert convert.parent.name == "gpu.launch"
    assert found.layouts("scf.for") == [ROWS]


def test_a_tile_from_outside_of_a_loop_is_converted_once() -> None:
    found = placed(
        "      %n = arith.constant 16 : index\n"
        + load_x()
        + "      scf.for %k = %c0 to %n step %c1 {\n"
        + load("u", "y", F32, TILE, ZEROS)
        + f"      %s1 = arith.addf %v, %u : {TILE}\n"
        + store_y("s1")
        + "      }\n",
        x="OrderBy(Col(64, 64))",
    )
    (convert,) = found.operations("lego.convert")
    assert convert.parent.name == "gpu.launch"


def test_a_conversion_for_one_branch_stands_in_it() -> None:
    found = placed(
        load_x()
        + "      %p = arith.cmpi eq, %b, %c1 : index\n"
        + "      scf.if %p {\n"
        + TRANSPOSE.format("tr", "v", TILE, TILE)
        + store_y("tr")
        + "      }\n"
        + store("v", "x", F32, TILE, ZEROS)
    )
    (convert,) = found.operations("lego.convert")
    assert convert.parent.name == "scf.if"


HALF = "tensor<64x64xf16>"
DOT = f'      %{{}} = "lego.dot"(%{{}}, %q, %zero) : ({HALF}, {HALF}, {TILE}) -> {TILE}\n'
DOTS = (
    f"      %zero = arith.constant dense<0.0> : {TILE}\n"
    + DOT.format("s1", "q")
    + f"      %p = arith.truncf %s1 : {TILE} to {HALF}\n"
    + DOT.format("o", "p")
)


def test_an_accumulator_is_the_next_dots_operand() -> None:
    found = placed(load("q", "h", F16, HALF, ZEROS) + DOTS + store_y("o"))
    first, second = found.layouts("lego.dot")
    assert first == second == mma_accumulator((64, 64), (4, 1))
    assert found.layouts("arith.truncf") == [operand_a(second, (64, 64), 16)]


def test_a_dot_smaller_than_its_warps_is_computed_several_times() -> None:
    half, full = "tensor<16x16xf16>", "tensor<16x16xf32>"
    body = (
        load("q", "h", F16, half, ZEROS)
        + f"      %zero = arith.constant dense<0.0> : {full}\n"
        + f'      %o = "lego.dot"(%q, %q, %zero) : ({half}, {half}, {full}) -> {full}\n'
        + store("o", "y", F32, full, ZEROS)
    )
    (layout,) = placed(body).layouts("lego.dot")
    assert (layout.warps, layout.replicas) == (4, 2)


def test_a_reduction_is_kept_inside_of_warps_where_that_is_cheaper() -> None:
    """Sixteen reductions along the slowest dimension outweigh shorter accesses of one load."""
    sums = "".join(
        f"      %k{n} = arith.constant dense<{n}.0> : {TILE}\n"
        f"      %f{n} = arith.mulf %v, %k{n} : {TILE}\n"
        + REDUCE.format(f"m{n}", f"f{n}", TILE, COLUMN_SUMS, "add", 0)
        + BROADCAST.format(f"b{n}", f"m{n}", COLUMN_SUMS, TILE)
        + f"      %a{n} = arith.addf %{f'a{n - 1}' if n else 'v'}, %b{n} : {TILE}\n"
        for n in range(16)
    )
    found = placed(load_x() + sums + store_y("a15"))
    assert not found.conversions()
    (layout,) = found.layouts("lego.load")
    assert all(f.dim == 1 for f in layout.places[1])


# What the program gives.
GIVEN = coalesced((64, 64), 4, 4, order=(1, 0)).text
GIVEN_TILE = "tensor<64x64xf32, #D>"


def test_given_layouts_stay() -> None:
    found = placed(
        load_x()
        + f'      %w = "lego.convert"(%v) : ({TILE}) -> {GIVEN_TILE}\n'
        + f"      %e = math.exp2 %w : {GIVEN_TILE}\n"
        + f'      %u = "lego.convert"(%e) : ({GIVEN_TILE}) -> {TILE}\n'
        + store_y("u"),
        D=GIVEN,
    )
    assert [layout.text for layout in found.layouts("math.exp2")] == [GIVEN]
    assert found.layouts("lego.load") == found.layouts("lego.store") == [ROWS]
    assert len(found.conversions()) == 2


def test_a_given_layout_of_a_load_spreads() -> None:
    """Here a store that is less coalesced costs less than a conversion would."""
    wide = coalesced((64, 64), 4, 4, whole=(0,)).text
    found = placed(
        load("v", "x", F32, GIVEN_TILE, ZEROS) + store("v", "y", F32, GIVEN_TILE, ZEROS), D=wide
    )
    assert [layout.text for layout in found.layouts("lego.load")] == [wide]


def test_a_given_layout_of_a_result_that_follows_is_converted_to() -> None:
    sums = coalesced((64, 1), 4, 4).text
    found = placed(
        load_x()
        + REDUCE.format("m", "v", TILE, "tensor<64x1xf32, #D>", "add", 1)
        + store("m", "s", SMALL, "tensor<64x1xf32, #D>", ZEROS),
        D=sums,
    )
    assert [layout.text for layout in found.layouts("lego.store")] == [sums]


def test_a_layout_of_other_warps_is_refused() -> None:
    with pytest.raises(LegoError, match="8 warps"):
        placed(
            load("v", "x", F32, GIVEN_TILE, ZEROS) + store("v", "y", F32, GIVEN_TILE, ZEROS),
            D=coalesced((64, 64), 4, 8).text,
        )


# Registers.
def large(sizes: str, warps: int) -> str:
    kind, shape = f"tensor<{sizes}xf32>", tuple(map(int, sizes.split("x")))
    buffer = memref("f32", shape)
    return tile_module(
        {"x": ("f32", shape), "y": ("f32", shape)},
        load("v", "x", buffer, kind, ZEROS) + store("v", "y", buffer, kind, ZEROS),
        warps=warps,
    )


def test_a_tile_that_fills_the_registers_is_placed() -> None:
    assert Placed(large("128x128", 4)).layouts("lego.load")[0].registers == 128


def test_a_tile_that_does_not_fit_the_registers_is_refused() -> None:
    with pytest.raises(LegoError) as error:
        Placed(large("256x256", 4))
    assert "each thread holds 512 registers of tiles, 256 x 256 (512)" in error.value.message
    assert error.value.hint is not None
    assert "a tile of 128 x 128 instead of 256 x 256" in error.value.hint
    assert "warps" not in error.value.hint, "no CTA has registers for all of it"
    assert error.value.location is not None


def test_pointwise_operations_take_turns_and_hold_no_tiles_between_them() -> None:
    kind, shape = "tensor<128x128xf32>", (128, 128)
    buffer = memref("f32", shape)
    body = load("v", "x", buffer, kind, ZEROS)
    chain = f"      %w = arith.addf %v, %v : {kind}\n      %u = arith.mulf %w, %v : {kind}\n"
    arguments = {"x": ("f32", shape), "y": ("f32", shape)}
    Placed(tile_module(arguments, body + chain + store("u", "y", buffer, kind, ZEROS), warps=4))
    waits = chain + REDUCE.format("m", "u", kind, "tensor<128x1xf32>", "add", 1)
    behind = (
        f'      %n = "lego.broadcast"(%m) : (tensor<128x1xf32>) -> {kind}\n'
        f"      %p = arith.mulf %u, %w : {kind}\n      %s = arith.subf %p, %n : {kind}\n"
    )
    with pytest.raises(LegoError, match=r"after 'lego\.reduce' each thread holds 288"):
        Placed(
            tile_module(
                arguments, body + waits + behind + store("s", "y", buffer, kind, ZEROS), warps=4
            )
        )


def test_an_error_names_how_many_warps_would_do() -> None:
    with pytest.raises(LegoError) as error:
        Placed(large("256x128", 2))
    assert error.value.hint is not None
    assert "a tile of 64 x 128 instead of 256 x 128, or 8 warps" in error.value.hint


def branch(used_behind: str) -> str:
    """Return a kernel whose branch adds a tile of 128 registers to itself, or leaves it."""
    kind, shape = "tensor<128x128xf32>", (128, 128)
    buffer = memref("f32", shape)
    return tile_module(
        {"x": ("f32", shape), "y": ("f32", shape)},
        load("v", "x", buffer, kind, ZEROS)
        + "      %is_first = arith.cmpi eq, %b, %c0 : index\n"
        + f"      %w = scf.if %is_first -> ({kind}) {{\n"
        + f"        %d = arith.addf %v, %v : {kind}\n"
        + f"        scf.yield %d : {kind}\n"
        + f"      }} else {{\n        scf.yield %v : {kind}\n      }}\n"
        + f"      %u = arith.mulf %w, %{used_behind} : {kind}\n"
        + store("u", "y", buffer, kind, ZEROS),
    )


def test_a_block_of_a_branch_does_not_hold_what_only_the_other_one_uses() -> None:
    Placed(branch(used_behind="w"))
    with pytest.raises(LegoError, match="each thread holds 256 registers"):
        Placed(branch(used_behind="v"))
