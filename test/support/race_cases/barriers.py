"""Barriers of a block and of a warp, and mbarriers."""

from race_cases.case import BLANK, WAIT, Case, made

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
