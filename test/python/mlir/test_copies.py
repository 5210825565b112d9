"""Copies of tiles through shared memory, by the steps of a schedule: run, and misused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import select

INPUTS = Path(__file__).parents[2] / "transforms" / "Inputs"
SWIZZLED = "OrderBy(GenP([{0}, {1}], swizzle(8, 1, 8)))"
SWIZZLED_COLUMNS = "OrderBy(GenP([{1}, {0}], swizzle(8, 1, 8))).OrderBy(RegP([{0}, {1}], [1, 0]))"
PLAIN = "OrderBy(Row({0}, {1}))"

SMALL = {"tile": (24, 20), "shared": PLAIN}

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8}


def module(
    shape: tuple[int, int] = (64, 256),
    tile: tuple[int, int] = (64, 64),
    order: str = "Row",
    shared: str = SWIZZLED,
    dtype: str = "f16",
    threads: int = 64,
    alignment: int = 16,
) -> str:
    """A kernel that copies a matrix: a block the tiles of a row, one after another."""
    (m, n), (tm, tn) = shape, tile
    matrix = f"memref<{m * n}x{dtype}>"
    attributes = f"{{lego.layout = #A, lego.alignment = {alignment} : i64}}"
    rows, columns = -(-m // tm), -(-n // tn)
    return f"""
#A = #lego.layout<"OrderBy({order}({m}, {n})).TileBy([{rows}, {columns}], [{tm}, {tn}])">
#S = #lego.layout<"{shared.format(tm, tn)}">
func.func @copy(%a: {matrix} {attributes}, %b: {matrix} {attributes}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant {threads} : index
  %rows = arith.constant {rows} : index
  %columns = arith.constant {columns} : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %rows, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {{
    scf.for %k = %c0 to %columns step %c1 {{
      %x = "lego.load"(%a, %bx, %k) {{layout = #A, slice = array<i64: 2, 3>, shared = #S}}
          : ({matrix}, index, index) -> vector<{tm}x{tn}x{dtype}>
      "lego.store"(%x, %b, %bx, %k) {{layout = #A, slice = array<i64: 2, 3>}}
          : (vector<{tm}x{tn}x{dtype}>, {matrix}, index, index) -> ()
    }}
    gpu.terminator
  }}
  return
}}
"""


def compiled(
    text: str, schedule: str = "copy", target: str = "sm_90a", **parameters: int
) -> Compilation:
    options = Options(
        schedule=str(INPUTS / f"{schedule}.mlir"),
        target=Target.parse(target),
        parameters=parameters,
    )
    return Compilation(Source("copy.mlir", text), options)


@pytest.mark.parametrize(
    ("case", "parameters", "width"),
    [
        ({}, {}, 16),
        ({"shape": (64, 192), "order": "Col", "shared": SWIZZLED_COLUMNS}, {}, 16),
        ({"shape": (72, 104)}, {}, 16),
        ({"shape": (72, 104), "order": "Col", "shared": SWIZZLED_COLUMNS}, {}, 16),
        ({"shape": (50, 100)}, {"buffers": 3, "depth": 2}, 8),
        ({"shape": (50, 98)}, {"buffers": 2, "depth": 1}, 4),
        ({"shape": (50, 77), "tile": (16, 64), "dtype": "f16"}, {}, None),
        ({"shape": (30, 130), "tile": (16, 64), "dtype": "i8", "shared": PLAIN}, {}, None),
        ({"shape": (32, 512), "tile": (32, 128), "dtype": "i8", "shared": PLAIN}, {}, 16),
        (
            {"shape": (33, 45), "tile": (24, 20), "dtype": "f32", "shared": PLAIN, "threads": 96},
            {},
            4,
        ),
        (
            {"shape": (24, 40), "tile": (24, 20), "dtype": "f64", "shared": PLAIN, "threads": 50},
            {},
            16,
        ),
        ({"shape": (64, 128), "threads": 7}, {}, 16),
        ({"alignment": 8}, {}, 8),
    ],
)
@pytest.mark.parametrize("order", ["late", "early"])
def test_a_copy_is_a_copy(
    case: dict[str, object], parameters: dict[str, int], width: int | None, order: str
) -> None:
    compilation = compiled(module(**case), **parameters)  # type: ignore[arg-type]
    widths = set(re.findall(r"cp\.async\.c[ag]\S+ \[\S+\], \[\S+\], (\d+)", compilation.ptx))
    assert widths == (set() if width is None else {str(width)})
    artifact = compilation.artifact(assemble=False)
    m, n = case.get("shape", (64, 256))  # type: ignore[misc]
    dtype = DTYPES[str(case.get("dtype", "f16"))]
    source = np.random.default_rng(1).integers(-100, 100, m * n).astype(dtype)
    found = np.zeros_like(source)
    select("sim", order=order).run(artifact, [source, found])
    assert (source == found).all()


def test_copies_waste_neither_sectors_nor_wavefronts() -> None:
    artifact = compiled(module()).artifact(assemble=False)
    values = [np.zeros(64 * 256, np.float16) for _ in range(2)]
    (costs,) = select("sim", costs=True).run(artifact, values)
    assert len(costs.memory) >= 4
    assert costs.excess_sectors == costs.excess_wavefronts == 0


def test_before_sm_80_copies_pass_through_registers() -> None:
    compilation = compiled(module(), "distribute_copies", "sm_75")
    assert "cp.async" not in compilation.ptx
    assert "ld.global.v4.b32" in compilation.ptx


@pytest.mark.parametrize(
    ("change", "parameters", "says", "hint"),
    [
        (
            ("shared = #S", "shared = #A"),
            {},
            "the tile is 64x64, its shared-memory layout",
            "same order",
        ),
        ((", shared = #S", ""), {}, "stage_in_shared: none of the 2 operations", "{shared ="),
        (
            ("slice = array<i64: 2, 3>, shared", "shared"),
            {},
            "got 2 indices, its layout",
            None,
        ),
        ((), {"buffers": 0}, "buffers is 0", "buffers=1, or more"),
        ((), {"depth": 0}, "depth is 0", "depth=1, or more"),
        (
            (),
            {"buffers": 3, "depth": 3},
            "3 iterations ahead need 4 buffers, there are 3",
            "buffers",
        ),
        ((), {"buffers": 1, "depth": 1}, "need 2 buffers, there is 1", "--param buffers=2"),
        ((), {"buffers": 40, "depth": 1}, "327680 bytes of shared memory, 95232 more", "fewer"),
        (("arith.constant 64 : index", "gpu.grid_dim x"), {}, "number of threads", "constants"),
    ],
)
def test_errors_of_misuse(
    change: tuple[str, str] | tuple[()], parameters: dict[str, int], says: str, hint: str | None
) -> None:
    text = module()
    if change:
        assert change[0] in text
        text = text.replace(*change)
    with pytest.raises(LegoError) as caught:
        compiled(text, **parameters).text("index")
    error = caught.value
    assert says in error.message
    assert error.location is not None
    assert error.location.line > 0
    assert hint is None or hint in str(error.hint)


def test_pipelines_need_asynchronous_copies() -> None:
    with pytest.raises(LegoError, match="sm_75 has no asynchronous copies"):
        compiled(module(), target="sm_75").text("index")


def test_padding_that_reads_as_something_passes_through_registers() -> None:
    text = module(shape=(72, 104)).replace("shared = #S", "shared = #S, other = 1.0 : f16")
    compilation = compiled(text, "distribute_copies")
    assert "cp.async" not in compilation.ptx
    assert "dense<1.000000e+00>" in compilation.text("index")


@pytest.mark.parametrize(
    ("alignment", "schedule", "says"),
    [
        (2048, "copy", "a power of two up to 1024, not 2048"),
        (1024, "distribute_copies", "only dynamic shared memory can keep to it"),
    ],
)
def test_an_impossible_alignment_is_an_error(alignment: int, schedule: str, says: str) -> None:
    room = (
        f'%s = "lego.alloc"() {{layout = #S, lego.alignment = {alignment} : i64}} '
        ": () -> memref<?xf16, #gpu.address_space<workgroup>>\n    scf.for %k"
    )
    with pytest.raises(LegoError, match=says):
        compiled(module().replace("scf.for %k", room), schedule).text("index")


def test_buffers_begin_where_they_ask_to() -> None:
    """The smaller one, behind the larger, of 8448 bytes."""
    shared = "memref<?xf16, #gpu.address_space<workgroup>>"
    room = (
        '%s = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(64))">, '
        f"lego.alignment = 1024 : i64}} : () -> {shared}\n    scf.for %k"
    )
    use = (
        "%v = memref.load %a[%k] : memref<4224xf16>\n"
        f'      memref.store %v, %s[%tx] : {shared}\n      %x = "lego.load"'
    )
    text = module(tile=(32, 44), shape=(32, 132), shared=PLAIN)
    text = text.replace("scf.for %k", room).replace('%x = "lego.load"', use)
    index = compiled(text, buffers=3, depth=2).text("index")
    starts = re.findall(r"memref\.view \S+\[%c(\d+)\]", index)
    assert sorted(map(int, starts)) == [0, 9216]
