"""Random programs: all tiles are placed by the rules, the same every time, and compute the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from support.random_tile_programs import Program, programs

from lego_mlir.compiler.driver import Compilation
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.interpreter import interpret
from lego_mlir.mlir.tile_ir.types import is_tile, layout_of


@given(programs())
@settings(max_examples=60, deadline=None)
def test_all_tiles_are_placed_and_values_stay(program: Program) -> None:
    """The verifier, which runs after each pass, checks that the layouts fit the operations."""
    text = program.text()
    source = Source("tiles.mlir", text)
    compilation = Compilation(source)
    placed = compilation.placed
    assert str(Compilation(source).placed) == str(placed)
    for op in operations_in(placed.operation):
        for value in (*op.operands, *op.results):
            if is_tile(value):
                layout = layout_of(value)
                assert layout is not None
                assert f'"{layout.text}"' in str(value.type)
                assert layout.warps == program.warps
    random = np.random.default_rng(1)
    inputs = [
        random.integers(-8, 8, shape).astype(np.float32) for _, shape in program.tensors.values()
    ]
    before = interpret(compilation._parsed, [x.copy() for x in inputs], source=source).tensors
    after = interpret(placed, [x.copy() for x in inputs], source=source).tensors
    for name, x in before.items():
        np.testing.assert_allclose(np.asarray(after[name]), np.asarray(x), rtol=1e-5, atol=1e-5)
