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
    """Both halves of the block come to barrier 0, from different places and at different times."""
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


def test_producer_and_consumer_pass_a_barrier_in_turn(run):
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
    assert "deadlock in block (0, 0, 0): of its 64 threads 32 wait at `bar.sync" in text
    assert "bar.sync 1" in text
    assert "bar.sync 2" in text
    assert e.value.place.line > 0


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
