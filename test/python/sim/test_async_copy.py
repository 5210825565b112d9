"""cp.async: sizes, zeros, groups, waits, and what each completion order shows of a missing wait."""

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

ORDERS = [("late", 0), ("early", 0), *(("random", seed) for seed in range(8))]

HEAD = """
    .reg .pred %p; .reg .b32 %t, %x, %y, %s, %n; .reg .b64 %o, %a, %i, %in;
    .shared .align 16 .b8 tile[4096];
    mov.u32 %t, %tid.x;
    ld.param.u64 %o, [o];
    ld.param.u64 %in, [in];
    mad.wide.u32 %a, %t, 4, %o;
    mov.u32 %s, tile;
    mad.lo.u32 %s, %t, 16, %s;
    mad.wide.u32 %i, %t, 16, %in;
"""
TWO = (("o", "u64"), ("in", "u64"))


def random_words(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**32, count, np.uint32)


@pytest.mark.parametrize(
    "copy",
    [
        "ca.shared.global [%s], [%i], 4",
        "ca.shared.global [%s], [%i], 8",
        "ca.shared.global.L2::128B [%s], [%i], 16",
        "cg.shared.global [%s], [%i], 16",
        "cg.shared::cta.global.L2::256B [%s], [%i], 16",
    ],
)
def test_every_size_arrives_and_no_more(run, order, copy):
    size = int(copy.split()[-1])
    source, out = random_words(4 * 64), np.zeros((64, 4), "u4")
    body = f"""{HEAD}
        .reg .b32 %w<4>;
        cp.async.{copy};
        cp.async.wait_all;
        bar.sync 0;
        xor.b32 %t, %t, 63;
        mov.u32 %s, tile;
        mad.lo.u32 %s, %t, 16, %s;
        ld.shared.v4.b32 {{%w0, %w1, %w2, %w3}}, [%s];
        mad.wide.u32 %a, %t, 16, %o;
        st.global.v4.b32 [%a], {{%w0, %w1, %w2, %w3}};
    """
    run(body, [out, source], parameters=TWO, block=(64, 1, 1), **order)
    expected = np.full((64, 4), 0xFFFFFFFF, "u4")
    expected[:, : size // 4] = source.reshape(64, 4)[:, : size // 4]
    assert out.tolist() == expected.tolist()


def test_source_sizes_fill_with_zeros(run, order):
    """Thread t copies min(t, 16) bytes; a source of no bytes may lie anywhere."""
    source, out = random_words(4 * 32).view("u1").reshape(32, 16), np.ones((32, 16), "u1")
    body = f"""{HEAD}
        min.u32 %n, %t, 16;
        setp.eq.u32 %p, %n, 0;
        @%p mov.b64 %i, 64;
        cp.async.cg.shared.global [%s], [%i], 16, %n;
        cp.async.commit_group;
        cp.async.wait_group 0;
        .reg .b32 %w<4>;
        ld.shared.v4.b32 {{%w0, %w1, %w2, %w3}}, [%s];
        mad.wide.u32 %a, %t, 16, %o;
        st.global.v4.b32 [%a], {{%w0, %w1, %w2, %w3}};
    """
    run(body, [out, source], parameters=TWO, **order)
    kept = np.arange(16) < np.minimum(np.arange(32), 16)[:, None]
    assert out.tolist() == np.where(kept, source, 0).tolist()


def test_an_ignored_source_is_zero(run, order):
    source, out = random_words(4 * 32), np.ones(32, "u4")
    body = f"""{HEAD}
        and.b32 %n, %t, 1;
        setp.ne.u32 %p, %n, 0;
        @%p mov.b64 %i, 0;
        cp.async.ca.shared.global [%s], [%i], 4, %p;
        cp.async.wait_all;
        ld.shared.b32 %x, [%s];
        st.global.b32 [%a], %x;
    """
    run(body, [out, source], parameters=TWO, **order)
    assert out.tolist() == np.where(np.arange(32) % 2, 0, source[::4]).tolist()


GROUPS = f"""{HEAD}
    cp.async.ca.shared.global [%s], [%i], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%s+4], [%i+4], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%s+8], [%i+8], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%s+12], [%i+12], 4;
    cp.async.wait_group 1;
    .reg .b32 %w<4>;
    ld.shared.v4.b32 {{%w0, %w1, %w2, %w3}}, [%s];
    mad.wide.u32 %a, %t, 16, %o;
    st.global.v4.b32 [%a], {{%w0, %w1, %w2, %w3}};
"""


def test_a_wait_names_all_but_the_newest_groups(run):
    """Late: the newest group, and the copy in no group yet, have not been performed."""
    source, out = random_words(4 * 32), np.zeros((32, 4), "u4")
    run(GROUPS, [out, source], parameters=TWO)
    expected = source.reshape(32, 4).copy()
    expected[:, 2:] = 0xFFFFFFFF
    assert out.tolist() == expected.tolist()


def test_early_and_random_may_be_further(run):
    source, out = random_words(4 * 32), np.zeros((32, 4), "u4")
    run(GROUPS, [out, source], parameters=TWO, order="early")
    assert out.tolist() == source.reshape(32, 4).tolist()
    newest = set()
    for seed in range(16):
        run(GROUPS, [out, source], parameters=TWO, order="random", seed=seed)
        assert out[:, :2].tolist() == source.reshape(32, 4)[:, :2].tolist()
        newest.add(bool((out[:, 2] == source.reshape(32, 4)[:, 2]).all()))
    assert newest == {True, False}


def test_threads_have_groups_of_their_own(run, order):
    """Odd threads commit one group more; a wait for all but one leaves them another."""
    source, out = random_words(4 * 32), np.zeros((32, 2), "u4")
    body = f"""{HEAD}
        and.b32 %n, %t, 1;
        setp.ne.u32 %p, %n, 0;
        cp.async.ca.shared.global [%s], [%i], 4;
        cp.async.commit_group;
        @%p cp.async.ca.shared.global [%s+4], [%i+4], 4;
        @%p cp.async.commit_group;
        @!%p cp.async.wait_group 0;
        @%p cp.async.wait_group 1;
        ld.shared.b32 %x, [%s];
        cp.async.wait_group 0;
        ld.shared.b32 %y, [%s+4];
        mad.wide.u32 %a, %t, 8, %o;
        st.global.v2.b32 [%a], {{%x, %y}};
    """
    run(body, [out, source], parameters=TWO, **order)
    assert out[:, 0].tolist() == source[::4].tolist()
    assert out[1::2, 1].tolist() == source.reshape(32, 4)[1::2, 1].tolist()
    assert (out[::2, 1] == 0xFFFFFFFF).all()


PIPELINE = """
.visible .entry pipeline(.param .u64 o, .param .u64 in)
{
    // Each block of 64 threads sums 10 tiles of 64 words; a tile is copied two tiles ahead, into
    // a ring of three. Every thread reads the word that another thread has copied.
    .reg .pred %p; .reg .b32 %t, %b, %x, %sum, %own, %other, %k, %ahead, %stage, %at;
    .reg .b64 %o, %a, %in, %g;
    .shared .align 16 .b8 ring[768];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    ld.param.u64 %o, [o];
    ld.param.u64 %in, [in];
    mad.lo.u32 %x, %b, 640, %t;          // first word of this thread
    mad.wide.u32 %g, %x, 4, %in;
    mov.u32 %x, ring;
    mad.lo.u32 %own, %t, 4, %x;
    xor.b32 %other, %t, 63;
    mad.lo.u32 %other, %other, 4, %x;
    cp.async.ca.shared.global [%own], [%g], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%own+256], [%g+256], 4;
    cp.async.commit_group;
    mov.b32 %sum, 0;
    mov.b32 %k, 0;
NEXT:
    cp.async.wait_group 1;               // tile k is here for its own thread
    bar.sync 0;                          // ... and for all, who have left tile k-1
    add.u32 %ahead, %k, 2;
    setp.lt.u32 %p, %ahead, 10;
    rem.u32 %stage, %ahead, 3;
    mad.lo.u32 %at, %stage, 256, %own;
    mad.wide.u32 %a, %ahead, 256, %g;
    @%p cp.async.ca.shared.global [%at], [%a], 4;
    cp.async.commit_group;
    rem.u32 %stage, %k, 3;
    mad.lo.u32 %at, %stage, 256, %other;
    ld.shared.b32 %x, [%at];
    add.u32 %sum, %sum, %x;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, 10;
    @%p bra NEXT;
    mad.lo.u32 %x, %b, 64, %t;
    mad.wide.u32 %a, %x, 4, %o;
    st.global.b32 [%a], %sum;
    ret;
}
"""
PIPELINE_BUGS = {
    "the wait is one group short": ("wait_group 1;", "wait_group 2;"),
    "nobody waits": ("cp.async.wait_group 1;", ""),
    "no barrier": ("bar.sync 0;", ""),
    "a ring of two": ("rem.u32 %stage, %ahead, 3", "rem.u32 %stage, %ahead, 2"),
    "copied one tile early": ("add.u32 %ahead, %k, 2;", "add.u32 %ahead, %k, 3;"),
}


def pipeline_is_right(run, text, order, seed):
    source, out = random_words(5 * 640, 3), np.zeros((5, 64), "u4")
    run(
        text,
        [out, source],
        grid=(5, 1, 1),
        block=(64, 1, 1),
        kernel="pipeline",
        order=order,
        seed=seed,
    )
    sums = source.reshape(5, 10, 64).sum(axis=1, dtype=np.uint32)[:, ::-1]
    return bool((out == sums).all())


@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_a_pipeline(run, order, seed):
    assert pipeline_is_right(run, PIPELINE, order, seed)


@pytest.mark.parametrize("bug", PIPELINE_BUGS)
def test_bugs_of_a_pipeline_are_seen(run, bug):
    old, new = PIPELINE_BUGS[bug]
    assert PIPELINE.count(old) == 1
    wrong = PIPELINE.replace(old, new)
    assert not all(pipeline_is_right(run, wrong, *order) for order in ORDERS)


def test_a_missing_wait_shows_in_the_late_order_alone():
    """The default order must be the one that sees the commonest mistake."""
    import inspect

    from lego_mlir import sim

    assert inspect.signature(sim.launch).parameters["order"].default == "late"


@pytest.mark.parametrize("form", ["arrive", "arrive.noinc"])
def test_an_mbarrier_hears_of_copies(run, order, form):
    """32 threads copy; the mbarrier's phase completes when all copies are done."""
    source, out = random_words(4 * 32), np.zeros(32, "u4")
    arrivals = 32 if form.endswith("noinc") else 64
    own = "" if form.endswith("noinc") else "mbarrier.arrive.shared.b64 _, [bar];"
    body = f"""{HEAD}
        .shared .align 8 .b64 bar;
        setp.eq.u32 %p, %t, 0;
        @%p mbarrier.init.shared.b64 [bar], {arrivals // (1 if own == "" else 2)};
        bar.sync 0;
        cp.async.ca.shared.global [%s], [%i], 4;
        cp.async.mbarrier.{form}.shared.b64 [bar];
        {own}
    SPIN:
        mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
        @!%p bra SPIN;
        xor.b32 %t, %t, 31;
        mov.u32 %s, tile;
        mad.lo.u32 %s, %t, 16, %s;
        ld.shared.b32 %x, [%s];
        st.global.b32 [%a], %x;
    """
    run(body, [out, source], parameters=TWO, **order)
    assert out.tolist() == source[::4][::-1].tolist()


def test_an_error_of_a_copy_is_at_its_instruction(run, order):
    """Late copies are performed elsewhere; the error still names the copy."""
    body = HEAD + "cp.async.ca.shared.global [%s], [%i], 8;\ncp.async.wait_all;"
    with pytest.raises(LegoError, match=r"out of bounds: cp.async.ca.shared.global reads") as e:
        run(body, [np.zeros(32, "u4"), random_words(64)], parameters=TWO, **order)
    assert "thread (16, 0, 0)" in str(e.value)
    assert "cp.async.ca" in str(e.value).splitlines()[1]


BAD = {
    "cp.async.ca.shared.global [%s], [%i+4], 8;": "misaligned: cp.async.ca.shared.global reads 8",
    "cp.async.ca.shared.global [%s+2], [%i], 4;": "misaligned: cp.async.ca.shared.global writes",
    "cp.async.ca.shared.global [%s], [%i], 4, %t;": "cp.async of 4 bytes with a source of 5",
    "cp.async.ca.shared.global [%s], [%i], 12;": "a copy of 12 bytes in cp.async",
    "cp.async.cg.shared.global [%s], [%i], 8;": "a copy of 8 bytes in cp.async.cg",
    "cp.async.wait_group %t;": "where a constant from 0",
}


@pytest.mark.parametrize("line", BAD)
def test_wrong_cp_async_is_an_error(run, line):
    body = f"{HEAD}{line} cp.async.wait_all;"
    arguments = [np.zeros(32, "u4"), random_words(128)]
    with pytest.raises(LegoError) as e:
        run(body, arguments, parameters=TWO, record=False)
    assert BAD[line] in str(e.value)
