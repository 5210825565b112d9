"""A GEMM by the schedule `persistent`, in a cluster that loads operand B together; its mutants.

Two CTAs compute two tiles of 64 rows each, one after another: three iterations of k through rings
of two stages that share their barriers, and a ring of one stage from which TMA stores while the
next tile is multiplied. The patterns name instructions and their order, not registers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import lego_mlir as lg
from lego_mlir.artifact import Artifact
from lego_mlir.runtime import launch
from lego_mlir.runtime.simulator import Simulator
from mutants.attention import DONE, WAIT, nth
from mutants.mutant import (
    DEADLOCK,
    EXIT,
    FENCE,
    RACE,
    TOO_MANY,
    UNWRITTEN,
    WRONG,
    Kernel,
    Mutant,
)

M, N, K = 256, 64, 192
A, B, C = (lg.Tensor["f16", shape, 16] for shape in ((M, K), (K, N), (M, N)))


@cache
def _artifact() -> Artifact:
    params = {"ctas": 2, "cluster": 2, "stages": 2, "raster_group": 2, "store_stages": 1}

    @lg.kernel(grid=(1, M // 64), warps=4, schedule="persistent", params=params)
    def gemm(a: A, b: B, c: C) -> None:
        i = lg.block_id("y")

        @lg.fold(K // 64, lg.zeros((64, 64), "f32"))
        def sums(step: Any, sums: Any) -> Any:
            return lg.dot(a.tile(64, 64)[i, step], b.tile(64, 64)[step, 0], sums)

        c.tile(64, 64)[i, 0] = sums.to("f16")

    return gemm.compile("sm_90a")


def text() -> str:
    """The PTX, without what a debugger reads."""
    return re.sub(r"^\s*\.(loc|file|section)\b.*\n", "", _artifact().ptx, flags=re.M)


def run(ptx: str, data: int, *, order: str = "late", seed: int = 0) -> bool:
    random = np.random.default_rng(data)
    a = random.standard_normal((M, K)).astype(np.float16)
    b = random.standard_normal((K, N)).astype(np.float16)
    c = np.full((M, N), np.nan, np.float16)
    launch(
        replace(_artifact(), ptx=ptx, cubin=None), a, b, c, device=Simulator(order=(order, seed))
    )
    return bool(np.allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=5e-2))


def _waits(name: str, n: int, gpu: str, late: str, early: str | None = None) -> Mutant:
    return Mutant(name, nth(WAIT, n), rf"\1{DONE}", gpu, late, early)


MUTANTS = (
    _waits(
        "a tile is put where one is still stored", 4, "stores parts of two tiles", RACE, DEADLOCK
    ),
    _waits("no wait for the first tiles", 0, "multiplies what TMA has not brought", UNWRITTEN),
    _waits("no wait for later tiles", 2, "multiplies what TMA has not brought", UNWRITTEN),
    _waits("tiles come into a stage that is read", 5, "overwrites A and B", TOO_MANY, RACE),
    _waits("a tile is stored before it is put", 6, "stores what was there before", UNWRITTEN, RACE),
    Mutant(
        "what is put is not visible to TMA",
        re.compile(r"fence\.proxy\.async\.shared::cta;"),
        "",
        "stores what was there before",
        FENCE,
        times=2,
    ),
    Mutant(
        "a stage is released while TMA reads it",
        re.compile(r"cp\.async\.bulk\.wait_group\.read \t?0;"),
        "",
        "stores parts of two tiles",
        EXIT,
        RACE,
    ),
    Mutant(
        "the store is in no group",
        re.compile(r"cp\.async\.bulk\.commit_group;"),
        "",
        "the wait is for nothing",
        EXIT,
        RACE,
    ),
    Mutant(
        "one warp's part is enough",
        re.compile(r"mov\.b32 \t(%r\d+), 4;(\s+mbarrier\.init)"),
        r"mov.b32 \t\1, 1;\2",
        "stores before all warps have put their parts",
        DEADLOCK,
    ),
    Mutant(
        "CTAs do not wait for each other's barriers",
        nth(r"barrier\.cluster\.wait\.aligned;", 0),
        r"\1",
        "copies to a CTA whose barriers are none yet",
        RACE,
    ),
    Mutant(
        "a CTA ends while the other arrives at its barriers",
        re.compile(
            r"barrier\.cluster\.arrive\.aligned;\s+barrier\.cluster\.wait\.aligned;(?=\s+ret)"
        ),
        "",
        "arrives in memory that is another CTA's",
        "may exit while mbarrier.arrive",
    ),
    Mutant(
        "a stage is empty when its own CTA has released it",
        re.compile(r"mov\.b32 \t(%r\d+), 2;(\s+mbarrier\.init)"),
        r"mov.b32 \t\1, 1;\2",
        "overwrites what the other CTA reads",
        DEADLOCK,
    ),
    Mutant(
        "B goes to one CTA only",
        re.compile(r"mov\.b16 \t(%rs\d+), 3;"),
        r"mov.b16 \t\1, 1;",
        "waits for ever",
        DEADLOCK,
    ),
    Mutant(
        "both CTAs copy the same rows of B",
        re.compile(r"selp\.b64 \t(%rd\d+), 0, 32, (%p\d+);"),
        r"selp.b64 \t\1, 0, 0, \2;",
        "multiplies the same rows of B twice",
        WRONG,
    ),
    Mutant(
        "the other CTA is not told of a release",
        nth(r"mbarrier\.arrive\.shared::cluster\.b64[^;]*;", 1),
        r"\1",
        "waits for ever",
        DEADLOCK,
    ),
    Mutant(
        "the count of tiles begins anew",
        re.compile(r"(?s)\A(.*mul\.lo\.s32 \t)(%r\d+), %r\d+, 3;"),
        r"\1\2, 0, 0;",
        "waits for the phase of a tile before",
        TOO_MANY,
        DEADLOCK,
    ),
)

KERNEL = Kernel("persistent", text, run, MUTANTS)
