"""Random kernels that load or store the parts of a tile, and what they do by definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lego_mlir.algebra import Layout
from lego_mlir.algebra.notation.parser import parse_layout
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import run, select

DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "f64": np.float64,
    "i8": np.int8,
    "i64": np.int64,
    "i1": np.int8,
}
"""The type in memory by that of the parts."""


@dataclass(frozen=True)
class Factor:
    """A factor of a tile: its dimension, size and stride, and whether threads count it."""

    dim: int
    size: int
    stride: int
    of_threads: bool


@dataclass(frozen=True)
class Case:
    """A tile in memory.

    Attributes:
        layout: of the memory, as text.
        factors: of the tile, slowest first.
        origin: of the tile of CTA 0.
        step: what each CTA adds to it.
        grid: the number of CTAs.
        element: the type of the parts.
        alignment: of the buffer, in bytes.
        width: elements of a part.
        mask: how the mask is made: "none", "loaded", or "compared" with `limit` along dimension 0.
        limit: for that.
    """

    layout: str
    factors: tuple[Factor, ...]
    origin: tuple[int, ...]
    step: tuple[int, ...]
    grid: int
    element: str
    alignment: int
    width: int
    mask: str
    limit: int

    @property
    def registers(self) -> list[Factor]:
        return [f for f in self.factors if not f.of_threads]

    @property
    def thread_factors(self) -> list[Factor]:
        return [f for f in self.factors if f.of_threads]

    @property
    def holders(self) -> int:
        """The threads that hold different elements; further ones hold the same again."""
        return prod(f.size for f in self.thread_factors)

    @property
    def threads(self) -> int:
        return -(-self.holders // 32) * 32

    @property
    def count(self) -> int:
        return prod(f.size for f in self.registers)

    @property
    def parsed(self) -> Layout:
        return parse_layout(self.layout)

    def indices(self) -> np.ndarray[Any, Any]:
        """Return the index of each element: CTA, thread, register, dimension."""
        found = np.zeros((self.grid, self.threads, self.count, len(self.origin)), np.int64)
        found += np.array(self.origin)
        found += np.arange(self.grid)[:, None, None, None] * np.array(self.step)
        for factors, axis, n in (
            (self.thread_factors, 1, self.threads),
            (self.registers, 2, self.count),
        ):
            rest = np.arange(n)
            for f in reversed(factors):
                digit = (rest % f.size) * f.stride
                rest = rest // f.size
                found[..., f.dim] += digit[None, :, None] if axis == 1 else digit[None, None, :]
        return found

    def exists(self) -> np.ndarray[Any, Any]:
        """Return whether each element exists in the layout."""
        index, layout = self.indices(), self.parsed
        inside = np.all((index >= 0) & (index < np.array(layout.dims)), axis=-1)
        columns = [np.where(inside, index[..., k], 0) for k in range(index.shape[-1])]
        return inside & np.broadcast_to(layout.mask(*columns), inside.shape).astype(bool)

    def offsets(self) -> np.ndarray[Any, Any]:
        """Return where each element is that exists, else 0."""
        exists, index, layout = self.exists(), self.indices(), self.parsed
        found = np.zeros(exists.shape, np.int64)
        found[exists] = layout.apply(*(index[..., k][exists] for k in range(index.shape[-1])))
        return found

    def let_through(self, loaded: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the mask of each element."""
        match self.mask:
            case "loaded":
                return loaded.reshape(self.grid, self.threads, self.count).astype(bool)
            case "compared":
                return self.indices()[..., 0] < self.limit
        return np.ones((self.grid, self.threads, self.count), bool)


@st.composite
def cases(draw: Any) -> Case:
    """Draw a tile in memory."""
    rank = draw(st.integers(1, 2))
    counts = {True: 1, False: 1}
    extents = [1] * rank
    backwards = []
    for _ in range(draw(st.integers(1, 6))):
        dim, size = draw(st.integers(0, rank - 1)), draw(st.sampled_from([2, 2, 4, 4, 8, 3]))
        of_threads = draw(st.booleans())
        if counts[of_threads] * size <= (64 if of_threads else 24):
            counts[of_threads] *= size
            backwards.append(Factor(dim, size, extents[dim], of_threads))
            extents[dim] *= size
    factors = draw(st.permutations(backwards))
    grid = draw(st.integers(1, 2))
    kind = draw(st.sampled_from(["row", "col", "swizzle", "tiled", "partial"]))
    sizes = [
        max(1, n * draw(st.integers(1, 2)) + draw(st.sampled_from([0, 0, 0, 4, -1, -2])))
        for n in extents
    ]
    step = [n if draw(st.booleans()) else 0 for n in extents]
    origin = [draw(st.sampled_from([0, 0, 0, 8, 1])) for _ in extents]
    listed = ", ".join(map(str, sizes))
    layout = f"OrderBy(Row({listed}))"
    match kind:
        case "col":
            layout = f"OrderBy(Col({listed}))"
        case "swizzle" if rank == 2:
            layout = "OrderBy(GenP([16, 64], swizzle(8, 1, 8)))"
        case "tiled" if rank == 2:
            layout = f"OrderBy(RegP([{sizes[0]}, 4, 8], [1, 0, 2])).GroupBy([{sizes[0]}, 32])"
        case "partial":
            tiles = [draw(st.sampled_from([4, 8, 16])) for _ in sizes]
            outer = ", ".join(f"ceildiv({n}, {t})" for n, t in zip(sizes, tiles, strict=True))
            inner = ", ".join(map(str, tiles))
            layout = f"OrderBy(Row({listed})).TileBy([{outer}], [{inner}])"
            origin = [draw(st.integers(0, 1)) for _ in sizes] + origin
            step = [0] * rank + step
            factors = [Factor(f.dim + rank, f.size, f.stride, f.of_threads) for f in factors]
    registers = prod(f.size for f in factors if not f.of_threads)
    element = draw(st.sampled_from([*DTYPES, "f32", "f16"]))
    width = draw(st.sampled_from([1, 2, 4, 4]))
    return Case(
        layout,
        tuple(factors),
        tuple(origin),
        tuple(step),
        grid,
        element,
        draw(st.sampled_from([16, 16, 8, 1])),
        gcd(width, registers),
        draw(st.sampled_from(["none", "none", "loaded", "compared"])),
        draw(st.sampled_from([0, 3, 8, 12, 1000])),
    )


def _kind(element: str, width: int) -> str:
    return element if width == 1 else f"vector<{width}x{element}>"


def _registers(factors: Sequence[Factor]) -> str:
    numbers = ", ".join(f"{f.dim}, {f.size}, {f.stride}" for f in factors)
    return f"array<i64: {numbers}>" if numbers else "array<i64>"


def _constants(case: Case) -> list[list[int]]:
    """Return what registers add to dimension 0, part by part."""
    added = [
        sum(d * f.stride for d, f in zip(digits, case.registers, strict=True) if f.dim == 0)
        for digits in product(*(range(f.size) for f in case.registers))
    ]
    return [added[k : k + case.width] for k in range(0, len(added), case.width)]


def text(case: Case, *, store: bool) -> str:
    """Return a module that copies a tile to the rows of `y`, a row a thread, or with `store` back.

    `m` is the mask, as `y`. Its elements are bytes.
    """
    memory = "i8" if case.element == "i1" else case.element
    size, rows = int(case.parsed.size), case.grid * case.threads
    x, y, m = (
        f"memref<{size}x{memory}>",
        f"memref<{rows * case.count}x{memory}>",
        (f"memref<{rows * case.count}xi8>"),
    )
    lines = []
    threads = case.thread_factors
    if threads:
        sizes = ", ".join(str(f.size) for f in threads)
        lines += [
            f"%holders = arith.constant {case.holders} : index",
            "%t0 = arith.remui %t, %holders : index",
            f'%d:{len(threads)} = "lego.inv"(%t0) '
            f'{{layout = #lego.layout<"OrderBy(Row({sizes}))">}} : (index) -> '
            f"({', '.join(['index'] * len(threads))})",
        ]
    index = []
    for dim, (origin, step) in enumerate(zip(case.origin, case.step, strict=True)):
        lines += [
            f"%o{dim} = arith.constant {origin} : index",
            f"%s{dim} = arith.constant {step} : index",
            f"%b{dim} = arith.muli %b, %s{dim} : index",
            f"%i{dim}_0 = arith.addi %o{dim}, %b{dim} : index",
        ]
        name = f"%i{dim}_0"
        for k, f in enumerate(threads):
            if f.dim == dim:
                digit = f"%d#{k}" if len(threads) > 1 else "%d"
                lines += [
                    f"%c{dim}_{k} = arith.constant {f.stride} : index",
                    f"%m{dim}_{k} = arith.muli {digit}, %c{dim}_{k} : index",
                    f"%i{dim}_{k + 1} = arith.addi {name}, %m{dim}_{k} : index",
                ]
                name = f"%i{dim}_{k + 1}"
        index.append(name)
    parts = case.count // case.width
    kind, bit = _kind(case.element, case.width), _kind("i1", case.width)
    rows_layout = f'#lego.layout<"OrderBy(Row({rows}, {case.count}))">'
    row = f"array<i64: 1, {case.count}, 1>"
    lines += [
        f"%cta = arith.constant {case.threads} : index",
        "%first = arith.muli %b, %cta : index",
        "%row = arith.addi %first, %t : index",
        "%zero = arith.constant 0 : index",
    ]
    masks = [f"%mask{k}" for k in range(parts)] if case.mask != "none" else []
    match case.mask:
        case "loaded":
            listed = f"%mask:{parts}"
            masks = [f"%mask#{k}" for k in range(parts)] if parts > 1 else ["%mask"]
            lines.append(
                f'{listed} = "lego.load_parts"(%m, %row, %zero) {{layout = {rows_layout}, '
                f"registers = {row}, operandSegmentSizes = array<i32: 1, 2, 0>}} : "
                f"({m}, index, index) -> ({', '.join([bit] * parts)})"
            )
        case "compared":
            i32 = _kind("i32", case.width)
            lines += [
                f"%at = arith.index_cast {index[0]} : index to i32",
                *([f"%ats = vector.broadcast %at : i32 to {i32}"] if case.width > 1 else []),
                f"%limit = arith.constant {_dense([case.limit] * case.width, i32)}",
            ]
            at = "%ats" if case.width > 1 else "%at"
            for k, constants in enumerate(_constants(case)):
                lines += [
                    f"%more{k} = arith.constant {_dense(constants, i32)}",
                    f"%place{k} = arith.addi {at}, %more{k} : {i32}",
                    f"%mask{k} = arith.cmpi slt, %place{k}, %limit : {i32}",
                ]
    masked = "".join(f", {mask}" for mask in masks)
    bits = "".join(f", {bit}" for _ in masks)
    indices = "".join(f", {i}" for i in index)
    index_types = ", index" * len(index)
    values = [f"%v#{k}" for k in range(parts)] if parts > 1 else ["%v"]
    listed = "".join(f", {v}" for v in values)
    kinds = ", ".join([kind] * parts)
    tile = f'layout = #lego.layout<"{case.layout}">, registers = {_registers(case.registers)}'
    dense = f"layout = {rows_layout}, registers = {row}"
    if store:
        lines += [
            f'%v:{parts} = "lego.load_parts"(%y, %row, %zero) {{{dense}, '
            f"operandSegmentSizes = array<i32: 1, 2, 0>}} : ({y}, index, index) -> ({kinds})",
            f"%holding = arith.constant {case.holders} : index",
            "%holds = arith.cmpi ult, %t, %holding : index",
            "scf.if %holds {",
            f'"lego.store_parts"(%x{indices}{listed}{masked}) {{{tile}, operandSegmentSizes = '
            f"array<i32: 1, {len(index)}, {parts}, {len(masks)}>}} : "
            f"({x}{index_types}, {kinds}{bits}) -> ()",
            "}",
        ]
    else:
        other = {"f32": "7.0 : f32", "f16": "7.0 : f16", "f64": "7.0 : f64"}.get(
            case.element, f"1 : {memory}"
        )
        lines += [
            f'%v:{parts} = "lego.load_parts"(%x{indices}{masked}) {{{tile}, other = {other}, '
            f"operandSegmentSizes = array<i32: 1, {len(index)}, {len(masks)}>}} : "
            f"({x}{index_types}{bits}) -> ({kinds})",
            f'"lego.store_parts"(%y, %row, %zero{listed}) {{{dense}, operandSegmentSizes = '
            f"array<i32: 1, 2, {parts}, 0>}} : ({y}, index, index, {kinds}) -> ()",
        ]
    body = "\n    ".join(lines)
    return f"""func.func @main(%x: {x} {{lego.alignment = {case.alignment} : i64}},
                %y: {y} {{lego.alignment = 16 : i64}}, %m: {m}) {{
  %c1 = arith.constant 1 : index
  %grid = arith.constant {case.grid} : index
  %threads = arith.constant {case.threads} : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %grid, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %threads, %tyy = %c1, %tzz = %c1) {{
    {body}
    gpu.terminator
  }}
  return
}}
"""


def _dense(numbers: Sequence[int], kind: str) -> str:
    if len(numbers) == 1:
        return f"{numbers[0]} : {kind}"
    return f"dense<[{', '.join(map(str, numbers))}]> : {kind}"


def compiled(module: str, *, check: bool = False) -> Compilation:
    """Return the compilation of a module's text."""
    return Compilation(Source("parts.mlir", module), Options(check=check))


def outputs(module: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return what a kernel leaves in its arguments, by name."""
    artifact = compiled(module).artifact(assemble=False)
    given = {name: x.copy() for name, x in arrays.items()}
    return dict(run(artifact, given, device=select("sim")).outputs)
