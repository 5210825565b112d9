"""Two matrix products as pipelines, C = A·Bᵀ of f16 matrices with both rows along k, C in f32.

They are right, and written so that a test can break them line by line.
"""

import numpy as np

from lego_mlir import sim

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def names(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and a C full of NaN; sums of products of them are exact in f32."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (rows, k)).astype("f2") for rows in (m, n))
    return a, b, np.full((m, n), np.nan, "f4")


# --- cp.async, mma.sync: one block of 4 warps for 32 × 32 of C, k in steps of 32 ---

STAGED = f"""{HEADER}
.visible .entry staged(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 k, .param .u32 n)
.reqntid 128, 1, 1
{{
    // Tiles of 32 rows of 64 bytes; piece p of row r lies at p ^ (r / 2 % 4).
    .shared .align 128 .b8 a_ring[6144];
    .shared .align 128 .b8 b_ring[6144];
    .reg .pred %p, %more, %zero;
    .reg .b32 %t, %bx, %by, %k, %n, %row, %piece, %x, %y, %to, %left, %i, %put, %get, %at;
    .reg .b32 %a<4>, %b<4>, %fa<2>, %fb<2>;
    .reg .b64 %ga, %gb, %gc, %base;
    .reg .f32 %c<8>;
    mov.u32 %t, %tid.x;
    mov.u32 %bx, %ctaid.x;
    mov.u32 %by, %ctaid.y;
    ld.param.u32 %k, [k];
    ld.param.u32 %n, [n];

    // Thread t copies piece t % 4 of row t / 4 of both tiles.
    shr.u32 %row, %t, 2;
    and.b32 %piece, %t, 3;
    shr.u32 %x, %row, 1;
    and.b32 %x, %x, 3;
    xor.b32 %x, %x, %piece;              // swizzle of the copies
    shl.b32 %to, %row, 6;
    mad.lo.u32 %to, %x, 16, %to;
    mad.lo.u32 %x, %by, 32, %row;
    mul.lo.u32 %x, %x, %k;
    mad.lo.u32 %x, %piece, 8, %x;
    ld.param.u64 %base, [a];
    mad.wide.u32 %ga, %x, 2, %base;
    mad.lo.u32 %x, %bx, 32, %row;
    mul.lo.u32 %x, %x, %k;
    mad.lo.u32 %x, %piece, 8, %x;
    ld.param.u64 %base, [b];
    mad.wide.u32 %gb, %x, 2, %base;

    // Warp w multiplies 16 rows of A, from 16 * (w / 2), by 16 rows of B, from 16 * (w % 2). Of its
    // lanes, lane l fetches row l % 16 and piece l / 16, and for the second step the piece beside.
    and.b32 %row, %t, 15;
    bfe.u32 %piece, %t, 4, 1;
    shr.u32 %x, %row, 1;
    and.b32 %x, %x, 3;
    xor.b32 %piece, %piece, %x;          // swizzle of the fragments
    shl.b32 %piece, %piece, 4;
    shr.u32 %x, %t, 6;
    mad.lo.u32 %x, %x, 16, %row;
    mad.lo.u32 %fa0, %x, 64, %piece;
    xor.b32 %fa1, %fa0, 32;
    bfe.u32 %x, %t, 5, 1;
    mad.lo.u32 %x, %x, 16, %row;
    mad.lo.u32 %fb0, %x, 64, %piece;
    xor.b32 %fb1, %fb0, 32;
{"".join(f"    mov.f32 %c{i}, 0f00000000;" + chr(10) for i in range(8))}
    // Two tiles are under way before the first is used, in a ring of three.
    mov.u32 %x, a_ring;
    add.u32 %x, %x, %to;
    mov.u32 %y, b_ring;
    add.u32 %y, %y, %to;
    cp.async.cg.shared.global [%x], [%ga], 16;
    cp.async.cg.shared.global [%y], [%gb], 16;
    cp.async.commit_group;               // tile 0
    cp.async.cg.shared.global [%x+2048], [%ga+64], 16;
    cp.async.cg.shared.global [%y+2048], [%gb+64], 16;
    cp.async.commit_group;               // tile 1
    mov.b32 %put, 4096;
    mov.b32 %get, 0;
    shr.u32 %left, %k, 5;
LOOP:
    cp.async.wait_group 1;
    bar.sync 0;
    setp.gt.u32 %more, %left, 2;
    @!%more bra COPIED;
    mov.u32 %x, a_ring;
    add.u32 %x, %x, %to;
    add.u32 %x, %x, %put;
    mov.u32 %y, b_ring;
    add.u32 %y, %y, %to;
    add.u32 %y, %y, %put;
    cp.async.cg.shared.global [%x], [%ga+128], 16;
    cp.async.cg.shared.global [%y], [%gb+128], 16;
COPIED:
    cp.async.commit_group;               // tile i + 2, or none
    mov.u32 %x, a_ring;
    add.u32 %x, %x, %get;
    mov.u32 %y, b_ring;
    add.u32 %y, %y, %get;
{
    "".join(
        f'''    add.u32 %at, %x, %fa{s};
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {names("a", 4)}, [%at];
    add.u32 %at, %y, %fb{s};
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {names("b", 4)}, [%at];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%c0, %c1, %c2, %c3}},
        {names("a", 4)}, {{%b0, %b2}}, {{%c0, %c1, %c2, %c3}};
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%c4, %c5, %c6, %c7}},
        {names("a", 4)}, {{%b1, %b3}}, {{%c4, %c5, %c6, %c7}};
'''
        for s in range(2)
    )
}
    add.u32 %put, %put, 2048;
    setp.eq.u32 %p, %put, 6144;          // the end of the ring, for copies
    @%p mov.b32 %put, 0;
    add.u32 %get, %get, 2048;
    setp.eq.u32 %p, %get, 6144;          // the end of the ring, for fragments
    @%p mov.b32 %get, 0;
    add.u64 %ga, %ga, 64;
    add.u64 %gb, %gb, 64;
    sub.u32 %left, %left, 1;
    setp.gt.u32 %p, %left, 0;
    @%p bra LOOP;

    shr.u32 %x, %t, 6;
    bfe.u32 %y, %t, 2, 3;
    mad.lo.u32 %row, %x, 16, %y;
    mad.lo.u32 %row, %by, 32, %row;
    bfe.u32 %x, %t, 5, 1;
    and.b32 %y, %t, 3;
    shl.b32 %y, %y, 1;
    mad.lo.u32 %y, %x, 16, %y;
    mad.lo.u32 %y, %bx, 32, %y;
    mad.lo.u32 %x, %row, %n, %y;
    ld.param.u64 %base, [c];
    mad.wide.u32 %gc, %x, 4, %base;
    mad.wide.u32 %base, %n, 32, %gc;
    st.global.v2.f32 [%gc], {{%c0, %c1}};
    st.global.v2.f32 [%base], {{%c2, %c3}};
    st.global.v2.f32 [%gc+32], {{%c4, %c5}};
    st.global.v2.f32 [%base+32], {{%c6, %c7}};
    ret;
}}
"""


def run_staged(text: str, m: int = 32, n: int = 64, k: int = 256, **options: object) -> bool:
    """Whether the kernel computes the product."""
    a, b, c = operands(m, n, k)
    arguments = [a, b, c, np.uint32(k), np.uint32(n)]
    sim.launch(text, "staged", (n // 32, m // 32, 1), (128, 1, 1), arguments, **options)
    return bool((c == a.astype("f4") @ b.T.astype("f4")).all())


# --- TMA, mbarriers, wgmma: a producer warp, and a warpgroup for 64 × 32 of C, k in steps of 64 ---

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

RING = f"""{HEADER}
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
    .reg .b32 %t, %bx, %by, %tiles, %k, %slot, %phase, %parity, %x, %y, %z, %at, %full, %empty;
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
    mov.b32 %slot, 0;
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
    mad.lo.u32 %empty, %slot, 8, %empty;
    xor.b32 %parity, %phase, 1;          // a fresh slot is free
FREE:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%empty], %parity;
    @!%p bra FREE;
    mov.u32 %full, full;
    mad.lo.u32 %full, %slot, 8, %full;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 12288;
    shl.b32 %x, %k, 6;
    mov.u32 %at, a_ring;
    mad.lo.u32 %at, %slot, 8192, %at;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%at], [%map, {{%x, %y}}], [%full];
    mov.u32 %at, b_ring;
    mad.lo.u32 %at, %slot, 4096, %at;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%at], [%other, {{%x, %z}}], [%full];
    add.u32 %slot, %slot, 1;
    setp.eq.u32 %p, %slot, 3;            // the producer's end of the ring
    @%p mov.b32 %slot, 0;
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
    mad.lo.u32 %full, %slot, 8, %full;
TAKE:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;
    @!%p bra TAKE;
    mov.u32 %at, a_ring;
    mad.lo.u32 %at, %slot, 8192, %at;
    shr.u32 %at, %at, 4;
    cvt.u64.u32 %da, %at;
    or.b64 %da, %da, 0x4000004000010000; // swizzle of A
    mov.u32 %at, b_ring;
    mad.lo.u32 %at, %slot, 4096, %at;
    shr.u32 %at, %at, 4;
    cvt.u64.u32 %db, %at;
    or.b64 %db, %db, 0x4000004000010000; // swizzle of B
{_PRODUCTS}    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 1;
    setp.gt.u32 %free, %k, 0;            // the product before is done: its slot is free
    and.pred %free, %free, %one;
    @%free mbarrier.arrive.shared::cta.b64 _, [%before];
    mov.u32 %before, empty;
    mad.lo.u32 %before, %slot, 8, %before;
    add.u32 %slot, %slot, 1;
    setp.eq.u32 %p, %slot, 3;            // the consumers' end of the ring
    @%p mov.b32 %slot, 0;
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


def run_ring(text: str, m: int = 64, n: int = 64, k: int = 512, **options: object) -> bool:
    """Whether the kernel computes the product."""
    a, b, c = operands(m, n, k)
    arguments = [
        sim.TensorMap(a, (64, 64), swizzle="128B"),
        sim.TensorMap(b, (64, 32), swizzle="128B"),
        sim.TensorMap(c, (32, 64)),
        np.uint32(k // 64),
    ]
    sim.launch(text, "ring", (n // 32, m // 64, 1), (160, 1, 1), arguments, **options)
    return bool((c == a.astype("f4") @ b.T.astype("f4")).all())
