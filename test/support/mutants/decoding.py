"""Decoding from pages: keys are appended, two CTAs share those of a sequence; and its mutants.

Three kernels, of which each may begin before the one ahead of it ends: keys and values are
appended, seen by queries through rings of two stages, and the results of two splits are combined.
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
from mutants.attention import nth, waits
from mutants.mutant import DEADLOCK, FENCE, IN_FLIGHT, RACE, TOO_MANY, UNWRITTEN, Kernel, Mutant

BATCH, QUERIES, PAGE, EACH, HEADS, DEPTH = 1, 2, 64, 6, 4, 32
LENGTH = PAGE * EACH - 10


@cache
def _artifact() -> Artifact:
    config = AttentionConfig(64, PAGE, 4, packed=True, splits=2, schedule="pipelined")
    return attention(
        BATCH, QUERIES, PAGE * EACH, HEADS, DEPTH, heads_kv=1, lengths=True, append=True,
        page_size=PAGE, pages=EACH, config=config, target="sm_90a",
    ).compile()  # fmt: skip


def text() -> str:
    """The PTX, without what a debugger reads."""
    return re.sub(r"^\s*\.(loc|file|section)\b.*\n", "", _artifact().ptx, flags=re.M)


def run(ptx: str, data: int, *, order: str = "late", seed: int = 0) -> bool:
    q = drawn(BATCH, QUERIES, HEADS, DEPTH, seed=data)
    k, v = (drawn(EACH, PAGE, 1, DEPTH, seed=data + n) for n in (1, 2))
    fresh = [drawn(BATCH, QUERIES, 1, DEPTH, seed=data + n) for n in (3, 4)]
    pages = np.random.default_rng(data).permutation(EACH).astype(np.int32)[None]
    whole = [x[pages].reshape(BATCH, PAGE * EACH, 1, DEPTH).copy() for x in (k, v)]
    for old, new in zip(whole, fresh, strict=True):
        old[:, LENGTH - QUERIES : LENGTH] = new
    lengths = np.array([LENGTH], np.int32)
    o = np.full_like(q, np.nan)
    artifact = replace(_artifact(), ptx=ptx, cubin=None)
    given = q, k, v, *fresh, lengths, pages, o
    launch(artifact, *given, device=Simulator(order=(order, seed)))
    truth, _ = reference(q, *whole, mask=lambda b, h, i, j: j < LENGTH)
    return bool(np.allclose(o, truth, atol=3e-3))


SCORES, VALUES = "m64n64k16", "m64n32k16"
"""The products of queries and keys, and of exponentials and values."""


def behind(shape: str, instruction: str) -> re.Pattern[str]:
    """Return a pattern of what follows a product; group 1 is the text before it."""
    return re.compile(rf"(?s)({shape}(?:(?!wgmma\.mma).)*?){instruction}")


MUTANTS = (
    waits("no wait for keys", 0, "multiplies what TMA has not brought", UNWRITTEN),
    waits("no wait for values", 1, "multiplies what TMA has not brought", UNWRITTEN),
    waits("keys come into a stage that is read", 2, "overwrites keys", TOO_MANY, RACE),
    waits("values come into a stage that is read", 3, "overwrites values", TOO_MANY, RACE),
    Mutant(
        "no barrier behind the initialization",
        nth(r"bar\.sync[^;]*;", 0),
        r"\1",
        "waits at barriers that are none yet",
        RACE,
    ),
    Mutant(
        "no barrier behind the queries",
        nth(r"bar\.sync[^;]*;", 1),
        r"\1",
        "multiplies what was there before the queries of other warps",
        RACE,
    ),
    Mutant(
        "no barrier before results leave shared memory",
        nth(r"bar\.sync[^;]*;", 2),
        r"\1",
        "stores what other warps have not written",
        RACE,
    ),
    Mutant(
        "queries are not visible to wgmma",
        re.compile(r"fence\.proxy\.async\.shared::cta;"),
        "",
        "multiplies what was there before the queries",
        FENCE,
    ),
    Mutant(
        "scores are read early",
        behind(SCORES, r"wgmma\.wait_group\.sync\.aligned 0;"),
        r"\1wgmma.wait_group.sync.aligned 1;",
        "reads accumulators that are not complete",
        IN_FLIGHT,
    ),
    Mutant(
        "values are released early",
        behind(VALUES, r"wgmma\.wait_group\.sync\.aligned 0;"),
        r"\1wgmma.wait_group.sync.aligned 1;",
        "overwrites values that are multiplied",
        RACE,
    ),
    Mutant(
        "no fence before products of keys",
        re.compile(rf"(?s)wgmma\.fence\.sync\.aligned;((?:(?!wgmma\.).)*?wgmma\.mma\S*{SCORES})"),
        r"\1",
        "multiplies registers that are not written yet",
        "without a wgmma.fence before it",
    ),
    Mutant(
        "scores are not committed",
        behind(SCORES, r"wgmma\.commit_group\.sync\.aligned;"),
        r"\1",
        "waits for fewer products than there are",
        IN_FLIGHT,
    ),
    Mutant(
        "keys are not released",
        nth(r"mbarrier\.arrive\.shared\.b64 \t", 0),
        r"\1// ",
        "waits for ever",
        DEADLOCK,
    ),
)

KERNEL = Kernel("decoding", text, run, MUTANTS)
