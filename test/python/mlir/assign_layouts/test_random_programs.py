"""Random programs: all tiles are placed by the rules, the same every time, and compute the same."""

from __future__ import annotations

from random import Random

from fuzz.tile_programs import drawn_program
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.types import is_tile, layout_of


@given(st.integers(0, 1 << 32))
@settings(max_examples=25, deadline=None)
def test_all_tiles_are_placed_and_values_stay(seed: int) -> None:
    """The verifier runs after each pass, and the interpreter compares before and after it."""
    source = Source("tiles.mlir", drawn_program(Random(seed), open_sizes=False))
    placed = Compilation(source, Options(check_each_step=True)).placed
    assert str(Compilation(source).placed) == str(placed)
    for op in operations_in(placed.operation):
        for value in (*op.operands, *op.results):
            if is_tile(value):
                layout = layout_of(value)
                assert layout is not None
                assert f'"{layout.text}"' in str(value.type)
