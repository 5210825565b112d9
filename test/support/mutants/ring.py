"""A product over a ring of tiles that TMA fills, by `wgmma`, and its mutants.

A block is a warpgroup, which computes 64 × 32 of C with k in steps of 64, and a warp that produces.
"""

from __future__ import annotations

import numpy as np

from lego_mlir import sim
from mutants.mutant import (
    DEADLOCK,
    EXIT,
    FENCE,
    IN_FLIGHT,
    RACE,
    RIGHT,
    TOO_MANY,
    UNWRITTEN,
    WRONG,
    Kernel,
    Mutant,
)
from mutants.products import HEADER, names, operands, product

M, N, K = 64, 64, 384

_EPILOGUE = "".join(
    f"    st.shared.v2.f32 [%at+{h * 1024 + j * 32}], "
    f"{{%c{4 * j + 2 * h}, %c{4 * j + 2 * h + 1}}};\n"
    for j in range(4)
    for h in range(2)
)
_PRODUCTS = "".join(
    f"""    wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {names("c", 16)},
        %da, %db, 1, 1, 1, 0, 0;
    add.u64 %da, %da, 2;                 // step {s}
    add.u64 %db, %db, 2;
"""
    for s in range(4)
)

TEXT = f"""{HEADER}
.visible .entry ring(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128],
                     .param .align 64 .b8 c[128], .param .u32 tiles)
.reqntid 160, 1, 1
{{
    // A ring of three stages; tiles of 64 and 32 rows of 128 bytes, swizzled over 128 bytes.
    .shared .align 1024 .b8 a_ring[24576];
    .shared .align 1024 .b8 b_ring[12288];
    .shared .align 128 .b8 tile[8192];
    .shared .align 8 .b64 full[3];
    .shared .align 8 .b64 empty[3];
    .reg .pred %p, %one, %consumer, %free;
    .reg .b32 %t, %bx, %by, %tiles, %k, %stage, %phase, %parity, %x, %y, %z, %at, %full, %empty;
    .reg .b32 %before;
    .reg .b64 %map, %other, %da, %db;
    .reg .f32 %c<16>;
    mov.u32 %t, %tid.x;
    mov.u32 %bx, %ctaid.x;
    mov.u32 %by, %ctaid.y;
    ld.param.u32 %tiles, [tiles];
    setp.eq.u32 %one, %t, 0;
    @!%one bra MADE;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.init.shared::cta.b64 [full+8], 1;
    mbarrier.init.shared::cta.b64 [full+16], 1;
    mbarrier.init.shared::cta.b64 [empty], 1;
    mbarrier.init.shared::cta.b64 [empty+8], 1;
    mbarrier.init.shared::cta.b64 [empty+16], 1;
    fence.mbarrier_init.release.cluster;
MADE:
    bar.sync 0;
    mov.b32 %k, 0;
    mov.b32 %stage, 0;
    mov.b32 %phase, 0;
    setp.lt.u32 %consumer, %t, 128;
    @%consumer bra CONSUMER;

    elect.sync _|%one, -1;
    @!%one bra OUT;
    mov.b64 %map, a;
    cvta.param.u64 %map, %map;
    mov.b64 %other, b;
    cvta.param.u64 %other, %other;
    shl.b32 %y, %by, 6;
    shl.b32 %z, %bx, 5;
PRODUCE:
    mov.u32 %empty, empty;
    mad.lo.u32 %empty, %stage, 8, %empty;
    xor.b32 %parity, %phase, 1;          // a fresh stage is free
FREE:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%empty], %parity;
    @!%p bra FREE;
    mov.u32 %full, full;
    mad.lo.u32 %full, %stage, 8, %full;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 12288;
    shl.b32 %x, %k, 6;
    mov.u32 %at, a_ring;
    mad.lo.u32 %at, %stage, 8192, %at;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%at], [%map, {{%x, %y}}], [%full];
    mov.u32 %at, b_ring;
    mad.lo.u32 %at, %stage, 4096, %at;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%at], [%other, {{%x, %z}}], [%full];
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p, %stage, 3;            // the producer's end of the ring
    @%p mov.b32 %stage, 0;
    @%p xor.b32 %phase, %phase, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, %tiles;
    @%p bra PRODUCE;
    bra.uni OUT;

CONSUMER:
{"".join(f"    mov.f32 %c{i}, 0f00000000;" + chr(10) for i in range(16))}
    wgmma.fence.sync.aligned;
CONSUME:
    mov.u32 %full, full;
    mad.lo.u32 %full, %stage, 8, %full;
TAKE:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;
    @!%p bra TAKE;
    mov.u32 %at, a_ring;
    mad.lo.u32 %at, %stage, 8192, %at;
    shr.u32 %at, %at, 4;
    cvt.u64.u32 %da, %at;
    or.b64 %da, %da, 0x4000004000010000; // swizzle of A
    mov.u32 %at, b_ring;
    mad.lo.u32 %at, %stage, 4096, %at;
    shr.u32 %at, %at, 4;
    cvt.u64.u32 %db, %at;
    or.b64 %db, %db, 0x4000004000010000; // swizzle of B
{_PRODUCTS}    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 1;
    setp.gt.u32 %free, %k, 0;            // the product before is done: its stage is free
    and.pred %free, %free, %one;
    @%free mbarrier.arrive.shared::cta.b64 _, [%before];
    mov.u32 %before, empty;
    mad.lo.u32 %before, %stage, 8, %before;
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p, %stage, 3;            // the consumers' end of the ring
    @%p mov.b32 %stage, 0;
    @%p xor.b32 %phase, %phase, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, %tiles;
    @%p bra CONSUME;
    wgmma.wait_group.sync.aligned 0;

    // Rows of 128 bytes, of which lane l of warp w has row 16 * w + l / 4, and that 8 below.
    shr.u32 %x, %t, 5;
    bfe.u32 %y, %t, 2, 3;
    mad.lo.u32 %x, %x, 16, %y;
    mov.u32 %at, tile;
    mad.lo.u32 %at, %x, 128, %at;
    and.b32 %y, %t, 3;
    mad.lo.u32 %at, %y, 8, %at;
{_EPILOGUE}    fence.proxy.async.shared::cta;
    bar.sync 1, 128;
    @!%one bra OUT;
    mov.b64 %map, c;
    cvta.param.u64 %map, %map;
    shl.b32 %x, %bx, 5;
    shl.b32 %y, %by, 6;
    mov.u32 %at, tile;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {{%x, %y}}], [%at];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
OUT:
    ret;
}}
"""


def run(ptx: str, data: int, **options: object) -> bool:
    a, b, c = operands(M, N, K, data)
    arguments = [
        sim.TensorMap(a, (64, 64), swizzle="128B"),
        sim.TensorMap(b, (64, 32), swizzle="128B"),
        sim.TensorMap(c, (32, 64)),
        np.uint32(K // 64),
    ]
    sim.launch(ptx, "ring", (N // 32, M // 64, 1), (160, 1, 1), arguments, **options)
    return np.array_equal(c, product(a, b))


MUTANTS = (
    Mutant(
        "the consumers do not wait",
        "    @!%p bra TAKE;\n",
        "",
        "wgmmas of what was in the stage before its tiles arrived",
        UNWRITTEN,
    ),
    Mutant(
        "the producer does not wait",
        "    @!%p bra FREE;\n",
        "",
        "a tile overwrites one that products still read",
        TOO_MANY,
        early=RIGHT,
    ),
    Mutant(
        "the producer has the parity of the consumers",
        "xor.b32 %parity, %phase, 1;          // a fresh stage is free",
        "mov.b32 %parity, %phase;",
        "waits for a stage that nobody has taken",
        DEADLOCK,
    ),
    Mutant(
        "the consumers' parity never flips",
        "    @%p xor.b32 %phase, %phase, 1;\n    add.u32 %k, %k, 1;\n"
        "    setp.lt.u32 %p, %k, %tiles;\n    @%p bra CONSUME;",
        "    add.u32 %k, %k, 1;\n    setp.lt.u32 %p, %k, %tiles;\n    @%p bra CONSUME;",
        "the second time round the ring nobody waits",
        DEADLOCK,
    ),
    Mutant(
        "the producer's parity never flips",
        "    @%p xor.b32 %phase, %phase, 1;\n    add.u32 %k, %k, 1;\n"
        "    setp.lt.u32 %p, %k, %tiles;\n    @%p bra PRODUCE;",
        "    add.u32 %k, %k, 1;\n    setp.lt.u32 %p, %k, %tiles;\n    @%p bra PRODUCE;",
        "the second time round the ring a stage is filled before it is free",
        TOO_MANY,
        early=DEADLOCK,
    ),
    Mutant(
        "no expected bytes",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 12288;",
        "mbarrier.arrive.shared::cta.b64 _, [%full];",
        "the phase is complete before the tiles have come",
        UNWRITTEN,
        early=RACE,
    ),
    Mutant(
        "the bytes of one tile only",
        "[%full], 12288;",
        "[%full], 8192;",
        "the phase is complete before both tiles have come",
        UNWRITTEN,
        early=RACE,
    ),
    Mutant(
        "more bytes than come",
        "[%full], 12288;",
        "[%full], 16384;",
        "waits forever",
        DEADLOCK,
    ),
    Mutant(
        "one tile tells the wrong mbarrier",
        "[%at], [%other, {%x, %z}], [%full];",
        "[%at], [%other, {%x, %z}], [%empty];",
        "a free stage has 4096 bytes that nobody expects, a full one lacks them",
        DEADLOCK,
    ),
    Mutant(
        "two arrivals where one comes",
        "mbarrier.init.shared::cta.b64 [empty+8], 1;",
        "mbarrier.init.shared::cta.b64 [empty+8], 2;",
        "the stage never becomes free",
        DEADLOCK,
    ),
    Mutant(
        "every consumer frees the stage",
        "    and.pred %free, %free, %one;\n",
        "",
        "128 arrivals where one is meant: phases pass that nobody has waited for",
        DEADLOCK,
    ),
    Mutant(
        "an mbarrier that nobody made",
        "    mbarrier.init.shared::cta.b64 [full+16], 1;\n",
        "",
        "waits for whatever is there",
        "is not initialised",
    ),
    Mutant(
        "no fence after the mbarriers are made",
        "    fence.mbarrier_init.release.cluster;\n",
        "",
        "the copy engine may see an mbarrier before it is made",
        FENCE,
    ),
    Mutant(
        "no barrier after the mbarriers are made",
        "MADE:\n    bar.sync 0;\n",
        "MADE:\n",
        "other threads may wait for an mbarrier before it is made",
        RACE,
    ),
    Mutant(
        "a wgmma in flight when its stage is free",
        "wgmma.wait_group.sync.aligned 1;",
        "wgmma.wait_group.sync.aligned 2;",
        "a tile overwrites one that products still read",
        RACE,
    ),
    Mutant(
        "the stage in use is freed",
        "@%free mbarrier.arrive.shared::cta.b64 _, [%before];\n"
        "    mov.u32 %before, empty;\n    mad.lo.u32 %before, %stage, 8, %before;\n",
        "mov.u32 %before, empty;\n    mad.lo.u32 %before, %stage, 8, %before;\n"
        "    @%one mbarrier.arrive.shared::cta.b64 _, [%before];\n",
        "a tile overwrites one that products still read",
        RACE,
    ),
    Mutant(
        "the products are in no group",
        "    wgmma.commit_group.sync.aligned;\n",
        "",
        "no wait is for them: accumulators are read while they change",
        IN_FLIGHT,
        early=RACE,
    ),
    Mutant(
        "the last product is not waited for",
        "    wgmma.wait_group.sync.aligned 0;\n",
        "",
        "accumulators are stored before the last tile is added",
        IN_FLIGHT,
    ),
    Mutant(
        "no wgmma.fence",
        "    wgmma.fence.sync.aligned;\n",
        "",
        "the product may begin before the accumulators are zero",
        "without a wgmma.fence before it",
    ),
    Mutant(
        "A without the swizzle",
        "0x4000004000010000; // swizzle of A",
        "0x0000004000010000;",
        "reads A at other addresses",
        WRONG,
    ),
    Mutant(
        "B in 64-byte swizzle",
        "0x4000004000010000; // swizzle of B",
        "0x8000004000010000;",
        "reads B at other addresses",
        WRONG,
    ),
    Mutant(
        "the groups of rows of A half as far apart",
        "0x4000004000010000; // swizzle of A",
        "0x4000002000010000;",
        "reads rows of A twice, others not at all",
        WRONG,
    ),
    Mutant(
        "steps along k twice as wide",
        "    add.u64 %da, %da, 2;                 // step 1\n",
        "    add.u64 %da, %da, 4;\n",
        "multiplies columns of A by others of B",
        RACE,
        early=UNWRITTEN,
    ),
    Mutant(
        "the address of a tensor map is not generic",
        "    cvta.param.u64 %other, %other;\n",
        "",
        "looks for the map of B where none is",
        "where there is no buffer",
    ),
    Mutant(
        "boxes that overlap",
        "shl.b32 %x, %k, 6;",
        "shl.b32 %x, %k, 5;",
        "half of k twice, half not at all",
        WRONG,
    ),
    Mutant(
        "stages of A that overlap",
        "mad.lo.u32 %at, %stage, 8192, %at;\n    cp.async",
        "mad.lo.u32 %at, %stage, 4096, %at;\n    cp.async",
        "a tile overwrites half of one that products still read",
        RACE,
    ),
    Mutant(
        "no proxy fence before the store",
        "    fence.proxy.async.shared::cta;\n",
        "",
        "the copy engine may read the tile of C as it was before",
        FENCE,
    ),
    Mutant(
        "no barrier before the store",
        "    bar.sync 1, 128;\n",
        "",
        "rows of other warps may not be there yet",
        RACE,
    ),
    Mutant(
        "the store is not waited for",
        "    cp.async.bulk.wait_group.read 0;\n",
        "",
        "shared memory may belong to another block before it is read",
        EXIT,
        early=RIGHT,
    ),
    Mutant(
        "the store is in no group",
        "    cp.async.bulk.commit_group;\n",
        "",
        "the wait is for nothing",
        EXIT,
        early=RIGHT,
    ),
)

KERNEL = Kernel("ring", lambda: TEXT, run, MUTANTS)
