"""Blocks of a cluster that access each other's shared memory."""

from race_cases.case import BLANK, EXPECT, SHOWN, STORE, WAIT, Case, made

MEET = """
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
"""
RELAXED = MEET.replace("release", "relaxed")
REMOTE = """
    mapa.shared::cluster.u32 %there, %mine, %rank;
    mov.u32 %bar, bar;
    mapa.shared::cluster.u32 %bar, %bar, %rank;
"""
PAIR = {"grid": (4, 1, 1), "cluster": (2, 1, 1)}
CASES: dict[str, Case] = {}

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
CASES["st.async before a bulk store"] = Case(
    f"""{SHOWN}{made(1)}{REMOTE}
    @%first {EXPECT}
    {MEET}
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%there], %t, [%bar];
    {WAIT}
    fence.proxy.async;
    bar.sync 1;
    {STORE}
    {MEET}
    """,
    {
        "no fence": (
            "fence.proxy.async;\n    bar.sync 1;",
            "bar.sync 1;",
            "[%o], [tile]",
            "st.async",
        ),
        "a fence before the wait": (
            f"{WAIT}\n    fence.proxy.async;",
            f"fence.proxy.async;\n    {WAIT}",
            "[%o], [tile]",
            "st.async",
        ),
    },
    PAIR,
)
CASES["red.async before a bulk store"] = Case(
    f"""{SHOWN}{made(1)}{REMOTE}
    @%first {EXPECT}
    {MEET}
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32
        [%there], %t, [%bar];
    {WAIT}
    fence.proxy.async;
    bar.sync 1;
    {STORE}
    {MEET}
    """,
    {
        "no fence": (
            "fence.proxy.async;\n    bar.sync 1;",
            "bar.sync 1;",
            "[%o], [tile]",
            "red.async",
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
