"""Two CTAs that add up rows through each other's shared memory, in a loop; its mutants.

Each warp sends half of its row to the other CTA in each of nine iterations, of which two rooms and
two barriers take turns: so many that no loop is unrolled. The patterns name instructions and their
order, not registers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np

import lego_mlir as lg
from lego_mlir.artifact import Artifact
from lego_mlir.runtime import launch
from lego_mlir.runtime.simulator import Simulator
from mutants.attention import nth, waits
from mutants.mutant import DEADLOCK, RACE, RIGHT, TOO_MANY, UNWRITTEN, Kernel, Mutant

ROWS, COLUMNS = 9, 128
X, Y = (lg.Tensor["f32", shape] for shape in ((ROWS, 2, COLUMNS), (ROWS, COLUMNS)))

_SEND = r"st\.async[^;]*;"
_ARRIVE = r"mbarrier\.arrive\.shared::cluster\.b64[^;]*;"
_EXPECT = r"mbarrier\.arrive\.expect_tx\.shared\.b64[^;]*;"


@cache
def _artifact() -> Artifact:
    @lg.kernel(grid=2, warps=1, cluster=2, own_programs=True)
    def sums(x: X, y: Y) -> None:
        for i in lg.loop(ROWS):
            row = x.tile(1, 1, COLUMNS)[i, lg.cta_rank(), 0].reshape(1, COLUMNS)
            y.tile(1, COLUMNS // 2)[i, lg.cta_rank()] = lg.reduce_scatter(row)

    return sums.compile("sm_90a")


def text() -> str:
    """The PTX, without what a debugger reads."""
    return re.sub(r"^\s*\.(loc|file|section)\b.*\n", "", _artifact().ptx, flags=re.M)


def run(ptx: str, data: int, *, order: str = "late", seed: int = 0) -> bool:
    x = np.random.default_rng(data).standard_normal((ROWS, 2, COLUMNS)).astype(np.float32)
    y = np.full((ROWS, COLUMNS), np.nan, np.float32)
    launch(replace(_artifact(), ptx=ptx, cubin=None), x, y, device=Simulator(order=(order, seed)))
    return bool((y == x.sum(axis=1)).all())


MUTANTS = (
    waits("no wait for what the other CTA sends", 0, "adds what was there before", UNWRITTEN, RACE),
    Mutant(
        "waits for the phase of two iterations ago",
        re.compile(r"bfe\.u32 \t(%r\d+), %r\d+, 1, 1;"),
        r"mov.b32 \t\1, 0;",
        "adds what was there before",
        TOO_MANY,
        DEADLOCK,
    ),
    Mutant(
        "no wait for the other CTA's barriers",
        re.compile(r"barrier\.cluster\.(?:arrive\.relaxed|wait)\.aligned;"),
        "",
        "sends to a CTA whose barriers are none yet",
        RACE,
        times=2,
    ),
    Mutant(
        "the barrier expects fewer bytes",
        re.compile(r"mov\.b32 \t(%r\d+), 256;"),
        r"mov.b32 \t\1, 128;",
        "counts bytes that it does not expect",
        DEADLOCK,
    ),
    Mutant(
        "the barrier expects more bytes",
        re.compile(r"mov\.b32 \t(%r\d+), 256;"),
        r"mov.b32 \t\1, 512;",
        "waits for ever",
        DEADLOCK,
    ),
    Mutant("nobody expects bytes", nth(_EXPECT, 0), r"\1", "waits for ever", DEADLOCK),
    Mutant("senders do not arrive", re.compile(_ARRIVE), "", "waits for ever", DEADLOCK, times=2),
    Mutant(
        "who sends counts for nobody",
        re.compile(r"mov\.b32 \t(%r\d+), 33;"),
        r"mov.b32 \t\1, 1;",
        "sends into a room that is read",
        TOO_MANY,
        RIGHT,
    ),
    Mutant("one row is not sent", nth(_SEND, 0), r"\1", "waits for ever", DEADLOCK),
    Mutant(
        "a CTA sends to itself",
        re.compile(r"mov\.b32 \t(%r\d+), 1;(\s+// begin inline asm\s+mapa)"),
        r"mov.b32 \t\1, 0;\2",
        "adds its own half",
        TOO_MANY,
        RACE,
    ),
    Mutant(
        "both iterations have one room",
        re.compile(r"shl\.b32 \t(%r\d+), (%r\d+), 8;"),
        r"mov.b32 \t\1, 0;",
        "sends into a room that is read",
        RACE,
    ),
    Mutant(
        "both rooms have one barrier",
        re.compile(r"shl\.b32 \t(%r\d+), (%r\d+), 3;(\s+add\.s32 \t%r\d+, %r\d+, \1;)"),
        r"mov.b32 \t\1, 0;\3",
        "waits for the iteration before",
        TOO_MANY,
        DEADLOCK,
    ),
)

KERNEL = Kernel("cluster", text, run, MUTANTS)
