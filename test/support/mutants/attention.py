"""Attention by the schedule of that name: rings of keys and values, roles, turns; and its mutants.

Three tiles of keys pass through rings of two stages, which a producer fills by TMA. Two warpgroups
take turns. The patterns name instructions and their order, not registers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
from attention_reference import drawn, reference

from lego_mlir.artifact import Artifact
from lego_mlir.kernels import AttentionConfig, attention
from lego_mlir.runtime import launch
from lego_mlir.runtime.simulator import Simulator
from mutants.mutant import (
    DEADLOCK,
    EXIT,
    FENCE,
    IN_FLIGHT,
    RACE,
    TOO_MANY,
    UNWRITTEN,
    WRONG,
    Kernel,
    Mutant,
)

QUERIES, KEYS, DEPTH, COLUMNS = 128, 96, 32, 32


@cache
def _artifact() -> Artifact:
    config = AttentionConfig(QUERIES, COLUMNS, 8, schedule="attention")
    return attention(1, QUERIES, KEYS, 1, DEPTH, config=config, target="sm_90a").compile()


def text() -> str:
    """The PTX, without what a debugger reads."""
    return re.sub(r"^\s*\.(loc|file|section)\b.*\n", "", _artifact().ptx, flags=re.M)


def run(ptx: str, data: int, *, order: str = "late", seed: int = 0) -> bool:
    sizes = enumerate((QUERIES, KEYS, KEYS))
    q, k, v = (drawn(1, n, 1, DEPTH, seed=3 * data + i) for i, n in sizes)
    k[:, KEYS // 3 :] *= 6  # scores grow, so that rows get another base
    o = np.full_like(q, np.nan)
    artifact = replace(_artifact(), ptx=ptx, cubin=None)
    launch(artifact, q, k, v, o, device=Simulator(order=(order, seed)))
    return bool(np.allclose(o, reference(q, k, v)[0], atol=3e-3))


def nth(pattern: str, n: int) -> re.Pattern[str]:
    """Return a pattern of the nth occurrence; group 1 is the text before it."""
    return re.compile(rf"(?s)\A((?:.*?(?:{pattern})){{{n}}}.*?)(?:{pattern})")


WAIT = r"mbarrier\.try_wait\.parity\.shared\.b64 P1, \[%r\d+\], [^,]+, 10000000;"
DONE = "setp.eq.u32 P1, 0, 0;"


def waits(name: str, n: int, gpu: str, late: str, early: str | None = None) -> Mutant:
    return Mutant(name, nth(WAIT, n), rf"\1{DONE}", gpu, late, early)


MUTANTS = (
    waits("no wait for the first keys", 0, "multiplies what TMA has not brought", UNWRITTEN),
    waits("no wait for keys", 1, "multiplies what TMA has not brought", UNWRITTEN),
    waits("no wait for values", 2, "multiplies what TMA has not brought", UNWRITTEN, RACE),
    waits("no wait for the last values", 3, "multiplies what TMA has not brought", EXIT, DEADLOCK),
    waits("keys come into a stage that is read", 4, "overwrites keys", TOO_MANY, RACE),
    waits("values come into a stage that is read", 5, "overwrites values", TOO_MANY, RACE),
    Mutant("no first turn", re.compile(r"bar\.arrive 2, 256;"), "", "waits for ever", DEADLOCK),
    Mutant(
        "no turn is given on",
        re.compile(r"bar\.arrive %r\d+, 256;"),
        "",
        "waits for ever",
        DEADLOCK,
    ),
    Mutant(
        "queries are not visible to wgmma",
        re.compile(r"fence\.proxy\.async\.shared::cta;"),
        "",
        "multiplies what was there before the queries",
        FENCE,
    ),
    Mutant(
        "no barrier behind the queries",
        nth(r"bar\.sync \t?1, 256;", 0),
        r"\1",
        "multiplies what was there before the queries of other warps",
        RACE,
    ),
    Mutant(
        "no barrier behind the initialization",
        re.compile(r"bar\.sync \t?0;"),
        "",
        "waits at barriers that are none yet",
        RACE,
    ),
    Mutant(
        "scores are read early",
        re.compile(r"wait_group\.sync\.aligned 1;"),
        "wait_group.sync.aligned 2;",
        "reads accumulators that are not complete",
        IN_FLIGHT,
    ),
    Mutant(
        "sums are read early",
        nth(r"wait_group\.sync\.aligned 0;", 1),
        r"\1wait_group.sync.aligned 1;",
        "overwrites probabilities that are multiplied",
        IN_FLIGHT,
    ),
    Mutant(
        "the last sums are read early",
        nth(r"wait_group\.sync\.aligned 0;", 2),
        r"\1wait_group.sync.aligned 1;",
        "reads accumulators that are not complete",
        IN_FLIGHT,
    ),
    Mutant(
        "scores are not committed",
        nth(r"wgmma\.commit_group\.sync\.aligned;", 1),
        r"\1",
        "waits for fewer products than there are",
        IN_FLIGHT,
    ),
    Mutant(
        "no fence before the first product",
        nth(r"wgmma\.fence\.sync\.aligned;", 0),
        r"\1",
        "multiplies registers that are not written yet",
        "without a wgmma.fence before it",
    ),
    Mutant(
        "a base stays although scores of some lanes have grown",
        nth(r"vote\.sync\.any\.pred", 1),
        r"\1vote.sync.all.pred",
        "exponentials overflow",
        WRONG,
    ),
    Mutant(
        "one warp releases a stage",
        re.compile(r"mov\.b32 \t(%r\d+), 2;(\s+mbarrier\.init)"),
        r"mov.b32 \t\1, 1;\2",
        "overwrites what other warps read",
        DEADLOCK,
    ),
    Mutant(
        "the producer keeps its registers",
        re.compile(r"setmaxnreg\.dec[^;]*;"),
        "",
        "waits for registers",
        DEADLOCK,
    ),
)

KERNEL = Kernel("attention", text, run, MUTANTS)
