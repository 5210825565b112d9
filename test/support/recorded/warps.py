"""Warps, barriers, memory: threads that work together, by scalar instructions."""

from __future__ import annotations

import numpy as np

from recorded.program import Program, kernel

_INDEX = """
.reg .pred %p, %q;
.reg .b32 %t, %lane, %a, %b, %c, %d, %e, %x, %y, %z, %w;
.reg .b64 %out, %in, %at, %wide;
mov.u32 %t, %tid.x;
mov.u32 %lane, %laneid;
ld.param.u64 %out, [out];
ld.param.u64 %in, [in];
mad.wide.u32 %at, %t, 4, %in;
ld.global.u32 %a, [%at];
mad.wide.u32 %at, %t, 4, %out;
"""


def _words(outputs: int, inputs: int, high: int = 1 << 32):  # type: ignore[no-untyped-def]
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            np.zeros(outputs, np.uint32),
            rng.integers(0, high, inputs, np.uint64).astype(np.uint32),
        ]

    return make


def _per_thread(name: str, *texts: str, threads: int = 64, before: str = "", high: int = 1 << 32,
                words: int | None = None) -> Program:  # fmt: skip
    """Each text leaves its result in %d, which is stored at an address of its own."""
    stores = []
    for k, text in enumerate(texts):
        stores.append(f"{{\n{text}\nst.global.u32 [%at+{4 * threads * k}], %d;\n}}")
    text = kernel("u64 out, u64 in", _INDEX + "\n".join(stores), before)
    make = _words(len(texts) * threads, words or threads, high)
    return Program(name, text, make, block=(threads, 1, 1))


_SHUFFLES = [
    f"shfl.sync.{mode}.b32 %d|%p, %a, {b}, {c}, -1; @!%p xor.b32 %d, %d, 0x80000000;"
    for mode, b, c in (
        ("up", 1, 0), ("up", 5, 0), ("up", 3, 0x1800), ("down", 1, 31), ("down", 9, 31),
        ("down", 2, 0x181F), ("bfly", 1, 31), ("bfly", 16, 31), ("bfly", 7, 0x1C1F),
        ("idx", 0, 31), ("idx", 13, 31), ("idx", 40, 31), ("idx", 3, 0x181F),
    )
]  # fmt: skip

PROGRAMS: tuple[Program, ...] = (
    _per_thread(
        "shuffle",
        *_SHUFFLES,
        "and.b32 %x, %a, 31; shfl.sync.idx.b32 %d, %lane, %x, 31, -1;",
    ),
    _per_thread(
        "vote",
        *(
            f"setp.lt.u32 %p, %a, {limit}; vote.sync.{mode}.pred %q, %p, -1; selp.b32 %d, 1, 0, %q;"
            for mode in ("all", "any", "uni")
            for limit in (0, 1 << 31, 0xFFFFFFFF)
        ),
        "setp.lt.u32 %p, %a, 0x80000000; vote.sync.ballot.b32 %d, %p, -1;",
        "setp.lt.u32 %p, %lane, 20; mov.b32 %d, 9; @%p vote.sync.ballot.b32 %d, !%p, 0xfffff;",
        "activemask.b32 %d;",
        "elect.sync %d|%p, -1; @%p add.u32 %d, %d, 100;",
        """setp.gt.u32 %q, %lane, 3; setp.lt.and.u32 %q, %lane, 16, %q; mov.b32 %d, 77;
        setp.ne.u32 %p, 0, 0; @%q elect.sync %d|%p, 0xfff0; @%p add.u32 %d, %d, 100;""",
    ),
    _per_thread(
        "redux",
        *(
            f"redux.sync.{op} %d, %a, -1;"
            for op in ("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32")
        ),
        *(f"redux.sync.{op}.b32 %d, %a, -1;" for op in ("and", "or", "xor")),
    ),
    _per_thread(
        "divergence",
        # Collatz steps, a loop of another length in every thread.
        """and.b32 %x, %a, 1023; add.u32 %x, %x, 1; mov.b32 %d, 0;
        loop: setp.le.u32 %p, %x, 1; @%p bra done;
        and.b32 %y, %x, 1; setp.eq.u32 %q, %y, 0; @%q bra even;
        mad.lo.u32 %x, %x, 3, 1; bra next;
        even: shr.u32 %x, %x, 1;
        next: add.u32 %d, %d, 1; bra loop;
        done:""",
        # Nested branches that meet again at a shuffle.
        """and.b32 %x, %a, 7; setp.lt.u32 %p, %x, 4; @%p bra low;
        setp.lt.u32 %q, %x, 6; @%q bra mid; mul.lo.u32 %y, %a, 3; bra join;
        mid: xor.b32 %y, %a, 0xff; bra join;
        low: add.u32 %y, %a, %x;
        join: shfl.sync.bfly.b32 %d, %y, 5, 31, -1;""",
    ),
    _per_thread(
        "special_registers",
        *(
            f"mov.u32 %d, %{name};"
            for name in (
                "tid.x", "ntid.x", "ctaid.x", "nctaid.x", "laneid",
                "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge",
            )
        ),
        threads=96,
    ),
    _per_thread(
        "vector_access",
        *(
            f"""shl.b32 %x, %t, 4; and.b32 %x, %x, 0x1f0; cvt.u64.u32 %wide, %x;
            add.u64 %wide, %in, %wide; ld.global{hint}.v4.u32 {{%x, %y, %z, %w}}, [%wide];
            xor.b32 %d, %x, %y; mad.lo.u32 %d, %z, 5, %d; mad.lo.u32 %d, %w, 7, %d;"""
            for hint in ("", ".nc", ".L1::no_allocate")
        ),
        """ld.global.v2.b16 {lo, hi}, [%in+4]; cvt.u32.u16 %x, lo; cvt.s32.s16 %y, hi;
        add.u32 %d, %x, %y;""".replace("ld.", ".reg .b16 lo, hi; ld.", 1),
        "mad.wide.u32 %wide, %t, 1, %in; ld.global.s8 %d, [%wide];",
        "mad.wide.u32 %wide, %t, 1, %in; ld.global.u8 %d, [%wide+3];",
        "mad.wide.u32 %wide, %t, 2, %in; ld.global.s16 %d, [%wide];",
        words=128,
    ),
    _per_thread(
        "shared_memory",
        """.shared .align 16 .b8 tile[1024]; mad.lo.u32 %x, %t, 4, 0; mov.u32 %y, tile;
        add.u32 %x, %x, %y; st.shared.u32 [%x], %a; bar.sync 0;
        sub.u32 %z, 63, %t; mad.lo.u32 %z, %z, 4, %y; ld.shared.u32 %d, [%z]; bar.sync 0;""",
        """.shared .align 16 .b8 more[1024]; cvta.shared.u64 %wide, %wide; mov.u64 %wide, more;
        cvta.shared.u64 %wide, %wide; mad.wide.u32 %wide, %t, 4, %wide; st.u32 [%wide], %a;
        barrier.sync 1, 64; xor.b32 %z, %t, 37; mov.u32 %y, more; mad.lo.u32 %z, %z, 4, %y;
        ld.shared.u32 %d, [%z]; bar.sync 0;""".replace("cvta.shared.u64 %wide, %wide; ", "", 1),
        """.shared .align 16 .b8 quad[1024]; mov.u32 %y, quad; mad.lo.u32 %x, %t, 16, %y;
        st.shared.v4.u32 [%x], {%a, %t, %lane, 5}; bar.sync 0; xor.b32 %z, %t, 1;
        mad.lo.u32 %z, %z, 16, %y; ld.shared.v2.u32 {%x, %w}, [%z+8]; ld.shared.u32 %z, [%z];
        add.u32 %d, %x, %w; xor.b32 %d, %d, %z; bar.sync 0;""",
    ),
    Program(
        "local_memory",
        kernel(
            "u64 out, u64 in",
            ".local .align 16 .b8 mine[64];\n" + _INDEX + """
            .reg .b64 %l, %k; mov.u64 %l, mine; and.b32 %x, %a, 15; mad.wide.u32 %k, %x, 4, %l;
            st.local.u32 [mine], 11; st.local.u32 [mine+4], 22; st.local.u32 [%k], %a;
            ld.local.u32 %y, [%k]; mov.u64 %wide, mine; cvta.local.u64 %wide, %wide;
            mad.wide.u32 %wide, %x, 4, %wide; ld.u32 %z, [%wide]; add.u32 %d, %y, %z;
            st.global.u32 [%at], %d;""",
        ),
        _words(32, 32),
    ),
    Program(
        "atomics_shared",
        kernel(
            "u64 out, u64 in",
            ".shared .align 16 .b8 cell[64];\n" + _INDEX + """
            setp.lt.u32 %p, %t, 16; mov.u32 %y, cell; mad.lo.u32 %x, %t, 4, %y;
            @%p st.shared.u32 [%x], 100; bar.sync 0;
            atom.shared.add.u32 %b, [cell], 3;
            red.shared.min.s32 [cell+4], %a;
            red.shared.max.u32 [cell+8], %a;
            red.shared.and.b32 [cell+12], %a;
            red.shared.or.b32 [cell+16], %a;
            red.shared.xor.b32 [cell+20], %a;
            atom.shared.inc.u32 %c, [cell+24], 120;
            atom.shared.dec.u32 %c, [cell+28], 90;
            atom.shared.cas.b32 %c, [cell+32], 100, 5;
            atom.shared.max.s64 %wide, [cell+40], -5;
            red.shared.add.u64 [cell+48], 1;
            bar.sync 0; @%p ld.shared.u32 %d, [%x]; @%p st.global.u32 [%at], %d;""",
        ),
        _words(16, 128),
        block=(128, 1, 1),
    ),
    Program(
        "atomics_global",
        kernel(
            "u64 out, u64 in",
            _INDEX + """
            red.global.add.u32 [%out], %a;
            red.global.min.u32 [%out+4], %a;
            red.global.max.s32 [%out+8], %a;
            red.global.xor.b32 [%out+12], %a;
            atom.relaxed.gpu.global.add.u32 %b, [%out+16], 1;
            red.global.add.u64 [%out+24], 3;
            mov.b32 %y, 0x3c003c00; red.global.add.noftz.f16x2 [%out+32], %y;
            red.global.add.f32 [%out+36], 0f3f800000;
            atom.global.exch.b32 %c, [%out+40], 77;""",
        ),
        _words(16, 256),
        grid=(4, 1, 1),
        block=(256, 1, 1),
    ),
    Program(
        "blocks",
        kernel(
            "u64 out, u64 in",
            _INDEX + """
            mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
            mad.lo.u32 %b, %z, 3, %y; mad.lo.u32 %b, %b, 5, %x; mov.u32 %c, %ntid.x;
            mov.u32 %e, %tid.y; mad.lo.u32 %e, %e, %c, %t; mad.lo.u32 %w, %b, 32, %e;
            mad.wide.u32 %at, %w, 4, %out; mad.lo.u32 %d, %w, 3, %a; st.global.u32 [%at], %d;""",
        ),
        _words(5 * 3 * 2 * 32, 32),
        grid=(5, 3, 2),
        block=(8, 4, 1),
    ),
)  # fmt: skip
