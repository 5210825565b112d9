"""mbarriers: phases, counts, transactions, misuse, and the report of a deadlock."""

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.limits import Limits

ONE = (("o", "u64"),)
HEAD = """
    .reg .pred %p, %q, %first; .reg .b32 %t, %x, %y, %n; .reg .b64 %o, %a, %s, %state, %later;
    .shared .align 8 .b64 bars[4];
    .shared .align 128 .b8 tile[512];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    ld.param.u64 %o, [o];
    mad.wide.u32 %a, %t, 4, %o;
    mov.b64 %s, tile;
    mad.wide.u32 %s, %t, 4, %s;
"""


def made(count, at=0):
    """Thread 0 makes the mbarrier in word `at` for `count` arrivals."""
    return f"@%first mbarrier.init.shared::cta.b64 [bars+{8 * at}], {count};\nbar.sync 0;\n"


def spin(phase, at=0, form="try_wait.parity.shared::cta"):
    return f"""
    {{
    WAIT: mbarrier.{form}.b64 %p, [bars+{8 * at}], {phase};
    @!%p bra WAIT;
    }}
    """


@pytest.mark.parametrize(
    "form",
    [
        "try_wait.parity.shared::cta",
        "try_wait.parity.acquire.cta.shared::cta",
        "test_wait.parity.shared",
        "test_wait.parity.relaxed.cluster.shared::cta",
    ],
)
def test_an_exchange_through_two_phases(run, order, form):
    """128 threads exchange words, twice, behind one mbarrier; the labels stand in braces."""
    out = np.zeros((2, 128), "u4")
    exchange = """
        mbarrier.arrive.shared.b64 _, [bars];
        {wait}
        xor.b32 %y, %t, {mate};
        mov.b64 %s, tile;
        mad.wide.u32 %s, %y, 4, %s;
        ld.shared.b32 %x, [%s];
        st.global.b32 [%a+{at}], %x;
    """
    body = (
        HEAD
        + made(128)
        + "st.shared.b32 [%s], %t;"
        + exchange.format(wait=spin(0, form=form), mate=127, at=0)
        + "bar.sync 0; mov.b64 %s, tile; mad.wide.u32 %s, %t, 4, %s; mul.lo.u32 %x, %t, 3;"
        + "st.shared.b32 [%s], %x;"
        + exchange.format(wait=spin(1, form=form), mate=64, at=512)
    )
    run(body, [out], parameters=ONE, block=(128, 1, 1), **order)
    assert out[0].tolist() == list(range(127, -1, -1))
    assert out[1].tolist() == [3 * (n ^ 64) for n in range(128)]


@pytest.mark.parametrize("order", ["late", "early"])
@pytest.mark.parametrize("form", ["try_wait", "test_wait"])
def test_a_wait_fails_before_it_waits(run, order, form):
    """Who does not try again goes on too early; who does waits, and gets what has come at once."""
    out = np.zeros((3, 64), "u4")
    body = (
        HEAD
        + made(1)
        + f"""
        setp.lt.u32 %q, %t, 32;
        @%q bra WAIT;
        bar.sync 1, 64;                     // after the first wait
        setp.eq.u32 %q, %t, 32;
        @%q mbarrier.arrive.shared.b64 _, [bars];
        bra.uni OVER;
    WAIT:
        mov.b32 %n, 0;
    AGAIN:
        mbarrier.{form}.parity.shared.b64 %p, [bars], 0;
        selp.b32 %x, 1, 0, %p;
        st.global.b32 [%a], %x;
        add.u64 %a, %a, 256;
        setp.eq.u32 %q, %n, 0;
        @%q bar.sync 1, 64;
        add.u32 %n, %n, 1;
        setp.lt.u32 %q, %n, 3;
        @%q bra AGAIN;
    OVER:
    """
    )
    run(body, [out], parameters=ONE, block=(64, 1, 1), order=order)
    assert (out[0, :32] == 0).all()
    assert (out[1:, :32] == 1).all()


def test_states_and_pending_counts(run, order):
    """A warp sees the pending count before it arrives; a state tells when its phase is over."""
    out = np.zeros((3, 64), "u4")
    body = (
        HEAD
        + made(65)
        + made(64, 1)
        + """
        mbarrier.arrive.release.cta.shared::cta.b64 %state, [bars];
        mbarrier.pending_count.b64 %x, %state;
        st.global.b32 [%a], %x;
        mbarrier.arrive.shared.b64 %later, [bars+8];
        bar.sync 0;
        mbarrier.test_wait.shared.b64 %p, [bars], %state;
        selp.b32 %x, 1, 0, %p;
        st.global.b32 [%a+256], %x;
        bar.sync 0;
        @%first mbarrier.arrive.shared.b64 _, [bars];
    SPIN:
        mbarrier.try_wait.shared.b64 %p, [bars], %state, 1000;
        @!%p bra SPIN;
        selp.b32 %x, 1, 0, %p;
        st.global.b32 [%a+512], %x;
    """
    )
    run(body, [out], parameters=ONE, block=(64, 1, 1), **order)
    assert {tuple(set(warp)) for warp in out[0].reshape(2, 32).tolist()} <= {(65,), (33,)}
    assert 65 in out[0]
    assert (out[1] == 0).all(), "a test of a phase that is not over fails"
    assert (out[2] == 1).all()


def test_arrivals_with_counts_and_drops(run, order):
    """Phase 0 takes 2 + 3 of 6, and a drop; phase 1 then needs 5 only."""
    out = np.zeros(32, "u4")
    body = (
        HEAD
        + made(6)
        + f"""
        @!%first bra REST;
        mbarrier.arrive.shared.b64 _, [bars], 2;
        mbarrier.arrive.noComplete.shared.b64 %state, [bars], 3;
        mbarrier.arrive_drop.shared.b64 _, [bars];
        {spin(0)}
        mbarrier.arrive.shared.b64 _, [bars], 4;
        mbarrier.test_wait.parity.shared.b64 %q, [bars], 1;
        mbarrier.arrive.shared.b64 _, [bars];
        {spin(1)}
        selp.b32 %x, 7, 1, %q;
        st.global.b32 [%a], %x;
    REST:
    """
    )
    run(body, [out], parameters=ONE, **order)
    assert out[0] == 1


def test_transactions(run, order):
    """A phase waits for bytes, too: expected by an arrival or apart, before or after they come."""
    out = np.zeros(32, "u4")
    body = (
        HEAD
        + made(2)
        + """
        @!%first bra REST;
        mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bars], 100;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 300;
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 50;
        mbarrier.arrive.shared.b64 %state, [bars];
        mbarrier.complete_tx.shared::cta.b64 [bars], 249;
        mbarrier.test_wait.shared.b64 %p, [bars], %state;
        mbarrier.complete_tx.shared::cta.b64 [bars], 1;
        mbarrier.test_wait.shared.b64 %q, [bars], %state;
        selp.b32 %x, 2, 0, %p;
        selp.b32 %y, 1, 0, %q;
        add.u32 %x, %x, %y;
        st.global.b32 [%a], %x;
    REST:
    """
    )
    run(body, [out], parameters=ONE, **order)
    assert out[0] == 1


def test_inval_makes_memory_plain_again(run):
    out = np.zeros(32, "u4")
    body = (
        HEAD
        + made(1)
        + """
        @!%first bra REST;
        mbarrier.inval.shared.b64 [bars];
        st.shared.b32 [bars], 5;
        ld.shared.b32 %x, [bars];
        mbarrier.init.shared.b64 [bars], 1;
        st.global.b32 [%a], %x;
    REST:
    """
    )
    run(body, [out], parameters=ONE)
    assert out[0] == 5


def test_generic_addresses(run):
    out = np.zeros(32, "u4")
    body = (
        HEAD
        + """
        .reg .b64 %g;
        mov.b64 %g, bars;
        cvta.shared.u64 %g, %g;
        @%first mbarrier.init.b64 [%g], 32;
        bar.sync 0;
        mbarrier.arrive.b64 %state, [%g];
    SPIN:
        mbarrier.try_wait.b64 %p, [%g], %state;
        @!%p bra SPIN;
        st.global.b32 [%a], 1;
    """
    )
    run(body, [out], parameters=ONE)
    assert out.tolist() == [1] * 32


RING = (
    HEAD
    + """
    // Warp 0 fills two stages in turn, warp 1 empties them: bars 0 and 1 are full, 2 and 3 empty.
    .reg .b32 %k, %stage, %phase, %full, %empty, %at, %sum;
    .reg .pred %producer, %more;
    @%first mbarrier.init.shared.b64 [bars], 32;
    @%first mbarrier.init.shared.b64 [bars+8], 32;
    @%first mbarrier.init.shared.b64 [bars+16], 32;
    @%first mbarrier.init.shared.b64 [bars+24], 32;
    bar.sync 0;
    setp.lt.u32 %producer, %t, 32;
    and.b32 %x, %t, 31;
    mov.u32 %at, tile;
    mad.lo.u32 %at, %x, 4, %at;
    mov.b32 %k, 0;
    mov.b32 %sum, 0;
NEXT:
    and.b32 %stage, %k, 1;
    shr.u32 %phase, %k, 1;
    and.b32 %phase, %phase, 1;
    mov.u32 %full, bars;
    mad.lo.u32 %full, %stage, 8, %full;
    add.u32 %empty, %full, 16;
    mad.lo.u32 %y, %stage, 128, %at;
    @%producer bra PRODUCE;
TAKE:
    mbarrier.try_wait.parity.shared.b64 %p, [%full], %phase;
    @!%p bra TAKE;
    xor.b32 %y, %y, 124;
    ld.shared.b32 %n, [%y];
    mad.lo.u32 %sum, %sum, 3, %n;
    mbarrier.arrive.shared.b64 _, [%empty];
    bra.uni ON;
PRODUCE:
    xor.b32 %phase, %phase, 1;
FREE:
    mbarrier.try_wait.parity.shared.b64 %p, [%empty], %phase;
    @!%p bra FREE;
    mad.lo.u32 %n, %k, 100, %t;
    st.shared.b32 [%y], %n;
    mbarrier.arrive.shared.b64 _, [%full];
ON:
    add.u32 %k, %k, 1;
    setp.lt.u32 %more, %k, 9;
    @%more bra NEXT;
    @!%producer st.global.b32 [%a+-128], %sum;
"""
)


def ring_is_right(run, text, **order):
    out = np.zeros((32,), "u4")
    run(text, [out], parameters=ONE, block=(64, 1, 1), **order)
    expected = np.zeros(32, "u4")
    for k in range(9):
        expected = expected * 3 + np.uint32(100) * np.uint32(k) + np.arange(32, dtype="u4")[::-1]
    return out.tolist() == expected.tolist()


def test_producer_and_consumer(run, order):
    assert ring_is_right(run, RING, **order)


ORDERS = [{"order": "late"}, {"order": "early"}] + [
    {"order": "random", "seed": seed} for seed in range(6)
]
RING_BUGS = {
    "wrong parity of the consumer": ("[%full], %phase;", "[%full], 1;"),
    "wrong parity of the producer": ("xor.b32 %phase, %phase, 1;\n", ""),
    "the producer does not wait": ("@!%p bra FREE;", ""),
    "no arrival at empty": ("mbarrier.arrive.shared.b64 _, [%empty];", ""),
    "the consumer does not wait": ("@!%p bra TAKE;", ""),
}


@pytest.mark.parametrize("bug", RING_BUGS)
def test_bugs_of_a_ring_are_seen(run, bug):
    old, new = RING_BUGS[bug]
    assert RING.count(old) == 1

    def right(order):
        try:
            return ring_is_right(run, RING.replace(old, new), **order)
        except LegoError:
            return False

    assert not all(right(order) for order in ORDERS)


def test_a_wait_does_not_burn_instructions(run):
    """Warp 1 waits while warp 0 counts to 3000: a spin would count along."""
    out = np.zeros(64, "u4")
    body = (
        HEAD
        + made(1)
        + f"""
        setp.lt.u32 %q, %t, 32;
        @%q bra COUNT;
        {spin(0)}
        bra.uni ON;
    COUNT:
        mov.b32 %n, 0;
    LOOP:
        add.u32 %n, %n, 1;
        setp.lt.u32 %p, %n, 3000;
        @%p bra LOOP;
        @%first mbarrier.arrive.shared.b64 _, [bars];
    ON:
        st.global.b32 [%a], 1;
    """
    )
    run(
        body,
        [out],
        parameters=ONE,
        block=(64, 1, 1),
        limits=Limits(wave_instructions=3000 * 3 + 100),
    )
    assert out.tolist() == [1] * 64


def test_a_failing_test_lets_the_program_go_on(run, order):
    """A thread looks at a barrier that it must complete itself: the look fails, and it goes on."""
    out = np.zeros(32, "u4")
    body = (
        HEAD
        + made(32)
        + f"""
        mbarrier.try_wait.parity.shared.b64 %q, [bars], 0;
        mbarrier.arrive.shared.b64 _, [bars];
        {spin(0)}
        selp.b32 %x, 1, 2, %q;
        st.global.b32 [%a], %x;
    """
    )
    run(body, [out], parameters=ONE, **order)
    assert out.tolist() == [2] * 32


def test_a_deadlock_names_the_barrier_and_what_it_lacks(run, order):
    body = (
        HEAD
        + made(3, 1)
        + f"""
        @%first mbarrier.arrive.expect_tx.shared.b64 _, [bars+8], 512;
        setp.ge.u32 %p, %t, 40;
        @%p exit;
        {spin(0, 1)}
    """
    )
    with pytest.raises(LegoError) as e:
        run(body, [np.zeros(64, "u4")], parameters=ONE, block=(64, 1, 1), grid=(2, 1, 1), **order)
    text = str(e.value)
    assert "deadlock in CTA (0, 0, 0): of its 64 threads" in text
    assert "24 have exited" in text
    for words in ("the mbarrier bars+8 of CTA (0, 0, 0)", "2 of 3 arrivals pending", "512 bytes"):
        assert words in text
    assert e.value.location.line > 0


def test_too_many_bytes_are_a_deadlock(run):
    body = (
        HEAD
        + made(1)
        + f"""
        @%first mbarrier.complete_tx.shared.b64 [bars], 16;
        @%first mbarrier.arrive.shared.b64 _, [bars];
        {spin(0)}
    """
    )
    with pytest.raises(LegoError, match=r"0 of 1 arrivals pending, and 16 bytes have come that no"):
        run(body, [np.zeros(32, "u4")], parameters=ONE)


BAD = {
    "@%first mbarrier.arrive.shared.b64 _, [bars+8];": "the mbarrier bars+8 of CTA (0, 0, 0) is "
    "not initialised",
    "@%first mbarrier.arrive.shared.b64 _, [bars], 3;": "has 2 arrivals pending in phase 0, and 3",
    "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 16;": "has 0 arrivals pending in phase 0, and "
    "1 come, and 512 bytes that it expects have not come",
    "@%first mbarrier.arrive.shared.b64 _, [bars], 0;": "0 arrivals at once",
    "@%first mbarrier.init.shared.b64 [bars], 2;": "is initialised twice",
    "mbarrier.init.shared.b64 [bars+8], 2;": "bars+8 of CTA (0, 0, 0) is initialised twice",
    "@%first mbarrier.init.shared.b64 [bars+8], 0;": "with a count of 0: it is 1 to 1048575",
    "@%first mbarrier.init.shared.b64 [bars+8], 1048576;": "with a count of 1048576",
    "@%first mbarrier.expect_tx.shared.b64 [bars], 1048576;": "gets a tx-count of 1048576",
    "@%first mbarrier.arrive.shared.b64 _, [bars+4];": "misaligned: mbarrier.arrive.shared.b64",
    "@%first mbarrier.arrive.b64 _, [%o];": "mbarrier.arrive.b64 on argument 0 (o)",
    "st.shared.b32 [bars+4], %t; @%first mbarrier.arrive.shared.b64 _, [bars];": "has been "
    "overwritten by a store",
    "@%first mbarrier.inval.shared.b64 [bars]; mbarrier.test_wait.parity.shared.b64 %p, [bars], 0;"
    "": "is not initialised",
    "mbarrier.test_wait.parity.shared.b64 %p, [bars], 2;": "gets a wait for a phase of parity 2",
    "@%first mbarrier.arrive.noComplete.shared.b64 %state, [bars], 2;": "an arrival with "
    ".noComplete has completed a phase",
    """@%first mbarrier.arrive.shared.b64 %state, [bars], 2;
    @%first mbarrier.arrive.shared.b64 _, [bars], 2;
    @%first mbarrier.test_wait.shared.b64 %p, [bars], %state;""": "is in phase 2: the state is one "
    "of phase 0",
}


@pytest.mark.parametrize("line", BAD)
def test_wrong_mbarrier_operations_are_errors(run, line):
    with pytest.raises(LegoError) as e:
        run(HEAD + made(2) + line, [np.zeros(32, "u4")], parameters=ONE, record=False)
    assert BAD[line] in str(e.value)
    assert "thread (" in str(e.value)


def test_many_blocks_have_barriers_of_their_own(run, order):
    """Block b waits for b % 7 + 1 arrivals, of so many threads."""
    out = np.zeros((20, 32), "u4")
    body = (
        HEAD
        + """
        mov.u32 %x, %ctaid.x;
        mad.lo.u32 %n, %x, 32, %t;
        mad.wide.u32 %a, %n, 4, %o;
        rem.u32 %x, %x, 7;
        add.u32 %x, %x, 1;
        @%first mbarrier.init.shared.b64 [bars], %x;
        bar.sync 0;
        st.shared.b32 [%s], %n;
        setp.lt.u32 %q, %t, %x;
        @%q mbarrier.arrive.shared.b64 _, [bars];
    """
        + spin(0)
        + """
        ld.shared.b32 %y, [tile];
        st.global.b32 [%a], %y;
    """
    )
    run(body, [out], parameters=ONE, grid=(20, 1, 1), **order)
    assert out.tolist() == [[32 * b] * 32 for b in range(20)]
