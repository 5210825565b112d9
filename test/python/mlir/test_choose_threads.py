"""A launch of one thread on tiles gets the threads that the tiles need."""

from __future__ import annotations

import re

import pytest
from tile_modules import tile_module, tile_type

from lego_mlir.analysis.distributed.mma_grids import accumulator
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source


def threads_of(shape: tuple[int, ...], layout: str = "", warps: int = 0) -> int:
    """Return the threads of a compiled kernel that copies a tile of f32.

    Args:
        shape: of the tile.
        layout: that the program gives the tile, if it is not empty.
        warps: that the program launches; 0 for one thread.
    """
    kind = tile_type(shape, "f32")
    given = kind.replace(">", f', #lego.layout<"{layout}">>') if layout else kind
    access = "{layout = #a, slice = array<i64: 0, 1>}"
    body = f"""
      %x = "lego.load"(%a, %c0, %c0) {access}
          : (memref<{shape[0] * shape[1]}xf32>, index, index) -> {kind}
      %y = "lego.convert"(%x) : ({kind}) -> {given}
      "lego.store"(%y, %a, %c0, %c0) {access}
          : ({given}, memref<{shape[0] * shape[1]}xf32>, index, index) -> ()
"""
    text = tile_module({"a": ("f32", shape)}, body, warps=warps or 1)
    if not warps:
        text, count = re.subn(r"constant 32 : index", "constant 1 : index", text)
        assert count == 1
    compilation = Compilation(Source("t.mlir", text), Options(target=Target.parse("sm_80")))
    (launch,) = compilation.artifact(assemble=False).launches
    assert launch.block[1:] == (1, 1)
    return int(launch.block[0])


@pytest.mark.parametrize(
    ("shape", "threads"),
    [((8, 16), 128), ((128, 128), 128), ((128, 136), 256), ((256, 256), 512)],
)
def test_the_largest_tile_takes_half_of_the_registers_at_most(
    shape: tuple[int, int], threads: int
) -> None:
    assert threads_of(shape) == threads


def test_a_given_layout_says_how_many() -> None:
    layout = str(accumulator((64, 64), (2, 4)))
    assert threads_of((64, 64), layout) == threads_of((64, 64), layout, warps=8) == 8 * 32
    with pytest.raises(LegoError, match="is by 8 warps, the kernel has 4"):
        threads_of((64, 64), layout, warps=4)


def test_a_layout_that_is_none_is_refused() -> None:
    with pytest.raises(LegoError) as caught:
        threads_of((64, 64), "OrderBy(Row(8, 32, 64)).GroupBy([64, 64])")
    assert caught.value.location is not None
