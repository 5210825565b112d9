"""A product over a ring of tiles that `cp.async` fills, by `mma.sync`, and its mutants.

A block of 4 warps computes 32 × 32 of C, with k in steps of 32.
"""

from __future__ import annotations

import numpy as np

from lego_mlir import sim
from mutants.mutant import BOUNDS, RACE, UNWRITTEN, WRONG, Kernel, Mutant
from mutants.products import HEADER, names, operands, product

M, N, K = 32, 64, 160

TEXT = f"""{HEADER}
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


def run(ptx: str, data: int, **options: object) -> bool:
    a, b, c = operands(M, N, K, data)
    arguments = [a, b, c, np.uint32(K), np.uint32(N)]
    sim.launch(ptx, "staged", (N // 32, M // 32, 1), (128, 1, 1), arguments, **options)
    return np.array_equal(c, product(a, b))


MUTANTS = (
    Mutant(
        "no wait for the copies",
        "cp.async.wait_group 1;",
        "",
        "fragments hold what was in the tile before its copies came",
        UNWRITTEN,
        early=RACE,
    ),
    Mutant(
        "one group too many may stay",
        "cp.async.wait_group 1;",
        "cp.async.wait_group 2;",
        "the copies of the tile that is used may still be under way",
        UNWRITTEN,
        early=RACE,
    ),
    Mutant(
        "no barrier",
        "    bar.sync 0;\n",
        "",
        "a warp sees its own copies, those of other warps not yet",
        RACE,
    ),
    Mutant(
        "the barrier before the wait",
        "    cp.async.wait_group 1;\n    bar.sync 0;\n",
        "    bar.sync 0;\n    cp.async.wait_group 1;\n",
        "a thread has waited for its own copies; others may not have waited for theirs",
        RACE,
    ),
    Mutant(
        "a barrier for each half of the block",
        "bar.sync 0;",
        "bar.sync 0, 64;",
        "two warps go on without the other two, whose copies they need",
        RACE,
    ),
    Mutant(
        "a barrier of the warp",
        "bar.sync 0;",
        "bar.warp.sync -1;",
        "a warp sees its own copies, those of other warps not yet",
        RACE,
    ),
    Mutant(
        "no empty groups at the end",
        "COPIED:\n    cp.async.commit_group;               // tile i + 2, or none\n",
        "    cp.async.commit_group;\nCOPIED:\n",
        "for the last tile all but one group is waited for, and that one is its own",
        RACE,
    ),
    Mutant(
        "the first two tiles in one group",
        "    cp.async.commit_group;               // tile 0\n",
        "",
        "the group of the tile that is used is the newest, and not waited for",
        UNWRITTEN,
        early=RACE,
    ),
    Mutant(
        "no group for the second tile",
        "    cp.async.commit_group;               // tile 1\n",
        "",
        "tile 1 is in one group with tile 2, so that it is waited for a step too late",
        UNWRITTEN,
        early=RACE,
    ),
    Mutant(
        "copies into the tile in use",
        "mov.b32 %put, 4096;",
        "mov.b32 %put, 0;",
        "tile 2 overwrites tile 0 while warps fetch fragments of it",
        RACE,
    ),
    Mutant(
        "the ring of copies ends too late",
        "setp.eq.u32 %p, %put, 6144; ",
        "setp.eq.u32 %p, %put, 8192; ",
        "copies of A land in the ring of B, those of B behind it",
        BOUNDS,
    ),
    Mutant(
        "the ring of fragments ends too early",
        "setp.eq.u32 %p, %get, 6144; ",
        "setp.eq.u32 %p, %get, 4096; ",
        "the third tile is never used, others twice",
        RACE,
    ),
    Mutant(
        "fragments without the swizzle",
        "    xor.b32 %piece, %piece, %x;          // swizzle of the fragments\n",
        "",
        "fragments come from other columns of k",
        WRONG,
    ),
    Mutant(
        "copies without the swizzle",
        "xor.b32 %x, %x, %piece;              // swizzle of the copies",
        "mov.b32 %x, %piece;",
        "fragments come from other columns of k",
        WRONG,
    ),
    Mutant(
        "the second step adds where it should flip",
        "xor.b32 %fa1, %fa0, 32;",
        "add.u32 %fa1, %fa0, 32;",
        "half of the lanes fetch from the next row",
        UNWRITTEN,
        early=RACE,
    ),
    Mutant(
        "copies a tile behind",
        "[%ga+128], 16;",
        "[%ga+64], 16;",
        "A is a tile behind B from tile 2 on",
        WRONG,
    ),
    Mutant(
        "copies one tile too many",
        "setp.gt.u32 %more, %left, 2;",
        "setp.gt.u32 %more, %left, 1;",
        "reads behind the end of A and B",
        BOUNDS,
    ),
    Mutant(
        "copies of half a piece",
        "cp.async.cg.shared.global [%y+2048], [%gb+64], 16;",
        "cp.async.ca.shared.global [%y+2048], [%gb+64], 8;",
        "half of tile 1 of B is what was there before",
        UNWRITTEN,
    ),
    Mutant(
        "B transposed",
        f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {names('b', 4)}",
        f"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {names('b', 4)}",
        "multiplies by the wrong elements",
        WRONG,
        times=2,
    ),
    Mutant(
        "the last tile is left out",
        "setp.gt.u32 %p, %left, 0;",
        "setp.gt.u32 %p, %left, 1;",
        "C lacks a summand",
        WRONG,
    ),
)

KERNEL = Kernel("staged", lambda: TEXT, run, MUTANTS)
