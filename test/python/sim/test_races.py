"""Which accesses of shared memory race, and what is said of those that do.

Every way of ordering two accesses stands here once where it is right, in all orders of execution,
and broken in each way that leaves the two unordered.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError
from lego_mlir.sim import clocks, shadow

HEAD = """
    .reg .pred %p, %q, %first, %low;
    .reg .b64 %o, %i, %g, %d, %e;
    .reg .b32 %t, %w, %x, %y, %n, %mine, %next, %across, %rank, %there, %bar;
    .reg .f32 %c<4>;
    .shared .align 1024 .b8 tile[4096];
    .shared .align 8 .b64 bar;
    .shared .align 8 .b64 bar2;
    .shared .align 4 .b8 flag[4];
    ld.param.u64 %o, [o];
    ld.param.u64 %i, [in];
    mov.u32 %t, %tid.x;
    shr.u32 %w, %t, 5;                          // the warp
    setp.eq.u32 %first, %t, 0;
    setp.lt.u32 %low, %t, 32;
    mov.u32 %mine, tile;
    mad.lo.u32 %mine, %t, 4, %mine;             // a word for each thread
    xor.b32 %next, %mine, 4;                    // that of a thread of the same warp
    xor.b32 %across, %mine, 128;                // that of a thread of another one
    mad.wide.u32 %g, %t, 4, %i;
    mov.u32 %rank, %cluster_ctarank;
    xor.b32 %rank, %rank, 1;
"""
BLANK = """
    st.shared.b32 [%mine], 0;
    st.shared.b32 [%mine+1024], 0;
    @%first st.shared.b32 [flag], 0;
    bar.sync 0;
"""
SHOWN = BLANK.replace("bar.sync", "fence.proxy.async; bar.sync")
WAIT = """
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra WAIT;
"""
MEET = """
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
"""
RELAXED = MEET.replace("release", "relaxed")
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;"
REMOTE = """
    mapa.shared::cluster.u32 %there, %mine, %rank;
    mov.u32 %bar, bar;
    mapa.shared::cluster.u32 %bar, %bar, %rank;
"""
STORE = """
    @%first cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
"""
DESCRIPTORS = """
    mov.u32 %x, tile;
    shr.u32 %x, %x, 4;
    cvt.u64.u32 %d, %x;
    or.b64 %d, %d, 0x0000000800100000;
"""
PRODUCT = """
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0, %c1, %c2, %c3}, %d, %d, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
"""


def made(count: int) -> str:
    return f"""
    @!%first bra MADE;
    mbarrier.init.shared.b64 [bar], {count};
    mbarrier.init.shared.b64 [bar2], 1;
    fence.mbarrier_init.release.cluster;
MADE:
    bar.sync 0;                                 // after its making
"""


@dataclass
class Case:
    """A program without a race, and how to break it.

    Attributes:
        wrong: name → (what is replaced, by what, and text of the two lines that then race or lack
            a proxy fence, the later one first where that is so in every order).
        options: of the launch.
    """

    body: str
    wrong: dict[str, tuple[str, ...]]
    options: dict[str, Any] = field(default_factory=dict)


PAIR = {"grid": (4, 1, 1), "cluster": (2, 1, 1)}
CASES: dict[str, Case] = {}

CASES["bar.sync"] = Case(
    f"""{BLANK}
    st.shared.b32 [%mine], 1;
    bar.sync 1;
    ld.shared.b32 %x, [%across];
    """,
    {
        "none": ("bar.sync 1;", "", "[%mine], 1", "[%across]"),
        "of the warp only": ("bar.sync 1;", "bar.warp.sync -1;", "[%mine], 1", "[%across]"),
        "of each warp": (
            "bar.sync 1;",
            "add.u32 %n, %w, 1; bar.sync %n, 32;",
            "[%mine], 1",
            "[%across]",
        ),
    },
)
CASES["bar.sync before a write"] = Case(
    f"""{BLANK}
    ld.shared.b32 %x, [%across];
    bar.sync 1;
    st.shared.b32 [%mine], 1;
    """,
    {"none": ("bar.sync 1;", "", "[%mine], 1", "[%across]")},
)
CASES["named barriers of two warps"] = Case(
    f"""{BLANK}
    shr.u32 %n, %w, 1;
    add.u32 %n, %n, 1;
    st.shared.b32 [%mine], 1;
    bar.sync %n, 64;
    ld.shared.b32 %x, [%across];
    """,
    {"of other pairs": ("shr.u32 %n, %w, 1", "and.b32 %n, %w, 1", "[%mine], 1", "[%across]")},
    {"block": (128, 1, 1)},
)
CASES["bar.red"] = Case(
    f"""{BLANK}
    st.shared.b32 [%mine], 1;
    bar.red.popc.u32 %x, 1, %first;
    ld.shared.b32 %x, [%across];
    """,
    {
        "a vote": (
            "bar.red.popc.u32 %x, 1, %first;",
            "vote.sync.ballot.b32 %x, %first, -1;",
            "[%mine], 1",
            "[%across]",
        )
    },
)
CASES["bar.arrive"] = Case(
    f"""{BLANK}
    @!%low bra LISTEN;
    st.shared.b32 [%mine], 1;
    bar.arrive 1, 64;
    st.shared.b32 [%mine+1024], 1;
    bra.uni OUT;
LISTEN:
    st.shared.b32 [%mine+1024], 4;
    bar.sync 1, 64;
    ld.shared.b32 %x, [%across];
    st.shared.b32 [%across], 2;
OUT:
    """,
    {
        "a store after the arrival": ("[%mine+1024], 1", "[%mine], 3", "[%mine], 3", "[%across]"),
        "who arrives learns nothing": (
            "st.shared.b32 [%mine+1024], 1;",
            "ld.shared.b32 %x, [%across+1024];",
            "%x, [%across+1024]",
            "st.shared.b32 [%mine+1024], 4;",
        ),
    },
)
CASES["bar.warp.sync"] = Case(
    f"""{BLANK}
    st.shared.b32 [%mine], 1;
    bar.warp.sync -1;
    ld.shared.b32 %x, [%next];
    """,
    {
        "none": ("bar.warp.sync -1;", "", "[%mine], 1", "[%next]"),
        "of even and of odd lanes": (
            "bar.warp.sync -1;",
            "and.b32 %n, %t, 1; shl.b32 %n, 0x55555555, %n; bar.warp.sync %n;",
            "[%mine], 1",
            "[%next]",
        ),
        "a shuffle": (
            "bar.warp.sync -1;",
            "shfl.sync.bfly.b32 %x, %t, 1, 31, -1;",
            "[%mine], 1",
            "[%next]",
        ),
    },
)
CASES["halves of a warp"] = Case(
    f"""{BLANK}
    and.b32 %n, %t, 16;
    shl.b32 %n, 0xffff, %n;
    st.shared.b32 [%mine], 1;
    bar.warp.sync %n;
    xor.b32 %y, %mine, 4;
    ld.shared.b32 %x, [%y];
    """,
    {"the other half": ("xor.b32 %y, %mine, 4;", "xor.b32 %y, %mine, 64;", "[%mine], 1", "[%y]")},
)
CASES["mbarrier"] = Case(
    f"""{BLANK}{made(64)}
    st.shared.b32 [%mine], 1;
    mbarrier.arrive.shared.b64 _, [bar];
    {WAIT}
    ld.shared.b32 %x, [%across];
    """,
    {
        "nobody waits": (WAIT, "", "[%mine], 1", "[%across]"),
        "a store after the arrival": (
            "_, [bar];",
            "_, [bar];\n st.shared.b32 [%mine], 7;",
            "[%mine], 7",
            "[%across]",
        ),
        "not made yet": (
            "bar.sync 0;                                 // after its making",
            "",
            "mbarrier.",
        ),
    },
)
CASES["an arrival for a warp"] = Case(
    f"""{BLANK}{made(2)}
    st.shared.b32 [%mine], 1;
    bar.warp.sync -1;
    elect.sync _|%q, -1;
    @%q mbarrier.arrive.shared.b64 _, [bar];
    {WAIT}
    ld.shared.b32 %x, [%across];
    """,
    {"its lanes do not meet": ("bar.warp.sync -1;", "", "[%mine], 1", "[%across]")},
)
CASES["cp.async"] = Case(
    f"""{BLANK}
    cp.async.ca.shared.global [%mine], [%g], 4;
    cp.async.wait_all;
    ld.shared.b32 %y, [%mine];
    bar.sync 1;
    ld.shared.b32 %x, [%across];
    """,
    {
        "no barrier": ("bar.sync 1;", "", "cp.async.ca", "[%across]"),
        "no wait": ("cp.async.wait_all;", "", "cp.async.ca", "ld.shared"),
        "the barrier first": (
            "cp.async.wait_all;\n    ld.shared.b32 %y, [%mine];\n    bar.sync 1;",
            "bar.sync 1;\n    cp.async.wait_all;",
            "cp.async.ca",
            "[%across]",
        ),
        "its group is open": ("wait_all", "wait_group 0", "cp.async.ca", "ld.shared"),
    },
)
CASES["cp.async for the thread itself"] = Case(
    f"""{BLANK}
    cp.async.ca.shared.global [%mine], [%g], 4;
    cp.async.wait_all;
    ld.shared.b32 %y, [%mine];
    st.shared.b32 [%mine], 3;
    """,
    {
        "no wait": ("cp.async.wait_all;", "", "cp.async.ca", "[%mine]"),
        "a store before the wait": (
            "cp.async.wait_all;",
            "st.shared.b32 [%mine], 5;\n    cp.async.wait_all;",
            "cp.async.ca",
            "[%mine], 5",
        ),
    },
)
CASES["cp.async over what others read"] = Case(
    f"""{BLANK}
    ld.shared.b32 %y, [%next];
    bar.sync 1;
    cp.async.ca.shared.global [%mine], [%g], 4;
    """,
    {"no barrier": ("bar.sync 1;", "", "cp.async.ca", "[%next]")},
)
CASES["groups of copies"] = Case(
    f"""{BLANK}
    cp.async.ca.shared.global [%mine], [%g], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%mine+1024], [%g], 4;
    cp.async.commit_group;
    cp.async.wait_group 1;
    bar.sync 1;
    ld.shared.b32 %x, [%across];
    """,
    {
        "one too few": ("wait_group 1", "wait_group 2", "[%mine], [%g]", "[%across]"),
        "the newest": ("%x, [%across]", "%x, [%across+1024]", "[%mine+1024], ", "[%across+1024]"),
    },
)
CASES["cp.async.mbarrier.arrive"] = Case(
    f"""{BLANK}{made(64)}
    cp.async.ca.shared.global [%mine], [%g], 4;
    cp.async.ca.shared.global [%mine+1024], [%g], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    {WAIT}
    ld.shared.b32 %x, [%across+1024];
    """,
    {
        "nobody waits": (WAIT, "", "cp.async.ca", "[%across+1024]"),
        "a plain arrival": (
            "cp.async.mbarrier.arrive.noinc.shared.b64 [bar]",
            "mbarrier.arrive.shared.b64 _, [bar]",
            "cp.async.ca",
            "[%across+1024]",
        ),
        "a copy after it": (
            "cp.async.ca.shared.global [%mine+1024], [%g], 4;\n"
            "    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];",
            "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
            "    cp.async.ca.shared.global [%mine+1024], [%g], 4;",
            "cp.async.ca.shared.global [%mine+1024]",
            "[%across+1024]",
        ),
    },
)
CASES["a bulk load"] = Case(
    f"""{SHOWN}{made(1)}
    @%first {EXPECT}
    @%first {LOAD} [tile], [%i], 256, [bar];
    {WAIT}
    ld.shared.b32 %x, [%across];
    bar.sync 1;
    @%first {EXPECT.replace("[bar]", "[bar2]")}
    @%first {LOAD} [tile], [%i+256], 256, [bar2];
    {WAIT.replace("WAIT", "LAST").replace("[bar]", "[bar2]")}
    """,
    {
        "the wait too late": (
            f"{WAIT}\n    ld.shared.b32 %x, [%across];",
            f"ld.shared.b32 %x, [%across];\n{WAIT}",
            "[tile], [%i], 256",
            "[%across]",
        ),
        "read meanwhile": ("bar.sync 1;", "", "[tile], [%i+256]", "[%across]"),
        "a mbarrier without a fence": (
            "fence.mbarrier_init.release.cluster;",
            "",
            "[tile], [%i], 256",
        ),
        "a write before": (
            "@!%first bra MADE;",
            "st.shared.b32 [%mine], 5; @!%first bra MADE;",
            "[tile], [%i], 256",
            "[%mine], 5",
        ),
    },
)
CASES["a bulk store"] = Case(
    f"""{SHOWN}
    st.shared.b32 [%mine], 1;
    fence.proxy.async.shared::cta;
    bar.sync 1;
    {STORE}
    bar.sync 2;
    st.shared.b32 [%mine], 2;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    """,
    {
        "no barrier before": ("bar.sync 1;", "", "[%o], [tile]", "[%mine], 1"),
        "no wait": ("cp.async.bulk.wait_group.read 0;", "", "[%mine], 2", "[%o], [tile]"),
        "one group may stay": ("group.read 0", "group.read 1", "[%mine], 2", "[%o], [tile]"),
        "it is in no group": (
            "commit_group;\n    cp.async.bulk.wait_group.read",
            "wait_group.read",
            "[%mine], 2",
            "[%o], [tile]",
        ),
        "no barrier after": ("bar.sync 2;", "", "[%mine], 2", "[%o], [tile]"),
        "no fence": ("fence.proxy.async.shared::cta;", "", "[%o], [tile]", "[%mine], 1"),
        "a fence for global memory": (
            "async.shared::cta",
            "async.global",
            "[%o], [tile]",
            "[%mine], 1",
        ),
        "a fence before the write": (
            "st.shared.b32 [%mine], 1;\n    fence.proxy.async.shared::cta;",
            "fence.proxy.async.shared::cta;\n    st.shared.b32 [%mine], 1;",
            "[%o], [tile]",
            "[%mine], 1",
        ),
        "a fence that orders threads": (
            "fence.proxy.async.shared::cta;",
            "fence.acq_rel.cta;",
            "[%o], [tile]",
            "[%mine], 1",
        ),
    },
)
CASES["a fence by who issues"] = Case(
    f"""
    st.shared.b32 [%mine], 1;
    bar.sync 0;
    @%first fence.proxy.async;
    {STORE}
    """,
    {"by others": ("@%first fence", "@!%first fence", "[%o], [tile]", "[%mine], 1")},
)
CASES["a fence by one between"] = Case(
    f"""
    setp.eq.u32 %q, %t, 40;
    st.shared.b32 [%mine], 1;
    bar.sync 0;
    @%q fence.proxy.async;
    bar.sync 1;
    {STORE}
    """,
    {
        "too early": (
            "bar.sync 0;\n    @%q fence.proxy.async;",
            "@%q fence.proxy.async;\n    bar.sync 0;",
            "[%o], [tile]",
            "[%mine], 1",
        ),
        "too late": (
            "@%q fence.proxy.async;\n    bar.sync 1;",
            "bar.sync 1;\n    @%q fence.proxy.async;",
            "[%o], [tile]",
            "[%mine], 1",
        ),
    },
)
CASES["cp.async before a bulk store"] = Case(
    f"""
    cp.async.ca.shared.global [%mine], [%g], 4;
    cp.async.wait_all;
    fence.proxy.async;
    bar.sync 0;
    {STORE}
    """,
    {
        "no fence": ("fence.proxy.async;", "", "[%o], [tile]", "cp.async.ca"),
        "a fence before the wait": (
            "cp.async.wait_all;\n    fence.proxy.async;",
            "fence.proxy.async;\n    cp.async.wait_all;",
            "[%o], [tile]",
            "cp.async.ca",
        ),
    },
)
CASES["wgmma beside another warpgroup"] = Case(
    f"""{DESCRIPTORS}
    st.shared.b32 [%mine], 1;
    st.shared.b32 [%mine+1024], 1;
    fence.proxy.async;
    bar.sync 0;
    setp.lt.u32 %q, %t, 128;
    @!%q bra OVER;
    {PRODUCT}
OVER:
    bar.sync 1;
    st.shared.b32 [%mine], 2;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    """,
    {
        "no fence": ("fence.proxy.async;", "", "wgmma.mma_async", "[%mine], 1"),
        "no wait": (
            "wgmma.wait_group.sync.aligned 0;\n\nOVER",
            "\nOVER",
            "wgmma.mma_async",
            "[%mine], 2",
        ),
        "in no group": (
            "wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n\nOVER",
            "wgmma.wait_group.sync.aligned 0;\n\nOVER",
            "wgmma.mma_async",
            "[%mine], 2",
        ),
        "no barrier": ("bar.sync 1;", "", "wgmma.mma_async", "[%mine], 2"),
    },
    {"block": (256, 1, 1)},
)
CASES["a warpgroup waits as one"] = Case(
    f"""{DESCRIPTORS}
    st.shared.b32 [%mine], 1;
    st.shared.b32 [%mine+512], 1;
    st.shared.b32 [%mine+1024], 1;
    fence.proxy.async;
    bar.sync 0;
    {PRODUCT}
    @%first st.shared.b32 [tile+8], 2;
    """,
    {
        "one does not": (
            "wgmma.wait_group.sync.aligned 0;\n\n    @%first st.shared.b32 [tile+8], 2;",
            "@%first st.shared.b32 [tile+8], 2;\n    wgmma.wait_group.sync.aligned 0;",
            "wgmma.mma_async",
            "+8], 2",
        )
    },
    {"block": (128, 1, 1)},
)
CASES["barrier.cluster"] = Case(
    f"""{BLANK}{REMOTE}{MEET}
    st.shared.b32 [%mine], 1;
    {MEET}
    ld.shared::cluster.b32 %x, [%there];
    {MEET}
    """,
    {
        "of the block only": (
            f"[%mine], 1;\n    {MEET}",
            "[%mine], 1;\n bar.sync 1;",
            "st.shared.b32 [%mine]",
            "[%there]",
        ),
        "relaxed": (
            f"[%mine], 1;\n    {MEET}",
            f"[%mine], 1;\n    {RELAXED}",
            "[%mine], 1",
            "[%there]",
        ),
        "a store after the arrival": (
            f"[%mine], 1;\n    {MEET}",
            "[%mine], 1;\n    "
            + MEET.replace("release.aligned;", "release; st.shared.b32 [%mine], 7;"),
            "[%mine], 7",
            "[%there]",
        ),
    },
    PAIR,
)
CASES["a relaxed arrival after a fence"] = Case(
    f"""{BLANK}{REMOTE}
    st.shared.b32 [%mine], 1;
    fence.acq_rel.cluster;
    {RELAXED}
    ld.shared::cluster.b32 %x, [%there];
    {MEET}
    """,
    {
        "a store between": (
            "fence.acq_rel.cluster;",
            "fence.acq_rel.cluster;\n st.shared.b32 [%mine], 7;",
            "[%mine], 7",
            "[%there]",
        )
    },
    PAIR,
)
CASES["st.async"] = Case(
    f"""{SHOWN}{made(1)}{REMOTE}
    @%first {EXPECT}
    {MEET}
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%there], %t, [%bar];
    {WAIT}
    ld.shared.b32 %x, [%across];
    {MEET}
    """,
    {
        "read once too often": (
            "st.async.weak",
            "ld.shared.b32 %y, [%next];\n    st.async.weak",
            "st.async",
            "%y, [%next]",
        )
    },
    PAIR,
)
CASES["a remote arrival"] = Case(
    f"""{BLANK}{made(64)}{REMOTE}
    {MEET}
    st.shared::cluster.b32 [%there], 1;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%bar];
    {WAIT}
    ld.shared.b32 %x, [%across];
    {MEET}
    """,
    {
        "before the store": (
            "st.shared::cluster.b32 [%there], 1;\n"
            "    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%bar];",
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%bar];\n"
            "    st.shared::cluster.b32 [%there], 1;",
            "[%there], 1",
            "[%across]",
        )
    },
    PAIR,
)
CASES["atomics"] = Case(
    f"""{BLANK}
    atom.shared.add.u32 %x, [tile], 1;
    red.shared.max.u32 [tile], %t;
    bar.sync 1;
    ld.shared.b32 %x, [tile];
    """,
    {
        "a load beside them": ("bar.sync 1;", "", "[tile]", "[tile]"),
        "a store beside them": (
            "red.shared.max.u32 [tile], %t;",
            "@%first st.shared.b32 [tile], %t;",
            "st.shared.b32 [tile]",
            "atom.shared",
        ),
    },
)
FLAG = f"""{BLANK}
    setp.eq.u32 %q, %t, 32;
    @%first bra TELL;
    @%q bra ASK;
    bra.uni OUT;
TELL:
    st.shared.b32 [tile], 5;
    FIRST
    bra.uni OUT;
ASK:
    SECOND
    setp.eq.u32 %p, %x, 0;
    @%p bra ASK;
    THIRD
    ld.shared.b32 %y, [tile];
OUT:
"""


def flag(first: str, second: str, third: str) -> str:
    return FLAG.replace("FIRST", first).replace("SECOND", second).replace("THIRD", third)


CASES["a flag"] = Case(
    flag("st.release.cta.shared.b32 [flag], 1;", "ld.acquire.cta.shared.b32 %x, [flag];", ""),
    {
        "told relaxed": ("st.release", "st.relaxed", "[tile], 5", "%y, [tile]"),
        "asked relaxed": ("ld.acquire", "ld.relaxed", "[tile], 5", "%y, [tile]"),
        "told too early": (
            "st.shared.b32 [tile], 5;\n    st.release.cta.shared.b32 [flag], 1;",
            "st.release.cta.shared.b32 [flag], 1;\n    st.shared.b32 [tile], 5;",
            "[tile], 5",
            "%y, [tile]",
        ),
        "told plainly": ("st.release.cta", "st", "[flag], 1", "[flag]"),
    },
)
CASES["a flag between fences"] = Case(
    flag(
        "fence.acq_rel.cta;\n    st.volatile.shared.b32 [flag], 1;",
        "atom.shared.or.b32 %x, [flag], 0;",
        "membar.cta;",
    ),
    {
        "none before": ("fence.acq_rel.cta;", "", "[tile], 5", "%y, [tile]"),
        "none after": ("membar.cta;", "", "[tile], 5", "%y, [tile]"),
        "one too early": (
            "st.shared.b32 [tile], 5;\n    fence.acq_rel.cta;",
            "fence.acq_rel.cta;\n    st.shared.b32 [tile], 5;",
            "[tile], 5",
            "%y, [tile]",
        ),
    },
)
CASES["threads that exit before a barrier"] = Case(
    f"""{BLANK}
    @!%low st.shared.b32 [%mine], 1;
    @!%low bra OUT;
    bar.sync 1;
    ld.shared.b32 %x, [%across];
OUT:
    """,
    {"none": ("bar.sync 1;", "", "[%mine], 1", "[%across]")},
)
CASES["one place, one instruction"] = Case(
    f"""{BLANK}
    @%low st.shared.b32 [tile], %t;
    """,
    {
        "of two warps": ("@%low st", "st", "[tile], %t", "[tile], %t"),
        "two instructions": (
            "@%low st.shared.b32 [tile], %t;",
            "@%first st.shared.b32 [tile], 1;\n @!%first st.shared.b32 [tile], %t;",
            "[tile], 1",
            "[tile], %t",
        ),
    },
)
CASES["bytes side by side"] = Case(
    f"""{BLANK}
    mov.u32 %n, tile;
    add.u32 %n, %n, %t;
    st.shared.b8 [%n], %t;
    bar.sync 1;
    ld.shared.v4.b32 {{%x, %x, %x, %y}}, [tile];
    """,
    {
        "as a vector": ("bar.sync 1;", "", "[%n]", "[tile]"),
        "of two warps": (
            "add.u32 %n, %n, %t;",
            "and.b32 %x, %t, 31; add.u32 %n, %n, %x;",
            "[%n]",
            "[%n]",
        ),
    },
)
CASES["a byte of what others have read"] = Case(
    f"""{BLANK}
    @%low ld.shared.v4.b32 {{%x, %x, %x, %y}}, [tile];
    bar.sync 1;
    setp.eq.u32 %q, %t, 40;
    @%q st.shared.b8 [tile+15], 1;
    """,
    {"none": ("bar.sync 1;", "", "v4.b32", "[tile+15]")},
)

WRONG = [(case, wrong) for case in CASES for wrong in CASES[case].wrong]
TWO = (("o", "u64"), ("in", "u64"))


def launch(run, case, body, order):
    arguments = [np.zeros(1024, "u4"), np.arange(1024, dtype="u4")]
    options = {"block": (64, 1, 1)} | CASES[case].options | order
    with tidy(order["seed"] % 2 == 1):
        run(HEAD + body, arguments, parameters=TWO, checks=True, **options)


@contextmanager
def tidy(yes: bool) -> Iterator[None]:
    """Have everything forgotten as soon as it may be, or else as long as it may."""
    with (
        patch.object(shadow, "_CROWDED", 0 if yes else 1 << 16),
        patch.object(clocks, "_LEAST", 2 if yes else 256),
    ):
        yield


@pytest.mark.parametrize("case", CASES)
def test_what_is_ordered(run, case, order):
    launch(run, case, CASES[case].body, order)


@pytest.mark.parametrize(("case", "wrong"), WRONG)
def test_what_is_not(run, case, wrong, order):
    """In every order, and with both lines, whichever of them comes first."""
    old, new, *lines = CASES[case].wrong[wrong]
    assert CASES[case].body.count(old) == 1
    with pytest.raises(LegoError, match=r"data race|no proxy fence|not initialised") as e:
        launch(run, case, CASES[case].body.replace(old, new), order)
    text = e.value.source.splitlines()
    here = text[e.value.place.line - 1]
    found = re.search(r"\(line (\d+)\)", e.value.message)
    there = text[int(found[1]) - 1] if found else ""
    assert all(a in b for a, b in zip(lines, (here, there), strict=False)) or (
        all(a in b for a, b in zip(lines, (there, here), strict=False))
    ), e.value
    assert e.value.hint or "not initialised" in e.value.message


# --- random programs, against all pairs of accesses ---

THREADS = (0, 1, 2, 32, 33)
"""Who accesses memory in random programs; the others only come to the barriers."""

PLACES, WIDTHS = 3, (1, 2, 4)
"""Words that they access, and the bytes of an access, which may begin anywhere it is aligned."""


@dataclass(frozen=True)
class Step:
    """One instruction of a random program.

    Attributes:
        kind: `ld`, `st`, `atom`; `bar` for all; `named` for the warps in `who`, one of which only
            arrives where `first` is 0 or 1; `warp` for the lanes of each warp apart: those in
            `who`, and the rest.
        who: bits, of `THREADS`, of warps or of lanes.
        first, width: byte and bytes of an access.
    """

    kind: str
    who: int
    first: int = 0
    width: int = 4

    def does(self, thread: int) -> bool:
        return bool(self.who >> THREADS.index(thread) & 1)

    def touches(self, other: "Step") -> bool:
        return self.first < other.first + other.width and other.first < self.first + self.width

    @property
    def accesses(self) -> bool:
        return self.kind in ("ld", "st", "atom")


@st.composite
def steps(draw):
    kind = draw(st.sampled_from(["ld", "ld", "st", "st", "atom", "bar", "named", "warp", "warp"]))
    if kind in ("ld", "st", "atom"):
        width = 4 if kind == "atom" else draw(st.sampled_from(WIDTHS))
        first = draw(st.integers(0, 4 * PLACES // width - 1)) * width
        return Step(kind, draw(st.integers(1, 2 ** len(THREADS) - 1)), first, width)
    if kind == "named":
        return Step(kind, 3, draw(st.integers(0, 2)))
    return Step(kind, draw(st.integers(1, 2**32 - 2)))


def ptx(program: list[Step]) -> str:
    """The program, for a block of two warps, in which all of `PLACES` has been written before."""
    bit = " ".join(f"setp.eq.u32 %p, %t, {t}; @%p mov.b32 %n, {i};" for i, t in enumerate(THREADS))
    blank = " ".join(f"@%p st.shared.b32 [words+{4 * k}], 0;" for k in range(PLACES))
    lines = [
        f".reg .pred %p, %q, %r; .reg .b32 %t, %n, %x, %lane; .shared .b32 words[{PLACES}];",
        f"mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; mov.b32 %n, 31; {bit}",
        f"setp.eq.u32 %p, %t, 0; {blank} bar.sync 0;",
    ]
    for number, step in enumerate(program):
        chosen = f"shr.u32 %x, {step.who}, %n; and.b32 %x, %x, 1; setp.eq.u32 %p, %x, 1;"
        at = f"[words+{step.first}]"
        match step.kind:
            case "ld":
                lines.append(f"{chosen} @%p ld.shared.u{8 * step.width} %x, {at};")
            case "st":
                lines.append(f"{chosen} @%p st.shared.u{8 * step.width} {at}, %x;")
            case "atom":
                lines.append(f"{chosen} @%p atom.shared.add.u32 %x, {at}, 1;")
            case "bar":
                lines.append("bar.sync 0;")
            case "named":
                # Numbers of their own, so that no arrival is taken for one at another barrier.
                sync, arrive = f"bar.sync {1 + number}, 64;", f"bar.arrive {1 + number}, 64;"
                test = "eq" if step.first else "ne"
                chosen = f"setp.lt.u32 %q, %t, 32; setp.{test}.u32 %r, 0, 0;"
                lines.append(
                    sync
                    if step.first == 2
                    else f"{chosen} xor.pred %q, %q, %r; @%q {arrive} @!%q {sync}"
                )
            case "warp":
                lines.append(
                    f"shr.u32 %x, {step.who}, %lane; and.b32 %x, %x, 1; setp.eq.u32 %p, %x, 1; "
                    f"selp.b32 %x, {step.who}, {step.who ^ 0xFFFFFFFF}, %p; bar.warp.sync %x;"
                )
    return "\n".join(lines)


def spread(step: Step, after: set[int]) -> set[int]:
    """Who is ordered after an access once a step is over; before it these threads were."""
    match step.kind:
        case "bar":
            return set(range(64))
        case "named":
            # Warp `first` only arrives; the other one waits.
            return after | {t for t in range(64) if t // 32 != step.first}
        case _:
            groups = {(t // 32, step.who >> t % 32 & 1) for t in after}
            return {t for t in range(64) if (t // 32, step.who >> t % 32 & 1) in groups}


def races(program: list[Step]) -> bool:
    """Whether two accesses of one place are in no order: all pairs, one after the other."""
    for i, early in enumerate(program):
        for a in (t for t in THREADS if early.accesses and early.does(t)):
            after = {a}
            for j, late in enumerate(program[i:], i):
                if not late.accesses:
                    after = spread(late, after)
                    continue
                conflict = {early.kind, late.kind} not in ({"ld"}, {"atom"}) and late.touches(early)
                for b in (t for t in THREADS if conflict and late.does(t)):
                    if b not in after and not (i == j and a // 32 == b // 32):
                        return True
    return False


@given(
    st.lists(steps(), max_size=10),
    st.sampled_from(["late", "early", "random"]),
    st.integers(0, 99),
)
@settings(max_examples=500, deadline=None)
def test_random_programs(program, order, seed):
    head = ".version 8.7 .target sm_90a .address_size 64 .visible .entry k()"
    text = f"{head} {{ {ptx(program)} ret; }}"
    found = None
    with tidy(seed % 2 == 1):
        try:
            sim.launch(text, "k", (1, 1, 1), (64, 1, 1), [], order=order, seed=seed)
        except LegoError as e:
            found = e.message
    assert found is None or found.startswith("data race")
    assert (found is not None) == races(program)
