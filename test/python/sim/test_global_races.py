"""Data races in global memory, within a CTA and between CTAs; flags, fences and their scopes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag)
{
    .reg .pred %p, %q, %first, %low; .reg .b32 %t, %b, %x, %y, %n; .reg .b64 %d, %f, %mine;
    ld.param.u64 %d, [data]; ld.param.u64 %f, [flag];
    mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; setp.eq.u32 %first, %t, 0; setp.eq.u32 %low, %b, 0;
    mad.wide.u32 %mine, %t, 4, %d; mul.lo.u32 %n, %b, 64; add.u32 %n, %n, %t;
"""


def launch(body, order=None, ctas=4, threads=64, cluster=1, checks=True):
    data, flag = np.zeros(1024, "u4"), np.zeros(16, "u4")
    sim.launch(
        f"{HEAD}{body}\nret;\n}}",
        "k",
        (ctas, 1, 1),
        (threads, 1, 1),
        [data, flag],
        cluster=(cluster, 1, 1),
        global_checks=checks,
        **(order or {}),
    )
    return data, flag


RIGHT = {
    "an element for each thread": "mad.wide.u32 %mine, %n, 4, %d; st.global.u32 [%mine], %n;"
    "ld.global.u32 %x, [%mine];",
    "reads of all": "ld.global.v4.u32 {%x, %x, %x, %y}, [%d]; ld.global.u32 %x, [%d];",
    "atomics": "atom.global.add.u32 %x, [%d], 1; red.global.max.u32 [%d+4], %n;",
    "a barrier of the CTA": "@%low st.global.u32 [%mine], %t; bar.sync 0; xor.b32 %t, %t, 33;"
    "mad.wide.u32 %mine, %t, 4, %d; @%low ld.global.u32 %x, [%mine];",
    "a loop around cas": """
        ld.global.u32 %x, [%d];
    AGAIN:
        mov.b32 %y, %x; add.u32 %n, %x, 1;
        atom.global.cas.b32 %x, [%d], %y, %n; setp.ne.u32 %p, %x, %y; @%p bra AGAIN;
    """,
    "volatile accesses": "st.volatile.global.u32 [%d], %n; ld.volatile.global.u32 %x, [%d];",
    "a copy that is waited for": """
        .shared .align 16 .b8 tile[16];
        mul.wide.u32 %mine, %b, 16; add.u64 %mine, %mine, %d;
        @%first cp.async.ca.shared.global [tile], [%mine], 16; cp.async.wait_all;
        @%first st.global.u32 [%mine], 7;
    """,
}
REPLICATED = """
    ld.global.u32 %x, [%mine]; add.u32 %x, %x, 1; USE
    @%p st.global.u32 [%mine], %x;
"""
"""All threads load an element of their CTA, and one stores its successor."""

SCALAR = f"""
    mul.wide.u32 %mine, %b, 4; add.u64 %mine, %mine, %d; and.pred %p, %first, %first;
    {REPLICATED}
"""
RIGHT["a scalar that one thread updates"] = SCALAR.replace("USE", "")
WRONG = {
    "a scalar that all threads use": SCALAR.replace("USE", "")
    + "setp.gt.u32 %q, %x, 5; @%q st.global.u32 [%d+256], 1;",
    "a scalar that all threads store": SCALAR.replace("@%p st", "add.u32 %x, %x, %t; st").replace(
        "USE", ""
    ),
    "a neighbour's element in place": "mad.wide.u32 %mine, %n, 4, %d; setp.lt.u32 %p, %t, 63;"
    "ld.global.u32 %x, [%mine+4]; @%p st.global.u32 [%mine], %x;",
    "one element for all threads": "st.global.u32 [%d], %n;",
    "elements that overlap": "add.u32 %n, %b, %t; mad.wide.u32 %mine, %n, 4, %d;"
    "st.global.u32 [%mine], %b;",
    "a neighbour's element": "mad.wide.u32 %mine, %n, 4, %d; st.global.u32 [%mine], %n;"
    "ld.global.u32 %x, [%mine+4];",
    "an atomic and a load": "atom.global.add.u32 %x, [%d], 1; ld.global.u32 %x, [%d];",
    "no barrier": "@%low st.global.u32 [%mine], %t; xor.b32 %t, %t, 33;"
    "mad.wide.u32 %mine, %t, 4, %d; @%low ld.global.u32 %x, [%mine];",
    "a barrier of one CTA": "st.global.u32 [%mine], %n; bar.sync 0; ld.global.u32 %x, [%mine];",
    "a copy of what is overwritten": """
        .shared .align 16 .b8 tile[16];
        mul.wide.u32 %mine, %b, 16; add.u64 %mine, %mine, %d;
        @%first cp.async.ca.shared.global [tile], [%mine], 16;
        @%first st.global.u32 [%mine], 7;
    """,
}


@pytest.mark.parametrize("case", RIGHT)
def test_ordered_accesses(order, case):
    launch(RIGHT[case], order)


@pytest.mark.parametrize("case", WRONG)
def test_unordered_accesses(order, case):
    launch(WRONG[case], order, checks=False)
    with pytest.raises(LegoError, match="data race") as e:
        launch(WRONG[case], order)
    assert "argument 0 (data) at byte " in e.value.message
    assert e.value.hint


LAST = """
    mad.wide.u32 %mine, %n, 4, %d;
    setp.lt.u32 %q, %t, 64;
    @%q st.global.u32 [%mine], %n;
    RELEASE
    bar.sync 0;
    @!%first bra OUT;
    TICKET
    setp.ne.u32 %p, %x, BEHIND;
    @%p bra OUT;
    ACQUIRE
    ld.global.u32 %y, [%d];
    ld.global.u32 %y, [%d+256];
    ld.global.u32 %y, [%d+512];
    st.global.u32 [%f+16], %y;
OUT:
"""
"""The last CTA that takes a ticket reads what all have written."""

RELAXED = "atom.global.relaxed.gpu.add.u32 %x, [%f], 1;"
TICKETS = {
    "fences": ("membar.gl;", RELAXED, "membar.gl;"),
    "fences of one thread": ("", f"fence.acq_rel.gpu; {RELAXED}", "fence.acq_rel.gpu;"),
    "the system's": ("membar.sys;", RELAXED, "fence.sc.sys;"),
    "acquire and release": ("", RELAXED.replace("relaxed", "acq_rel"), ""),
    "a fence and acquire": ("membar.gl;", RELAXED.replace("relaxed", "acquire"), ""),
}
MISSING = {
    "no fence": ("", RELAXED, ""),
    "no fence before": ("", RELAXED, "membar.gl;"),
    "no fence behind": ("membar.gl;", RELAXED, ""),
    "a fence of the CTA": ("membar.cta;", RELAXED, "membar.gl;"),
    "a fence of the CTA behind": ("membar.gl;", RELAXED, "fence.acq_rel.cta;"),
    "a ticket of the CTA": ("", RELAXED.replace("relaxed.gpu", "acq_rel.cta"), ""),
    "a release only": ("", RELAXED.replace("relaxed", "release"), ""),
}


def ticket(release, atomic, acquire, ctas=4):
    body = LAST.replace("RELEASE", release).replace("TICKET", atomic)
    return body.replace("ACQUIRE", acquire).replace("BEHIND", str(ctas - 1))


@pytest.mark.parametrize("case", TICKETS)
def test_the_last_cta_reads_what_all_wrote(order, case):
    launch(ticket(*TICKETS[case]), order)


@pytest.mark.parametrize("case", TICKETS)
def test_the_last_cta_of_a_later_wave(order, case):
    """CTAs of 1024 threads run eight at a time."""
    launch(ticket(*TICKETS[case], ctas=12), order, ctas=12, threads=1024)


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_fence(order, case):
    launch(ticket(*MISSING[case]), order, checks=False)
    with pytest.raises(LegoError, match="data race") as e:
        launch(ticket(*MISSING[case]), order)
    assert "ld.global.u32 reads argument 0 (data)" in e.value.message
    assert "__threadfence()" in e.value.hint


def test_a_chain_of_ctas(order):
    """Each CTA waits for the one before, and passes on what it has seen."""
    chain = """
    SPIN:
        ld.acquire.gpu.global.u32 %x, [%f]; setp.ne.u32 %p, %x, %b; @%p bra SPIN;
        ld.global.u32 %y, [%d]; add.u32 %y, %y, 1; st.global.u32 [%d], %y;
        ld.global.u32 %x, [%d+4]; @%low st.global.u32 [%d+4], 5;
        add.u32 %x, %b, 1;
        st.release.gpu.global.u32 [%f], %x;
    """
    data, _ = launch(chain, order, ctas=12, threads=1)
    assert data[:2].tolist() == [12, 5]
    for old, new in (("ld.acquire.gpu", "ld.relaxed.gpu"), ("st.release", "st.relaxed")):
        with pytest.raises(LegoError, match="data race"):
            launch(chain.replace(old, new), order, ctas=12, threads=1)


def test_waves_know_of_each_other(order):
    """CTAs of 1024 threads run eight at a time; a race with an earlier wave is found."""
    store = "setp.eq.u32 %p, %b, WHO; and.pred %p, %p, %first; @%p st.global.u32 [%d], %b;"
    body = store.replace("WHO", "0") + store.replace("WHO", "12")
    with pytest.raises(LegoError, match=r"in thread \(0, 0, 0\) of CTA \(0, 0, 0\)"):
        launch(body, order, ctas=16, threads=1024)
    load = "setp.eq.u32 %p, %b, 0; and.pred %p, %p, %first; @%p ld.global.u32 %x, [%d];"
    with pytest.raises(LegoError, match="data race"):
        launch(load + store.replace("WHO", "12"), order, ctas=16, threads=1024)


def test_clusters(order):
    """barrier.cluster orders the CTAs of a cluster, and no others."""
    body = """
        mul.wide.u32 %mine, %b, 4; add.u64 %mine, %mine, %d; @%first st.global.u32 [%mine], %b;
        barrier.cluster.arrive; barrier.cluster.wait;
        xor.b32 %x, %b, WHOM; mul.wide.u32 %mine, %x, 4; add.u64 %mine, %mine, %d;
        ld.global.u32 %x, [%mine];
    """
    launch(body.replace("WHOM", "1"), order, cluster=2)
    with pytest.raises(LegoError, match="data race"):
        launch(body.replace("WHOM", "2"), order, cluster=2)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ld", "st", "tell", "ask"]), st.integers(0, 3), st.integers(0, 1)
        ),
        max_size=10,
    ),
    st.sampled_from(["late", "random"]),
)
@settings(max_examples=100, deadline=None)
def test_random_programs_of_ctas(steps, order):
    """Each step is of one CTA; the steps run in their order, which orders nothing.

    A race is found exactly where two accesses of a place have no chain of flags between them.
    """
    lines, told, known, accesses, races = [], {}, {b: {b: 0} for b in range(4)}, [], False
    clock = dict.fromkeys(range(4), 0)
    for number, (kind, cta, place) in enumerate(steps):
        do = {
            "ld": f"ld.global.u32 %x, [%d+{4 * place}];",
            "st": f"st.global.u32 [%d+{4 * place}], {number + 1};",
            "tell": f"atom.release.gpu.global.add.u32 %x, [%f+{4 * place}], 1;",
            "ask": f"ld.acquire.gpu.global.u32 %x, [%f+{4 * place}];",
        }[kind]
        # Relaxed accesses of a turn keep the steps in order, and release and acquire nothing.
        lines.append(
            f"TURN{number}: ld.relaxed.gpu.global.u32 %y, [%f+32]; setp.ge.u32 %p, %y, {number};"
            f"@!%p bra TURN{number}; setp.eq.u32 %p, %b, {cta}; @!%p bra NEXT{number};"
            f"{do} st.relaxed.gpu.global.u32 [%f+32], {number + 1}; NEXT{number}:"
        )
        if kind == "tell":
            clock[cta] += 1
            merged = told.setdefault(place, {})
            for who, at in (known[cta] | {cta: clock[cta]}).items():
                merged[who] = max(at, merged.get(who, 0))
        elif kind == "ask":
            for who, at in told.get(place, {}).items():
                known[cta][who] = max(at, known[cta].get(who, 0))
        else:
            for other, where, when, writes in accesses:
                ordered = other == cta or known[cta].get(other, 0) > when
                races |= where == place and (writes or kind == "st") and not ordered
            accesses.append((cta, place, clock[cta], kind == "st"))
    found = None
    try:
        launch("\n".join(lines), {"order": order}, threads=1)
    except LegoError as e:
        found = e.message
    assert found is None or found.startswith("data race")
    assert (found is not None) == races
