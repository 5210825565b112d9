"""Shared memory, barriers and deadlocks."""

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

HEAD = """
    .reg .pred %p, %q; .reg .b32 %t, %x, %y; .reg .b64 %o, %a, %s;
    .shared .align 4 .b8 tile[1024];
    mov.u32 %t, %tid.x;
    ld.param.u64 %o, [o];
    mad.wide.u32 %a, %t, 4, %o;
    mov.b64 %s, tile;
    mad.wide.u32 %s, %t, 4, %s;
"""
ONE = (("o", "u64"),)


def test_a_block_reverses_through_shared_memory(run):
    """Four blocks at once: each must have shared memory of its own."""
    out = np.arange(256, dtype="u4")
    body = """
        .reg .b32 %t, %b, %i, %x; .reg .b64 %o, %a, %s;
        .shared .align 4 .b8 tile[256];
        mov.u32 %t, %tid.x;
        mov.u32 %b, %ctaid.x;
        mad.lo.u32 %i, %b, 64, %t;
        ld.param.u64 %o, [o];
        mad.wide.u32 %a, %i, 4, %o;
        ld.global.b32 %x, [%a];
        mov.b64 %s, tile;
        mad.wide.u32 %s, %t, 4, %s;
        st.shared.b32 [%s], %x;
        bar.sync 0;
        xor.b32 %t, %t, 63;
        mov.b64 %s, tile;
        mad.wide.u32 %s, %t, 4, %s;
        ld.shared.b32 %x, [%s];
        st.global.b32 [%a], %x;
    """
    run(body, [out], parameters=ONE, grid=(4, 1, 1), block=(64, 1, 1))
    assert out.tolist() == np.arange(256).reshape(4, 64)[:, ::-1].ravel().tolist()


def test_shared_memory_is_not_zero_before_it_is_written(run):
    out = np.zeros(32, "f4")
    run(HEAD + "ld.shared.b32 %x, [%s]; st.global.b32 [%a], %x;", [out], parameters=ONE)
    assert np.isnan(out).all()


def test_a_barrier_in_a_divergent_branch_waits_for_all(run):
    """Both halves of the CTA arrive at barrier 0, at different instructions and times."""
    out = np.zeros(128, "u4")
    body = (
        HEAD
        + """
        setp.lt.u32 %p, %t, 64;
        @%p bra LOW;
        st.shared.b32 [%s], %t;
        bar.sync 0;
        bra.uni MEET;
    LOW:
        add.u32 %x, %t, 1000;
        st.shared.b32 [%s], %x;
        bar.sync 0;
    MEET:
        xor.b32 %y, %t, 64;
        mov.b64 %s, tile;
        mad.wide.u32 %s, %y, 4, %s;
        ld.shared.b32 %x, [%s];
        st.global.b32 [%a], %x;
    """
    )
    run(body, [out], parameters=ONE, block=(128, 1, 1))
    assert out.tolist() == [*range(64, 128), *range(1000, 1064)]


def test_exited_threads_are_not_waited_for(run):
    out = np.zeros(64, "u4")
    body = (
        HEAD
        + """
        setp.ge.u32 %p, %t, 32;
        @%p ret;
        bar.sync 0;
        st.global.b32 [%a], 1;
    """
    )
    run(body, [out], parameters=ONE, block=(64, 1, 1))
    assert out.tolist() == [1] * 32 + [0] * 32


def test_named_barriers_with_counts(run):
    """Two halves of a block, each behind its own barrier of 32 threads, both twice."""
    out = np.zeros(64, "u4")
    body = (
        HEAD
        + """
        shr.u32 %x, %t, 5;
        add.u32 %x, %x, 1;
        st.shared.b32 [%s], %t;
        barrier.sync %x, 32;
        xor.b32 %y, %t, 31;
        mov.b64 %s, tile;
        mad.wide.u32 %s, %y, 4, %s;
        ld.shared.b32 %y, [%s];
        barrier.sync %x, 32;
        st.global.b32 [%a], %y;
    """
    )
    run(body, [out], parameters=ONE, block=(64, 1, 1))
    assert out.tolist() == [*range(31, -1, -1), *range(63, 31, -1)]


def test_producer_and_consumer_alternate_at_a_barrier(run):
    """A barrier in a loop with different bodies: phases must not mix."""
    out = np.zeros(64, "u4")
    body = (
        HEAD
        + """
        mov.b32 %x, 0;
        mov.b32 %y, 0;
        setp.lt.u32 %p, %t, 32;
    NEXT:
        @!%p bra WAIT;
        mad.lo.u32 %y, %x, 10, %t;
        st.shared.b32 [%s], %y;
    WAIT:
        bar.sync 1, 64;
        @%p bra GO;
        ld.shared.b32 %y, [%s+-128];
    GO:
        bar.sync 1, 64;
        add.u32 %x, %x, 1;
        setp.lt.u32 %q, %x, 3;
        @%q bra NEXT;
        st.global.b32 [%a], %y;
    """
    )
    run(body, [out], parameters=ONE, block=(64, 1, 1))
    assert out.tolist() == [20 + n for n in range(32)] * 2


def test_deadlock_of_two_barriers(run):
    body = (
        HEAD
        + """
        setp.lt.u32 %p, %t, 32;
        @%p bra LOW;
        bar.sync 1;
        bra.uni MEET;
    LOW:
        bar.sync 2;
    MEET:
        st.global.b32 [%a], 1;
    """
    )
    with pytest.raises(LegoError) as e:
        run(body, [np.zeros(64, "u4")], parameters=ONE, block=(64, 1, 1), grid=(3, 1, 1))
    text = str(e.value)
    assert "deadlock in CTA (0, 0, 0): of its 64 threads 32 wait at `bar.sync" in text
    assert "bar.sync 1" in text
    assert "bar.sync 2" in text
    assert e.value.location.line > 0


def test_deadlock_of_a_count_that_exited_threads_leave_open(run):
    body = (
        HEAD
        + """
        setp.ge.u32 %p, %t, 32;
        @%p exit;
        bar.sync 0, 64;
    """
    )
    with pytest.raises(LegoError, match=r"32 wait at `bar.sync 0, 64` .*, 32 have exited"):
        run(body, [np.zeros(64, "u4")], parameters=ONE, block=(64, 1, 1))


def test_a_count_that_is_no_multiple_of_the_warp(run):
    with pytest.raises(LegoError, match=r"a barrier for 40 threads: .* multiple of 32"):
        run(HEAD + "bar.sync 0, 40;", [np.zeros(64, "u4")], parameters=ONE, record=False)


def test_dynamic_shared_memory_follows_static(run):
    text = """
    .extern .shared .align 16 .b8 dynamic[];
    .visible .entry k(.param .u64 o)
    {
        .reg .b32 %t, %x, %y; .reg .b64 %o, %a, %s, %d;
        .shared .align 4 .b8 fixed[100];
        mov.u32 %t, %tid.x;
        ld.param.u64 %o, [o];
        mad.wide.u32 %a, %t, 4, %o;
        mov.b64 %s, fixed;
        st.shared.b32 [%s+96], 5;
        mov.b64 %d, dynamic;
        mad.wide.u32 %d, %t, 4, %d;
        st.shared.b32 [%d], %t;
        ld.shared.b32 %x, [%s+96];
        ld.shared.b32 %y, [%d];
        add.u32 %x, %x, %y;
        st.global.b32 [%a], %x;
        ret;
    }
    """
    out = np.zeros(32, "u4")
    run(text, [out], shared_bytes=128)
    assert out.tolist() == [n + 5 for n in range(32)]
    with pytest.raises(
        LegoError, match=r"byte offset 236 of the shared memory, which has 236 bytes"
    ):
        run(text, [out], shared_bytes=124)


def test_arrive_does_not_wait(run, order):
    """Warps 0 and 1 hand words over: the giver arrives at barrier 1 and waits at 2, and so on."""
    out = np.zeros(64, "u4")
    body = (
        HEAD
        + """
        .reg .b32 %k, %sum;
        mov.b32 %k, 0;
        mov.b32 %sum, 0;
        setp.lt.u32 %p, %t, 32;
    NEXT:
        @!%p bra TAKE;
        mad.lo.u32 %x, %k, 100, %t;
        st.shared.b32 [%s], %x;
        bar.arrive 1, 64;
        barrier.cta.sync 2, 64;
        bra.uni ON;
    TAKE:
        bar.sync 1, 64;
        ld.shared.b32 %y, [%s+-128];
        mad.lo.u32 %sum, %sum, 3, %y;
        barrier.cta.arrive.aligned 2, 64;
    ON:
        add.u32 %k, %k, 1;
        setp.lt.u32 %q, %k, 4;
        @%q bra NEXT;
        st.global.b32 [%a], %sum;
    """
    )
    run(body, [out], parameters=ONE, block=(64, 1, 1), **order)
    expected = 100 * (0 * 27 + 1 * 9 + 2 * 3 + 3) + np.arange(32) * (27 + 9 + 3 + 1)
    assert out[32:].tolist() == expected.tolist()


def test_a_giver_that_runs_ahead(run, order):
    """Warp 0 arrives at two barriers before warp 1 has come to the first."""
    out = np.zeros(64, "u4")
    body = (
        HEAD
        + """
        setp.lt.u32 %p, %t, 32;
        @!%p bra TAKE;
        bar.arrive 1, 64;
        bar.arrive 2, 64;
        bar.sync 3, 64;
        bar.arrive 1, 64;
        bra.uni ON;
    TAKE:
        bar.sync 1, 64;
        bar.sync 2, 64;
        bar.arrive 3, 64;
        bar.sync 1, 64;
        st.global.b32 [%a], 1;
    ON:
    """
    )
    run(body, [out], parameters=ONE, block=(64, 1, 1), **order)
    assert out.tolist() == [0] * 32 + [1] * 32


def test_more_threads_than_a_barrier_takes(run, order):
    """Of three warps at a barrier for two, the third waits until warp 3 comes, who comes late."""
    out = np.zeros(128, "u4")
    body = (
        HEAD
        + """
        setp.ge.u32 %p, %t, 96;
        @%p bra LATE;
        bar.sync 1, 64;
        bar.arrive 2, 96;
        bra.uni ON;
    LATE:
        bar.sync 2, 96;
        bar.sync 1, 64;
    ON:
        st.global.b32 [%a], 1;
    """
    )
    run(body, [out], parameters=ONE, block=(128, 1, 1), **order)
    assert out.tolist() == [1] * 128


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("bar.red.popc.u32 %x, 0, %p;", lambda holds: holds.sum()),
        ("barrier.cta.red.popc.aligned.u32 %x, 0, 96, !%p;", lambda holds: (~holds).sum()),
        ("bar.red.and.pred %q, 0, %p; selp.b32 %x, 1, 0, %q;", lambda holds: holds.all()),
        ("barrier.red.or.pred %q, 0, %p; selp.b32 %x, 1, 0, %q;", lambda holds: holds.any()),
    ],
)
def test_reductions_at_a_barrier(run, order, line, result):
    """Block b: the predicate holds in the threads below 40 * b; threads of 96 come in two ways."""
    out = np.zeros((4, 96), "u4")
    body = (
        HEAD
        + f"""
        .reg .b32 %b;
        mov.u32 %b, %ctaid.x;
        mad.lo.u32 %y, %b, 96, %t;
        mad.wide.u32 %a, %y, 4, %o;
        mul.lo.u32 %y, %b, 40;
        setp.lt.u32 %p, %t, %y;
        mov.b32 %x, 77;
        setp.lt.u32 %q, %t, 32;
        @%q bra OTHER;
        {line}
        bra.uni ON;
    OTHER:
        {line}
    ON:
        st.global.b32 [%a], %x;
    """
    )
    run(body, [out], parameters=ONE, grid=(4, 1, 1), block=(96, 1, 1), **order)
    expected = [int(result(np.arange(96) < 40 * b)) for b in range(4)]
    assert out.tolist() == [[n] * 96 for n in expected]


def test_fences_and_hints_change_nothing(run):
    out = np.zeros(32, "u4")
    body = (
        HEAD
        + """
        fence.proxy.alias;
        fence.proxy.async;
        fence.proxy.async.global;
        fence.proxy.async.shared::cta;
        fence.proxy.async.shared::cluster;
        fence.proxy.tensormap::generic.release.gpu;
        fence.mbarrier_init.release.cluster;
        fence.acq_rel.cluster;
        fence.sc.cluster;
        fence.acquire.sync_restrict::shared::cluster.cluster;
        fence.release.sync_restrict::shared::cta.cluster;
        griddepcontrol.wait;
        griddepcontrol.launch_dependents;
        nanosleep.u32 20;
        st.global.b32 [%a], %t;
    """
    )
    run(body, [out], parameters=ONE)
    assert out.tolist() == list(range(32))


def test_registers_are_noted():
    """`setmaxnreg` reaches the observer, with the lanes that execute it."""
    from lego_mlir.sim.machine import asynchronous, memory, observer, wave
    from lego_mlir.sim.ptx import parser, program

    text = """.version 8.7\n.target sm_90a\n.address_size 64
    .visible .entry k() .maxntid 256, 1, 1 {
        .reg .pred %p; .reg .b32 %t;
        mov.u32 %t, %tid.x;
        setp.lt.u32 %p, %t, 128;
        @%p bra LESS;
        setmaxnreg.inc.sync.aligned.u32 232;
        ret;
    LESS:
        setmaxnreg.dec.sync.aligned.u32 40;
        ret;
    }"""
    seen = {}

    class Seeing(observer.Observer):
        def registers_set(self, count, mask):
            seen[count] = mask.tolist()

    module = parser.parse(text)
    decoded = program.decode(module, module.kernels["k"])
    state = wave.LaunchState(decoded, (1, 1, 1), (256, 1, 1), (1, 1, 1), False, 0, 0, 1000)
    watching = Seeing()
    order, nothing = asynchronous.CompletionOrder("late"), memory.Memory({}, watching)
    wave.Wave(state, np.zeros(1, np.int64), nothing, order, watching).run()
    assert seen == {40: [True] * 128 + [False] * 128, 232: [False] * 128 + [True] * 128}
