"""The compiler's transpose of 40 × 72 floats through a swizzled tile of 32 × 32, and its mutants.

The patterns name instructions and their order, not registers.
"""

from __future__ import annotations

import re

import numpy as np

from lego_mlir import sim
from lego_mlir.kernels import transpose
from mutants.mutant import BOUNDS, RACE, UNWRITTEN, WRONG, Kernel, Mutant

M, N, TILE, ROWS = 40, 72, 32, 8


def text() -> str:
    """The PTX, without what a debugger reads."""
    kernel = transpose(M, N, variant="shared", tile=TILE, rows=ROWS)
    ptx: str = kernel.compilation().text("ptx")
    return re.sub(r"^\s*\.(loc|file|section)\b.*\n", "", ptx, flags=re.M)


def run(ptx: str, data: int, **options: object) -> bool:
    a = np.random.default_rng(data).random((M, N), np.float32)
    b = np.full((N, M), np.nan, np.float32)
    blocks = -(-M // TILE) * -(-N // TILE)
    sim.launch(ptx, "transpose_kernel", (blocks, 1, 1), (TILE * ROWS, 1, 1), [b, a], **options)
    return np.array_equal(b, a.T)


BARRIER = re.compile(r"bar\.sync\s+0;")
FIRST_GUARD = re.compile(r"@%p\d+ bra\s+\S+;(\s*ld\.global\.b32 [^;]*\[%rd\d+\];)")

MUTANTS = (
    Mutant(
        "no barrier",
        BARRIER,
        "",
        "reads elements of the tile that other warps have not written yet",
        RACE,
    ),
    Mutant(
        "a barrier of the warp",
        BARRIER,
        "bar.warp.sync -1;",
        "reads elements of the tile that other warps have not written yet",
        RACE,
    ),
    Mutant(
        "a fence in place of the barrier",
        BARRIER,
        "fence.acq_rel.cta;",
        "orders the accesses of a thread, but waits for nobody",
        RACE,
    ),
    Mutant(
        "a barrier for half of the block",
        BARRIER,
        "bar.sync 0, 128;",
        "four warps go on as soon as they have come, without the other four",
        RACE,
    ),
    Mutant(
        "the barrier before the last store",
        re.compile(r"(st\.shared\.b32\s+\[[^;]*;)(\s*)bar\.sync\s+0;"),
        r"bar.sync 0;\2\1",
        "reads elements of the tile that other warps have not written yet",
        RACE,
    ),
    Mutant(
        "the barrier after the first read",
        re.compile(r"bar\.sync\s+0;(.*?ld\.shared\.b32.*?\$L__BB0_\d+:)", re.S),
        r"\1 bar.sync 0;",
        "reads elements of the tile that other warps have not written yet",
        RACE,
    ),
    Mutant(
        "rows of the tile are left out",
        re.compile(r"st\.shared\.b32\s+\[%rd\d+\+3072\][^;]*;"),
        "",
        "a quarter of each tile is what was there before",
        UNWRITTEN,
    ),
    Mutant(
        "rows of the tile at the wrong address",
        re.compile(r"(st\.shared\.b32\s+\[%rd\d+)\+1024"),
        r"\1+2048",
        "two elements at one address, and none at others",
        RACE,
    ),
    Mutant(
        "another swizzle",
        re.compile(
            r"xor(\.b32[^;]*;\s*or\.b32[^;]*;\s*mul[^;]*;\s*add[^;]*;\s*st\.shared\S+\s+\[%rd\d+\+2048)"
        ),
        r"or\1",
        "several columns of a row at one address",
        UNWRITTEN,
    ),
    Mutant(
        "a tile of half the size",
        re.compile(r"\[4096\]"),
        "[2048]",
        "overwrites the memory behind it",
        BOUNDS,
    ),
    Mutant(
        "warps of 64",
        re.compile(r"(shr\.u32\s+%r\d+, %r\d+), 5;"),
        r"\1, 6;",
        "two warps do the work of one, other rows are left out",
        WRONG,
    ),
    Mutant(
        "no guard of a load",
        FIRST_GUARD,
        r"\1",
        "reads behind the end of the input",
        BOUNDS,
    ),
    Mutant(
        "no guard of a store",
        re.compile(r"@%p\d+ bra\s+\S+;([^@]*ret;)"),
        r"\1",
        "writes behind the end of the output",
        BOUNDS,
    ),
    Mutant(
        "the output a row further",
        re.compile(r"(st\.global\.b32\s+\[%rd\d+)\+1280"),
        r"\1+1440",
        "overwrites another row",
        WRONG,
    ),
    Mutant(
        "the output is the input too",
        re.compile(r"_param_1(\];\s*cvta[^;]*;\s*cvta)"),
        r"_param_0\1",
        "moves about what was in the output before",
        WRONG,
    ),
)

KERNEL = Kernel("transpose", text, run, MUTANTS)
