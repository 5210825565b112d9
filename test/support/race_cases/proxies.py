"""What the asynchronous proxy does: bulk copies and `wgmma`, and the fences that they need."""

from race_cases.case import EXPECT, SHOWN, STORE, WAIT, Case, made

LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
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
CASES: dict[str, Case] = {}

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
        "a write before": (
            "@!%first bra MADE;",
            "st.shared.b32 [%mine], 5; @!%first bra MADE;",
            "[tile], [%i], 256",
            "[%mine], 5",
        ),
    },
)
CASES["an mbarrier without a fence"] = Case(
    f"""{SHOWN}{made(1).replace("fence.mbarrier_init.release.cluster;", "")}
    @%first {EXPECT}
    @%low {LOAD} [tile], [%i], 256, [bar];
    {WAIT}
    ld.shared.b32 %x, [%across];
    """.replace("@%low", "setp.eq.u32 %q, %t, 32; @%q"),
    {
        "no barrier": (
            "MADE:\n    bar.sync 0;",
            "MADE: bar.warp.sync 0xffffffff;",
            "[bar]",
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
CASES["atomics before a bulk store"] = Case(
    f"""{SHOWN}
    red.shared.add.u32 [%mine], 1;
    atom.shared.exch.b32 %x, [%mine], %t;
    fence.proxy.async;
    bar.sync 1;
    {STORE}
    """,
    {
        "no fence": ("fence.proxy.async;\n    bar.sync 1;", "bar.sync 1;", "[%o], [tile]", "atom"),
        "a fence before the last": (
            "atom.shared.exch.b32 %x, [%mine], %t;\n    fence.proxy.async;",
            "fence.proxy.async;\n    atom.shared.exch.b32 %x, [%mine], %t;",
            "[%o], [tile]",
            "atom.shared",
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
