"""A pipeline of tensor copies with a producer warp, and the bugs that such a kernel may have."""

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError

ORDERS = [("late", 0), ("early", 0), *(("random", seed) for seed in range(6))]
STAGES, TILES, BLOCKS = 3, 8, 3

KERNEL = """
.visible .entry columns(.param .u64 o, .param .align 64 .b8 map[128])
{
    // A CTA sums, over 8 tiles of 16 x 32 floats, the words of its column of tiles. Warp 0
    // produces: a lane copies a tile into a ring of 3 stages when the stage is empty. Warps 1 to 4
    // consume: thread c sums the words of column c % 32 in rows c / 32 * 4 and the three after.
    // Then the sums are put in shared memory, and go out as one run of 512 bytes.
    .reg .pred %p, %producer, %one, %more;
    .reg .b32 %t, %b, %k, %stage, %phase, %full, %empty, %at, %row, %column, %piece, %x, %y, %n;
    .reg .f32 %sum, %v;
    .reg .b64 %o, %m, %g;
    .shared .align 1024 .b8 ring[6144];
    .shared .align 128 .b8 sums[512];
    .shared .align 8 .b64 filled[3];
    .shared .align 8 .b64 emptied[3];

    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    setp.lt.u32 %producer, %t, 32;
    setp.eq.u32 %one, %t, 0;
    @%one mbarrier.init.shared::cta.b64 [filled], 1;
    @%one mbarrier.init.shared::cta.b64 [filled+8], 1;
    @%one mbarrier.init.shared::cta.b64 [filled+16], 1;
    @%one mbarrier.init.shared::cta.b64 [emptied], 4;
    @%one mbarrier.init.shared::cta.b64 [emptied+8], 4;
    @%one mbarrier.init.shared::cta.b64 [emptied+16], 4;
    @%one fence.mbarrier_init.release.cluster;
    bar.sync 0;
    mov.b32 %k, 0;
    mov.b32 %stage, 0;
    mov.b32 %phase, 0;
    @!%producer bra CONSUMER;

    elect.sync _|%one, -1;
    @!%one bra OUT;
    mov.b64 %m, map;
    cvta.param.u64 %m, %m;
PRODUCE:
    mov.u32 %empty, emptied;
    mad.lo.u32 %empty, %stage, 8, %empty;
    xor.b32 %y, %phase, 1;               // a fresh stage is empty: its last phase counts as over
FREE:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%empty], %y;
    @!%p bra FREE;
    mov.u32 %full, filled;
    mad.lo.u32 %full, %stage, 8, %full;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 2048;
    mov.u32 %at, ring;
    mad.lo.u32 %at, %stage, 2048, %at;
    mul.lo.u32 %column, %b, 32;
    mul.lo.u32 %row, %k, 16;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%at], [%m, {%column, %row}], [%full];
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p, %stage, 3;
    @%p mov.b32 %stage, 0;
    @%p xor.b32 %phase, %phase, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %more, %k, 8;
    @%more bra PRODUCE;
    bra.uni OUT;

CONSUMER:
    sub.u32 %t, %t, 32;
    shr.u32 %row, %t, 5;
    shl.b32 %row, %row, 2;
    and.b32 %column, %t, 31;
    mov.f32 %sum, 0f00000000;
CONSUME:
    mov.u32 %full, filled;
    mad.lo.u32 %full, %stage, 8, %full;
TAKE:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;
    @!%p bra TAKE;
    mov.u32 %at, ring;
    mad.lo.u32 %at, %stage, 2048, %at;
    mad.lo.u32 %at, %row, 128, %at;
    mov.b32 %n, 0;
ROW:
    add.u32 %x, %row, %n;                // the swizzle: piece ^ row % 8
    and.b32 %x, %x, 7;
    shr.u32 %piece, %column, 2;
    xor.b32 %piece, %piece, %x;
    mad.lo.u32 %x, %piece, 16, %at;
    and.b32 %y, %column, 3;
    mad.lo.u32 %x, %y, 4, %x;
    mad.lo.u32 %x, %n, 128, %x;
    ld.shared.f32 %v, [%x];
    add.rn.f32 %sum, %sum, %v;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 4;
    @%p bra ROW;
    mov.u32 %empty, emptied;
    mad.lo.u32 %empty, %stage, 8, %empty;
    bar.warp.sync -1;
    elect.sync _|%p, -1;
    @%p mbarrier.arrive.shared::cta.b64 _, [%empty];
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p, %stage, 3;
    @%p mov.b32 %stage, 0;
    @%p xor.b32 %phase, %phase, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %more, %k, 8;
    @%more bra CONSUME;

    mov.u32 %at, sums;
    mad.lo.u32 %at, %t, 4, %at;
    st.shared.f32 [%at], %sum;
    fence.proxy.async.shared::cta;
    bar.sync 1, 128;
    setp.eq.u32 %p, %t, 0;
    @!%p bra OUT;
    ld.param.u64 %o, [o];
    mad.wide.u32 %g, %b, 512, %o;
    mov.u32 %at, sums;
    cp.async.bulk.global.shared::cta.bulk_group [%g], [%at], 512;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
OUT:
    ret;
}
"""


def launch(run, text, order, seed):
    """Whether the kernel computes the sums."""
    tensor = np.random.default_rng(1).integers(-50, 50, (TILES * 16, BLOCKS * 32)).astype("f4")
    out = np.zeros((BLOCKS, 4, 32), "f4")
    run(
        text,
        [out, sim.TensorMap(tensor, (32, 16), swizzle="128B")],
        kernel="columns",
        grid=(BLOCKS, 1, 1),
        block=(160, 1, 1),
        order=order,
        seed=seed,
    )
    tiles = tensor.reshape(TILES, 4, 4, BLOCKS, 32).sum(axis=(0, 2)).transpose(1, 0, 2)
    return out.tolist() == tiles.tolist()


@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_the_pipeline(run, order, seed):
    assert launch(run, KERNEL, order, seed)


BUGS = {
    "the consumers do not wait": ("@!%p bra TAKE;", ""),
    "the producer does not wait": ("@!%p bra FREE;", ""),
    "no expected bytes": (
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 2048;",
        "mbarrier.arrive.shared::cta.b64 _, [%full];",
    ),
    "too few expected bytes": ("[%full], 2048;", "[%full], 1024;"),
    "too many expected bytes": ("[%full], 2048;", "[%full], 4096;"),
    "the producer has the parity of the consumers": ("xor.b32 %y, %phase, 1;", "mov.b32 %y, 0;"),
    "one arrival too many": ("[emptied+8], 4;", "[emptied+8], 3;"),
    "one arrival too few": ("[emptied+8], 4;", "[emptied+8], 5;"),
    "emptied before it is read": (
        "    mov.b32 %n, 0;\nROW:",
        "    mov.u32 %empty, emptied; mad.lo.u32 %empty, %stage, 8, %empty; elect.sync _|%p, -1;\n"
        "    @%p mbarrier.arrive.shared::cta.b64 _, [%empty];\n    mov.b32 %n, 0;\nROW:",
    ),
    "the sums are not all there": ("bar.sync 1, 128;", ""),
    "the store is not waited for": ("cp.async.bulk.wait_group.read 0;", ""),
    "the store is in no group": ("cp.async.bulk.commit_group;", ""),
    "no swizzle": ("xor.b32 %piece, %piece, %x;", ""),
}


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_seen(run, bug):
    """In at least one order the result is wrong, or the simulator says what is wrong."""
    old, new = BUGS[bug]
    assert KERNEL.count(old) == 1
    text = KERNEL.replace(old, new)
    if bug == "emptied before it is read":
        # The arrival moves to before the reads.
        late = (
            "    bar.warp.sync -1;\n    elect.sync _|%p, -1;\n    @%p mbarrier.arrive.shared::cta"
        )
        text = text.replace(late + ".b64 _, [%empty];\n", "    bar.warp.sync -1;\n")

    def right(order, seed):
        try:
            return launch(run, text, order, seed)
        except LegoError:
            return False

    assert not all(right(*order) for order in ORDERS)


REPORTS = {
    "too few expected bytes": "0 of 1 arrivals pending, and 1024 bytes have come that nobody",
    "too many expected bytes": "0 of 1 arrivals pending, and 2048 bytes that it expects have not",
    "one arrival too few": "for the mbarrier emptied+8 of CTA (0, 0, 0): its phase 0 (parity 0) "
    "has 1 of 5 arrivals pending",
    "the store is not waited for": "exits while its shared memory is in use by cp.async.bulk",
}


@pytest.mark.parametrize("bug", REPORTS)
def test_reports_name_the_cause(run, bug):
    with pytest.raises(LegoError) as e:
        launch(run, KERNEL.replace(*BUGS[bug]), "late", 0)
    assert REPORTS[bug] in str(e.value)
