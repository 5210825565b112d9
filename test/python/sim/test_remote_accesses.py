"""Shared memory of other CTAs: no access before they start, none after they exit."""

import re

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
BODY = """
    .reg .pred %p, %first, %peer; .reg .b32 %t, %x, %rank, %there, %bar; .reg .b64 %o;
    .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank;
    setp.eq.u32 %first, %t, 0; setp.eq.u32 %peer, %rank, 1;
    ld.param.u64 %o, [o];
    mov.u32 %x, tile; mad.lo.u32 %x, %t, 4, %x; st.shared.b32 [%x], %t;
    xor.b32 %rank, %rank, 1; mapa.shared::cluster.u32 %there, %x, %rank;
    mov.u32 %x, bar; mapa.shared::cluster.u32 %bar, %x, %rank;
    @%first mbarrier.init.shared.b64 [bar], 1;
    STARTED
    ACCESS
    FINISHED
"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra WAIT;"
ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%bar];"
ACCESSES = {
    "load": "ld.shared::cluster.b32 %x, [%there];",
    "store": "st.shared::cluster.b32 [%there], 7;",
    "atomic": "red.shared::cluster.add.u32 [%there], 7;",
    "one side": "@%peer st.shared::cluster.b32 [%there], 7;",
}
PAIR = {"grid": (4, 1, 1), "cluster": (2, 1, 1), "checks": True}


def launch(run, order, access, started=MEET, finished=MEET):
    body = BODY.replace("STARTED", started).replace("ACCESS", access)
    out = np.zeros(32, "u4")
    run(body.replace("FINISHED", finished), [out], parameters=(("o", "u64"),), **PAIR, **order)


@pytest.mark.parametrize("access", ACCESSES)
def test_accesses_between_two_cluster_barriers(run, order, access):
    launch(run, order, ACCESSES[access])


@pytest.mark.parametrize("access", ACCESSES)
def test_a_cta_that_exits_meanwhile(run, order, access):
    """It is found in every order, whether the access or the exit comes first in the run."""
    with pytest.raises(LegoError, match="exit") as e:
        launch(run, order, ACCESSES[access], finished="")
    line = e.value.source.splitlines()[e.value.location.line - 1]
    assert re.search(r"\[%there\]", line)


@pytest.mark.parametrize("access", ACCESSES)
def test_a_cta_that_may_not_have_started(run, order, access):
    with pytest.raises(LegoError, match="which may not have started"):
        launch(run, order, ACCESSES[access], started="bar.sync 0;")


def test_a_barrier_of_the_cta_is_not_enough(run, order):
    with pytest.raises(LegoError, match=r"may exit while|has exited"):
        launch(run, order, ACCESSES["one side"], finished="bar.sync 0;")


def test_an_arrival_alone_orders_the_exit_of_the_others(run, order):
    """The thread that accesses need not wait; the CTA that is accessed must."""
    launch(
        run,
        order,
        ACCESSES["one side"],
        finished=f"@%peer barrier.cluster.arrive; @%peer exit; {MEET}",
    )
    with pytest.raises(LegoError, match=r"may exit while|has exited"):
        launch(
            run,
            order,
            f"@%peer barrier.cluster.arrive; {ACCESSES['one side']} @%peer exit;",
            finished=MEET,
        )


def test_a_wait_on_an_mbarrier_orders_the_exit(run, order):
    """The lanes of rank 1 store, and arrive after it; the lanes of rank 0 wait for that."""
    stores = f"{ACCESSES['one side']} @%peer bar.warp.sync -1;"
    arrives = f"and.pred %p, %peer, %first; @%p {ARRIVE} @%peer exit; {WAIT}"
    launch(run, order, stores, finished=arrives)
    with pytest.raises(LegoError, match=r"may exit while|has exited"):
        launch(run, order, stores, finished=arrives.replace(WAIT, ""))


def test_a_multicast_is_waited_for_by_its_mbarrier(run, order):
    """The CTA of rank 1 sends both tiles; each CTA waits for its own, and exits."""
    sends = """
        @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
        and.pred %p, %peer, %first;
        fence.proxy.async;
        SYNC
        @%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [tile], [%o], 128, [bar], 3;
    """.replace("SYNC", MEET)
    launch(run, order, sends, finished=WAIT)
    with pytest.raises(LegoError, match=r"exit"):
        launch(run, order, sends, finished="")
