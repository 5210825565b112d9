"""Clusters: geometry, shared memory of other CTAs, their barrier, stores that signal."""

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

ONE = (("o", "u64"),)
HEAD = """
    .reg .pred %p, %first; .reg .b32 %t, %b, %rank, %other, %x, %y, %s, %r; .reg .b64 %o, %a, %g;
    .shared .align 16 .b8 tile[256];
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.u32 %first, %t, 0;
    ld.param.u64 %o, [o];
    mad.lo.u32 %x, %b, 32, %t;
    mad.wide.u32 %a, %x, 4, %o;
    mov.u32 %s, tile;
    mad.lo.u32 %s, %t, 4, %s;
"""
MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"


def launch(run, body, *, blocks=8, size=4, out=None, **options):
    out = np.zeros((blocks, 32), "u4") if out is None else out
    options = {"cluster": (size, 1, 1)} | options
    run(HEAD + body, [out], parameters=ONE, grid=(blocks, 1, 1), **options)
    return out


REGISTERS = {
    "%clusterid.x": lambda x, y, z: x // 2,
    "%clusterid.y": lambda x, y, z: y // 3,
    "%clusterid.z": lambda x, y, z: z,
    "%nclusterid.x": lambda x, y, z: 2,
    "%nclusterid.y": lambda x, y, z: 2,
    "%cluster_ctaid.x": lambda x, y, z: x % 2,
    "%cluster_ctaid.y": lambda x, y, z: y % 3,
    "%cluster_nctaid.x": lambda x, y, z: 2,
    "%cluster_nctaid.y": lambda x, y, z: 3,
    "%cluster_ctarank": lambda x, y, z: y % 3 * 2 + x % 2,
    "%cluster_nctarank": lambda x, y, z: 6,
}


@pytest.mark.parametrize("name", REGISTERS)
def test_special_registers(run, name):
    """A grid of 4 × 6 × 2 blocks in clusters of 2 × 3 × 1."""
    out = np.zeros((2, 6, 4), "u4")
    body = f"""
        .reg .b32 %x, %y, %z, %v; .reg .b64 %o, %a;
        ld.param.u64 %o, [o];
        mov.u32 %x, %ctaid.x;
        mov.u32 %y, %ctaid.y;
        mov.u32 %z, %ctaid.z;
        mad.lo.u32 %y, %z, 6, %y;
        mad.lo.u32 %x, %y, 4, %x;
        mad.wide.u32 %a, %x, 4, %o;
        mov.u32 %v, {name};
        st.global.b32 [%a], %v;
    """
    run(body, [out], parameters=ONE, grid=(4, 6, 2), block=(1, 1, 1), cluster=(2, 3, 1))
    z, y, x = np.indices(out.shape)
    assert out.tolist() == np.broadcast_to(REGISTERS[name](x, y, z), out.shape).tolist()


@pytest.mark.parametrize("cluster", [None, (2, 1, 1)])
def test_whether_a_launch_has_clusters(run, cluster):
    body = "mov.pred %p, %is_explicit_cluster; selp.b32 %x, 1, 2, %p; st.global.b32 [%a], %x;"
    out = launch(run, body, cluster=cluster)
    assert (out == (2 if cluster is None else 1)).all()


def test_shared_memory_of_the_next_block(run, order):
    """Every thread reads the word that its counterpart in the next block has written."""
    body = f"""
        mad.lo.u32 %x, %b, 100, %t;
        st.shared.b32 [%s], %x;
        {MEET}
        add.u32 %other, %rank, 1;
        and.b32 %other, %other, 3;
        mapa.shared::cluster.u32 %r, %s, %other;
        ld.shared::cluster.b32 %y, [%r];
        getctarank.shared::cluster.u32 %other, %r;
        mad.lo.u32 %y, %other, 10000, %y;
        st.global.b32 [%a], %y;
        {MEET}
    """
    out = launch(run, body, **order)
    b = np.arange(8)[:, None]
    following = b // 4 * 4 + (b + 1) % 4
    assert out.tolist() == (following % 4 * 10000 + following * 100 + np.arange(32)).tolist()


def test_generic_addresses_of_another_block(run, order):
    """Writes, vectors and atomics through generic addresses; `isspacep` tells them apart."""
    body = f"""
        .reg .pred %q;
        .reg .b64 %h;
        st.shared.b32 [%s], 5;
        st.shared.b32 [%s+128], 0;
        {MEET}
        xor.b32 %other, %rank, 3;
        mov.b64 %g, tile;
        cvta.shared.u64 %g, %g;
        mad.wide.u32 %g, %t, 4, %g;
        mapa.u64 %h, %g, %other;
        add.u32 %x, %rank, 7;
        atom.add.u32 %y, [%h], %x;
        isspacep.shared::cta %p, %h;
        isspacep.shared::cluster %q, %h;
        {MEET}
        ld.b32 %y, [%g];
        @%p add.u32 %y, %y, 1000;
        @!%q add.u32 %y, %y, 2000;
        isspacep.shared::cta %p, %g;
        @!%p add.u32 %y, %y, 4000;
        getctarank.u64 %x, %h;
        mad.lo.u32 %y, %x, 100, %y;
        st.global.b32 [%a], %y;
        {MEET}
    """
    out = launch(run, body, **order)
    rank = np.arange(8) % 4
    expected = 100 * (3 - rank) + 5 + 7 + (3 - rank)
    assert out.tolist() == np.repeat(expected[:, None], 32, axis=1).tolist()


def test_atomics_of_all_blocks_on_one_word(run, order):
    body = f"""
        @%first st.shared.b32 [tile], 0;
        {MEET}
        mov.u32 %r, tile;
        mapa.shared::cluster.u32 %r, %r, 2;
        red.relaxed.cluster.shared::cluster.add.u32 [%r], %rank;
        atom.shared::cluster.add.u32 %x, [%r], 1;
        {MEET}
        ld.shared.b32 %x, [tile];
        st.global.b32 [%a], %x;
    """
    out = launch(run, body, **order)
    assert out[:, 0].tolist() == [0, 0, 32 * 6 + 128, 0] * 2


def test_the_cluster_barrier_lets_blocks_run_apart(run, order):
    """Arrive, work, wait; threads that have exited do not count; twice in turn."""
    body = """
        setp.gt.u32 %p, %t, 16;
        @%p exit;
        st.shared.b32 [%s], %b;
        barrier.cluster.arrive;
        add.u32 %x, %rank, 1;
        and.b32 %x, %x, 3;
        mapa.shared::cluster.u32 %r, %s, %x;
        barrier.cluster.wait;
        ld.shared::cluster.b32 %y, [%r];
        barrier.cluster.arrive.relaxed;
        st.global.b32 [%a], %y;
        barrier.cluster.wait;
    """
    out = launch(run, body, **order)
    b = np.arange(8)
    following = b // 4 * 4 + (b + 1) % 4
    assert out[:, 16].tolist() == following.tolist()
    assert (out[:, 17:] == 0).all()


def test_remote_arrivals(run, order):
    """Each thread of a cluster arrives at rank 0's mbarrier, which only rank 0 waits for."""
    body = f"""
        @%first mbarrier.init.shared.b64 [bar], 128;
        @%first fence.mbarrier_init.release.cluster;
        {MEET}
        mov.u32 %r, bar;
        mapa.shared::cluster.u32 %r, %r, 0;
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r];
        setp.eq.u32 %p, %rank, 0;
        @!%p bra OUT;
    SPIN:
        mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0;
        @!%p bra SPIN;
        st.global.b32 [%a], 1;
    OUT:
        {MEET}
    """
    out = launch(run, body, **order)
    assert out[:, 0].tolist() == [1, 0, 0, 0] * 2


SEND = f"""
    @%first mbarrier.init.shared.b64 [bar], 1;
    @%first fence.mbarrier_init.release.cluster;
    st.shared.b32 [%s], 1000;
    st.shared.b32 [%s+128], 2000;
    {MEET}
    @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], {{bytes}};
    add.u32 %other, %rank, 1;
    and.b32 %other, %other, 3;
    mapa.shared::cluster.u32 %r, %s, %other;
    mov.u32 %y, bar;
    mapa.shared::cluster.u32 %y, %y, %other;
    mad.lo.u32 %x, %b, 100, %t;
    {{send}}
    {{wait}}
    ld.shared.b32 %x, [%s];
    ld.shared.b32 %y, [%s+128];
    add.u32 %x, %x, %y;
    st.global.b32 [%a], %x;
    {MEET}
"""
WAIT = """
SPIN:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra SPIN;
"""
DONE = "mbarrier::complete_tx::bytes"
SENT = {
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r], %x, [%y];": (
        128,
        lambda x: 2000 + x,
    ),
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r], %x, [%y];"
    "": (128, lambda x: 3000 + x),
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r], %x, [%y];"
    "": (128, lambda x: 2000 + np.maximum(1000, x)),
}


def senders():
    b = np.arange(8)[:, None]
    return (b // 4 * 4 + (b + 3) % 4) * 100 + np.arange(32)


@pytest.mark.parametrize("send", SENT)
def test_stores_that_signal(run, order, send):
    """Each thread sends a word to the next block, whose mbarrier counts its bytes."""
    count, result = SENT[send]
    out = launch(run, SEND.format(bytes=count, send=send, wait=WAIT), **order)
    assert out.tolist() == result(senders()).tolist()


def test_a_vector_that_signals(run, order):
    send = """
        mad.lo.u32 %r, %t, 4, %r;       // 8 bytes a thread
        .reg .b32 %z;
        add.u32 %z, %x, 1000;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r], {%x, %z}, [%y];
    """
    body = SEND.format(bytes=256, send=send, wait=WAIT)
    out = launch(run, body, **order)
    words = np.stack([senders(), senders() + 1000], axis=2).reshape(8, 64)
    assert out.tolist() == (words[:, :32] + words[:, 32:]).tolist()


def test_a_signal_that_nobody_waits_for_is_late(run):
    """The default order shows the missing wait, by what has not come, or at the exit."""
    send = next(iter(SENT))
    body = SEND.format(bytes=128, send=send, wait="")
    with pytest.raises(LegoError, match=r"exits while its shared memory is in use by st\.async"):
        launch(run, body)


@pytest.mark.parametrize(
    ("copy", "before"),
    [
        (f"cp.async.bulk.shared::cluster.shared::cta.{DONE}", 0),
        (f"cp.reduce.async.bulk.shared::cluster.shared::cta.{DONE}.add.u32", 2000),
    ],
    ids=["copy", "reduction"],
)
def test_a_bulk_copy_to_another_cta(run, order, copy, before):
    send = f"""
        fence.proxy.async;
        bar.sync 0;
        mov.u32 %x, tile;
        add.u32 %x, %x, 128;
        mapa.shared::cluster.u32 %r, %x, %other;
        mov.u32 %x, tile;
        @%first {copy} [%r], [%x], 128, [%y];
    """
    body = SEND.format(bytes=128, send=send, wait=WAIT)
    body = body.replace("st.shared.b32 [%s], 1000;", "st.shared.b32 [%s], %b;")
    out = launch(run, body, **order)
    b = np.arange(8)
    assert out[:, 5].tolist() == (b // 4 * 4 + (b + 3) % 4 + before + b).tolist()


def test_the_kernel_may_ask_for_a_cluster(run):
    text = """
    .visible .entry k(.param .u64 o) .reqntid 1, 1, 1 .reqnctapercluster 2, 1, 1 .explicitcluster
    {
        .reg .b32 %x; .reg .b64 %o;
        ld.param.u64 %o, [o];
        mov.u32 %x, %cluster_nctarank;
        st.global.b32 [%o], %x;
        ret;
    }
    """
    out = np.zeros(1, "u4")
    run(text, [out], grid=(4, 1, 1), block=(1, 1, 1))
    assert out[0] == 2
    with pytest.raises(LegoError, match=r"\(4, 1, 1\) where .reqnctapercluster asks for \(2, 1"):
        run(text, [out], grid=(4, 1, 1), block=(1, 1, 1), cluster=(4, 1, 1))
    with pytest.raises(LegoError, match=r"no multiple of the cluster \(2, 1, 1\)"):
        run(text, [out], grid=(3, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize(
    ("directive", "cluster", "message"),
    [
        (".explicitcluster", None, "no cluster where .explicitcluster asks for one"),
        (".maxclusterrank 4", (8, 1, 1), r"a cluster of \(8, 1, 1\): 1 to 4 CTAs"),
        ("", (32, 1, 1), r"a cluster of \(32, 1, 1\): 1 to 16 CTAs"),
    ],
)
def test_clusters_that_cannot_be_launched(run, directive, cluster, message):
    text = f".visible .entry k() {directive} {{ ret; }}"
    with pytest.raises(LegoError, match=message):
        run(text, [], grid=(32, 1, 1), cluster=cluster, record=False)


BAD = {
    "rank": ("mapa.shared::cluster.u32 %r, %s, 4;", "mapa to rank 4 in a cluster of 4"),
    "space": (
        "mapa.shared::cluster.u32 %r, %s, 1; ld.shared.b32 %x, [%r];",
        "the shared memory of the CTA of rank 1 in the cluster, but .shared is that of the",
    ),
    "bounds": (
        "mapa.shared::cluster.u32 %r, %s, 1; ld.shared::cluster.b32 %x, [%r+264];",
        "out of bounds: ld.shared::cluster.b32 reads 4 bytes at byte offset 264",
    ),
    "wait": ("barrier.cluster.wait;", "barrier.cluster.wait without barrier.cluster.arrive"),
    "twice": ("barrier.cluster.arrive; barrier.cluster.arrive;", "arrive for the second time"),
    "deadlock": (
        "setp.eq.u32 %p, %rank, 1; @%p bar.sync 1, 64; barrier.cluster.arrive; "
        "barrier.cluster.wait;",
        "32 wait at `barrier.cluster.wait` (line 19) for 32 threads of the cluster",
    ),
    "exited": (
        "setp.eq.u32 %p, %rank, 1; @%p exit; mapa.shared::cluster.u32 %r, %s, 1; "
        "mov.u32 %x, 0; L: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 5; @%p bra L; "
        "ld.shared::cluster.b32 %x, [%r];",
        "the CTA of rank 1 in the cluster, which has exited",
    ),
    "waits remotely": (
        "mov.u32 %s, bar; mapa.shared::cluster.u32 %r, %s, 1; "
        "mbarrier.test_wait.parity.shared.b64 %p, [%r], 0;",
        "but .shared is that of the own CTA",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_cluster_instructions_are_errors(run, case):
    body, message = BAD[case]
    with pytest.raises(LegoError) as e:
        launch(run, body, record=False)
    assert message in str(e.value)
