"""Copies of threads: `cp.async`."""

from race_cases.case import BLANK, WAIT, Case, made

CASES: dict[str, Case] = {}

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
CASES["a ring of two tiles"] = Case(
    f"""{BLANK}
    cp.async.ca.shared.global [%mine], [%g], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%mine+1024], [%g+256], 4;
    cp.async.commit_group;
    mov.b32 %n, 0;
    mov.b32 %w, 0;
LOOP:
    cp.async.wait_group 1;
    bar.sync 0;
    add.u32 %x, %across, %w;
    ld.shared.b32 %y, [%x];
    bar.sync 1;
    add.u32 %x, %mine, %w;
    xor.b32 %w, %w, 1024;
    setp.lt.u32 %p, %n, 4;
    @%p cp.async.ca.shared.global [%x], [%g+512], 4;
    cp.async.commit_group;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 6;
    @%p bra LOOP;
    """,
    {
        "read meanwhile": ("bar.sync 1;", "", "[%x], [%g+512]", "ld.shared.b32 %y"),
        "no barrier before": ("bar.sync 0;\n    add", "add", "cp.async", "ld.shared.b32 %y"),
        "the wait too late": (
            "cp.async.wait_group 1;\n    bar.sync 0;",
            "bar.sync 0;\n    cp.async.wait_group 1;",
            "cp.async",
            "ld.shared.b32 %y",
        ),
        "one group more may stay": ("wait_group 1", "wait_group 2", "cp.async", "ld.shared.b32 %y"),
    },
)
