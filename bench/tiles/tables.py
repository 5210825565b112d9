"""`python -m bench tiles tables`: tables 3 and 4 of papers/linear_layouts, for this compiler.

Both need no GPU: they count instructions of the PTX, and the simulator says whether results are
right. The published columns are those of the paper (Triton without and with linear layouts). Its
text does not say which variants of a family of layouts its counts add up, so ours stand beside them
for the shapes that it names, and are no ratio to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import lego_mlir as lg
from lego_mlir.analysis.distributed import (
    DistributedLayout,
    Factor,
    blocked,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    sliced,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import run, select

WARPS = 4

CONTIGUITY = (
    ("f8E4M3FN", 1, "v1.b32", "v1.b32"),
    ("f8E4M3FN", 2, "v1.b16", "v4.b32"),
    ("f8E4M3FN", 4, "v1.b32", "v4.b32"),
    ("f8E4M3FN", 8, "v2.b32", "v4.b32"),
    ("f8E4M3FN", 16, "v4.b32", "v4.b32"),
    ("f16", 1, "v2.b32", "v2.b32"),
    ("f16", 2, "v1.b32", "v4.b32"),
    ("f16", 4, "v2.b32", "v4.b32"),
    ("f16", 8, "v4.b32", "v4.b32"),
    ("f16", 16, "v4.b32", "v4.b32"),
)
"""Table 3: element type, columns, and the widest instruction of Triton and of Triton-Linear."""

BROADCAST = {
    "Blocked": ("20/20", "20/20", "5888", "1388"),
    "MMA": ("20/20", "20/20", "5914", "3517"),
    "MMA Input": ("0/10", "10/10", "N/A", "5884"),
    "Sliced<Blocked>": ("20/20", "20/20", "6703", "4687"),
    "Sliced<MMA>": ("0/10", "10/10", "N/A", "320"),
    "Sliced<MMA Input>": ("0/10", "10/10", "N/A", "545"),
    "Custom": ("0/10", "10/10", "N/A", "913"),
}
"""Table 4: passes of Triton and Triton-Linear, and their instructions on shared memory."""

SHAPES = ((128, 16), (128, 128), (32, 128), (32, 32), (16, 16))


@dataclass(frozen=True)
class Reductions:
    """Our row of table 4.

    Attributes:
        right: how many reductions are right in the simulator.
        tried: of how many.
        stores: instructions that store to shared memory, of all of them.
        loads: those that load.
    """

    right: int
    tried: int
    stores: int
    loads: int


def main() -> int:
    """Print both tables; return the number of reductions that are wrong."""
    found = {family: reductions(family) for family in BROADCAST}
    print("\n".join(lines(found)))
    return sum(each.tried - each.right for each in found.values())


def lines(found: Mapping[str, Reductions]) -> Iterator[str]:
    """Yield the lines of both tables, with our reductions of each family of layouts."""
    yield "Table 3: the widest access of a copy of 512 rows"
    yield ""
    yield "| tile | Triton | Triton-Linear | lego-mlir | bits |\n|---|---|---|---|--:|"
    for dtype, columns, triton, linear in CONTIGUITY:
        name, bits = widest(dtype, columns)
        yield f"| 512×{columns} {dtype} | {triton} | {linear} | {name} | {bits} |"
    yield "\nTable 4: reductions of tiles in layouts of all kinds\n"
    yield "| layout | Triton | Triton-Linear | lego-mlir | its shared-memory stores, loads |"
    yield "|---|---|---|---|---|"
    for family, (before, after, *counts) in BROADCAST.items():
        ours = found[family]
        yield (
            f"| {family} | {before}, {counts[0]} | {after}, {counts[1]} | "
            f"{ours.right}/{ours.tried} | {ours.stores}, {ours.loads} |"
        )


def widest(dtype: str, columns: int) -> tuple[str, int]:
    """Return the widest load of a copy of a tile of 512 rows, as PTX has it, and its bits."""
    tensor = lg.Tensor[dtype, (512, columns), 16]

    def copy(x: Any, y: Any) -> None:
        y.tile(512, columns)[0, 0] = x.tile(512, columns)[0, 0]

    copy.__annotations__ = {"x": tensor, "y": tensor}
    ptx = lg.kernel(grid=1, warps=WARPS)(copy).compile("sm_90a").ptx
    found = []
    for vector, bits in re.findall(r"ld\.global(?:\.nc)?(?:\.v(\d))?\.b(\d+)", ptx):
        found.append((int(vector or 1) * int(bits), f"v{vector or 1}.b{bits}"))
    best = max(found)
    return best[1], best[0]


def reductions(family: str) -> Reductions:
    """Return how the reductions of a family's tiles come out, along both dimensions."""
    right = tried = stores = loads = 0
    for shape in SHAPES:
        for layout in _layouts(family, shape):
            for axis in range(len(layout.shape)):
                tried += 1
                try:
                    is_right, ptx = _reduced(layout, axis)
                except LegoError as e:
                    print(f"{family} {layout.shape} along {axis}: {e.message}")
                    continue
                right += is_right
                stores += len(re.findall(r"st\.shared|stmatrix", ptx))
                loads += len(re.findall(r"ld\.shared|ldmatrix", ptx))
    return Reductions(right, tried, stores, loads)


def _layouts(family: str, shape: tuple[int, int]) -> Iterator[DistributedLayout]:
    """Yield a family's layouts of a tile; of `Sliced`, of tiles of one dimension."""
    if family.startswith("Sliced"):
        for parent in _layouts(family[len("Sliced<") : -1], shape):
            yield from (sliced(parent, dim) for dim in range(2))
        return
    match family:
        case "Blocked":
            yield blocked(shape, (1, 4), (4, 8), (4, 1))
            yield blocked(shape, (2, 2), (8, 4), (2, 2))
        case "MMA":
            yield from (mma_accumulator(_at_least(shape, grid), grid) for grid in ((4, 1), (2, 2)))
        case "MMA Input":
            m, n = shape
            yield mma_operand_a((max(m, 64), max(n, 16)), 16, (4, 1))
            yield mma_operand_b((max(m, 16), max(n, 32)), 16, (1, 4))
        case _:  # a layout of no named kind: lanes in bits that alternate between the dimensions
            m, n = shape
            yield DistributedLayout.of(
                shape,
                warps=[Factor(0, 2, m // 2), Factor(1, 2, n // 2)],
                lanes=[Factor(1, 2, 4), Factor(0, 2, 1), Factor(1, 2, 2), Factor(0, 4, 2)],
                registers=[Factor(0, m // 16, 8), Factor(1, n // 16, 8), Factor(1, 2, 1)],
            )


def _at_least(shape: tuple[int, int], grid: tuple[int, int]) -> tuple[int, int]:
    return max(shape[0], 16 * grid[0]), max(shape[1], 8 * grid[1])


def _reduced(layout: DistributedLayout, axis: int) -> tuple[bool, str]:
    """Return whether the sum of a tile along an axis is right, and the kernel's PTX."""
    shape = layout.shape
    result = tuple(n for d, n in enumerate(shape) if d != axis) or (1,)
    source, target = lg.Tensor["f32", shape, 16], lg.Tensor["f32", result, 16]

    def total(x: Any, y: Any) -> None:
        tile = lg.convert(x.tile(*shape)[(0,) * len(shape)], layout)
        found = lg.sum(tile, axis=axis)
        if len(shape) == 1:
            y[0] = found
        else:
            y.tile(*result)[(0,) * len(result)] = found

    total.__annotations__ = {"x": source, "y": target}
    artifact = lg.kernel(grid=1, warps=WARPS)(total).compile("sm_90a")
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    outputs = run(artifact, {"x": x}, device=select("sim")).outputs
    found = np.asarray(outputs["y"]).reshape(result)
    is_right = np.allclose(found, x.sum(axis=axis).reshape(result), rtol=1e-4, atol=1e-4)
    return bool(is_right), artifact.ptx
