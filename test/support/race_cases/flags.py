"""Atomics, flags in memory, and accesses that overlap in part."""

from race_cases.case import BLANK, Case

CASES: dict[str, Case] = {}

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
        "released relaxed": ("st.release", "st.relaxed", "[tile], 5", "%y, [tile]"),
        "acquired relaxed": ("ld.acquire", "ld.relaxed", "[tile], 5", "%y, [tile]"),
        "released too early": (
            "st.shared.b32 [tile], 5;\n    st.release.cta.shared.b32 [flag], 1;",
            "st.release.cta.shared.b32 [flag], 1;\n    st.shared.b32 [tile], 5;",
            "[tile], 5",
            "%y, [tile]",
        ),
        "released by a plain store": ("st.release.cta", "st", "[flag], 1", "[flag]"),
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
CASES["one address, one instruction"] = Case(
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
