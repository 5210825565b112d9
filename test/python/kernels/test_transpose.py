"""The transpose: its result for every layout, type and tile, and its bank conflicts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lego_mlir import Col, GenP, Layout, OrderBy, RegP, Row, reverse, swizzle
from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import transpose

LAYOUTS = {
    "row": lambda m, n: OrderBy(Row(m, n)),
    "col": lambda m, n: OrderBy(Col(m, n)),
    "tiled": lambda m, n: OrderBy(RegP([m // 16, 16, n // 16, 16], [0, 2, 1, 3])),
    "reversed": lambda m, n: OrderBy(GenP([m, n], reverse)),
}


@pytest.mark.parametrize("b", LAYOUTS)
@pytest.mark.parametrize("a", LAYOUTS)
def test_every_pair_of_layouts(a: str, b: str) -> None:
    m, n = 64, 96
    kernel = transpose(m, n, a=LAYOUTS[a](m, n), b=LAYOUTS[b](n, m))
    comparison = kernel.run(device="sim", seed=3).comparison
    assert comparison is not None
    assert comparison.equal, str(comparison)


@pytest.mark.parametrize("dtype", ["i8", "i16", "f16", "bf16", "f32", "f64", "i64"])
def test_every_type(dtype: str) -> None:
    comparison = transpose(32, 64, dtype).run(device="sim").comparison
    assert comparison is not None
    assert comparison.equal, str(comparison)


@pytest.mark.parametrize(("tile", "rows"), [(32, 8), (32, 32), (16, 8), (16, 4), (8, 1)])
def test_every_tile(tile: int, rows: int) -> None:
    x = np.random.default_rng(7).integers(0, 99, (2 * tile, 3 * tile)).astype(np.float32)
    y = np.full(x.T.shape, np.nan, dtype=np.float32)
    transpose(*x.shape, variant="shared", tile=tile, rows=rows)(x, y, device="sim")
    assert (y == x.T).all()


@pytest.mark.parametrize(("tile", "rows"), [(32, 5), (24, 8), (64, 64), (32, 0)])
def test_wrong_tiles_are_refused(tile: int, rows: int) -> None:
    with pytest.raises(LegoError, match=f"tile of side {tile} cannot be transposed {rows} rows"):
        transpose(32, 32, variant="shared", tile=tile, rows=rows)


def test_the_ptx_names_the_files_of_the_kernel() -> None:
    """The names do not depend on the machine."""
    ptx = transpose(64, 64, variant="vector").compile().ptx
    assert re.findall(r"\.file\t\d (.*)", ptx) == [
        f'"lego_mlir/kernels/permute/{module}.py"' for module in ("kernel", "dependence")
    ]


def test_no_excess_sectors_or_wavefronts() -> None:
    """Accesses take whole sectors without bank conflicts."""
    (costs,) = transpose(64, 96, variant="shared").run(device="sim", costs=True).costs
    assert (costs.excess_sectors, costs.excess_wavefronts) == (0, 0)
    assert {(m.instruction.opcode, m.requests * 128 == m.bytes) for m in costs.memory} == {
        (f"{word}.{space}.b32", True) for word in ("ld", "st") for space in ("global", "shared")
    }


def column_reads(tile: Layout, element: int) -> Any:
    """Return the byte offsets of a warp's loads down each column of a tile, (columns, 32)."""
    return tile.offsets().T * element


def test_the_swizzle_removes_bank_conflicts() -> None:
    """Rows and columns of the tile both take one wavefront; without the swizzle columns take 32."""
    swizzled, plain = OrderBy(GenP([32, 32], swizzle)), OrderBy(Row(32, 32))
    assert (wavefronts(column_reads(swizzled, 4), 4).executed == 1).all()
    assert (wavefronts(swizzled.offsets() * 4, 4).executed == 1).all()
    assert (wavefronts(column_reads(plain, 4), 4).executed == 32).all()
