"""Shuffles, votes, reductions, elections, and atomics."""

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

LANES = np.arange(64, dtype="u4")


def shuffled(mode, b, c):
    """The ISA's pseudocode, lane by lane."""
    values, valid = [], []
    for lane in range(32):
        segment, clamp = c >> 8 & 31, c & 31
        most, least = (lane & segment) | (clamp & ~segment), lane & segment
        j = {
            "up": lane - b,
            "down": lane + b,
            "bfly": lane ^ b,
            "idx": least | (b & ~segment),
        }[mode]
        holds = j >= most if mode == "up" else j <= most
        values.append(j if holds else lane)
        valid.append(holds)
    return values, valid


@pytest.mark.parametrize("c", [0x1F, 0x00, 0x181F, 0x1800, 0x1C03])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(lanewise, mode, c):
    for b in (0, 1, 5, 16, 31):
        values, valid = shuffled(mode, b, c)
        line = f"shfl.sync.{mode}.b32 %d|%p, %a, {b}, {c}, -1; @%p or.b32 %d, %d, 256;"
        want = [v + 256 * h for v, h in zip(values, valid, strict=True)]
        got = lanewise(line, "u4", a=LANES % 32)
        assert got.tolist() == want * 2


def test_a_shuffle_waits_for_lanes_that_come_later(lanewise):
    """Half the warp goes through a loop first; the shuffle still sees all lanes."""
    lines = """
        setp.lt.u32 %p, %a, 40;
        mov.b32 %x, %a;
        @%p bra MEET;
        mov.b32 %y, 0;
    LOOP:
        add.u32 %x, %x, 100;
        add.u32 %y, %y, 1;
        setp.lt.u32 %q, %y, 3;
        @%q bra LOOP;
    MEET:
        shfl.sync.bfly.b32 %d, %x, 31, 31, -1;
    """
    x = [n if n < 40 else n + 300 for n in range(64)]
    assert lanewise(lines, "u4", a=LANES).tolist() == [x[n ^ 31] for n in range(64)]


def test_two_halves_of_a_warp_shuffle_apart(lanewise):
    lines = """
        and.b32 %x, %a, 16;
        setp.ne.u32 %p, %x, 0;
        @%p bra HIGH;
        shfl.sync.idx.b32 %d, %a, 3, 31, 0x0000FFFF;
        bra.uni MEET;
    HIGH:
        shfl.sync.idx.b32 %d, %a, 20, 31, 0xFFFF0000;
    MEET:
    """
    want = [32 * (n // 32) + (20 if n & 16 else 3) for n in range(64)]
    assert lanewise(lines, "u4", a=LANES).tolist() == want


def test_votes(lanewise):
    lines = "setp.lt.u32 %p, %a, 35; vote.sync.OP %q, %p, -1; selp.u32 %d, 1, 0, %q;"
    for op, want in (("all", [1, 0]), ("any", [1, 1]), ("uni", [1, 0])):
        got = lanewise(lines.replace("OP", op + ".pred"), "u4", a=LANES)
        assert got.tolist() == [want[n // 32] for n in range(64)]
    got = lanewise("setp.lt.u32 %p, %a, 35; vote.sync.ballot.b32 %d, !%p, -1;", "u4", a=LANES)
    assert got.tolist() == [0] * 32 + [2**32 - 8] * 32


def test_guarded_votes_count_only_active_lanes(lanewise):
    lines = """
        setp.lt.u32 %p, %a, 8;
        mov.b32 %d, 5;
        setp.ne.u32 %q, %a, 3;
        @%p vote.sync.ballot.b32 %d, %q, 0xFF;
    """
    assert lanewise(lines, "u4", a=LANES[:32]).tolist() == [0xF7] * 8 + [5] * 24


def test_reductions(lanewise):
    a = np.random.default_rng(1).integers(-(2**31), 2**31, 64).astype("i4")
    warps = a.reshape(2, 32)
    for op, want in (
        ("add.s32", warps.sum(axis=1, dtype="i4")),
        ("min.s32", warps.min(axis=1)),
        ("max.s32", warps.max(axis=1)),
        ("max.u32", warps.view("u4").max(axis=1).view("i4")),
        ("and.b32", np.bitwise_and.reduce(warps, axis=1)),
        ("or.b32", np.bitwise_or.reduce(warps, axis=1)),
        ("xor.b32", np.bitwise_xor.reduce(warps, axis=1)),
    ):
        got = lanewise(f"redux.sync.{op} %d, %a, -1;", "i4", a=a)
        assert got.tolist() == np.repeat(want, 32).tolist(), op


def test_one_lane_is_elected(lanewise):
    lines = "elect.sync %d|%p, 0xFFFFFFF0; @%p add.u32 %d, %d, 100;"
    lines = f"setp.ge.u32 %q, %a, 4; mov.b32 %d, 9; @!%q bra DONE; {lines} DONE:"
    assert lanewise(lines, "u4", a=LANES[:32]).tolist() == [9] * 4 + [104] + [4] * 27


def test_a_lane_that_its_mask_does_not_name(lanewise):
    with pytest.raises(
        LegoError, match="in lane 4, which its member mask 0x0000000f does not name"
    ):
        lanewise("shfl.sync.idx.b32 %d, %a, 0, 31, 15;", "u4", a=LANES)


def test_a_mate_that_never_comes(lanewise):
    """One half of the warp waits at a barrier, the other for that half."""
    lines = """
        setp.lt.u32 %p, %a, 16;
        mov.b32 %d, 0;
        @%p bra LOW;
        barrier.sync 0;
        bra.uni MEET;
    LOW:
        shfl.sync.idx.b32 %d, %a, 0, 31, -1;
    MEET:
    """
    with pytest.raises(LegoError, match=r"16 wait at `barrier.sync 0` .* 16 wait at `shfl.sync"):
        lanewise(lines, "u4", a=LANES[:32])


def test_atomics_on_one_address_are_serialized(run):
    total = np.zeros(1, "u4")
    old = np.zeros(512, "u4")
    body = """
        .reg .b32 %t, %b, %x; .reg .b64 %p, %o, %a;
        ld.param.u64 %p, [p];
        ld.param.u64 %o, [o];
        mov.u32 %t, %tid.x;
        mov.u32 %b, %ctaid.x;
        mad.lo.u32 %t, %b, 128, %t;
        atom.global.add.u32 %x, [%p], 3;
        mad.wide.u32 %a, %t, 4, %o;
        st.global.b32 [%a], %x;
    """
    run(
        body,
        [total, old],
        parameters=(("p", "u64"), ("o", "u64")),
        grid=(4, 1, 1),
        block=(128, 1, 1),
    )
    assert total[0] == 3 * 512
    assert sorted(old.tolist()) == list(range(0, 3 * 512, 3))


@pytest.mark.parametrize("count", [2, 4])
def test_reductions_of_vectors_add_each_element(run, count):
    sums = np.arange(8 * count, dtype="f4")
    body = f"""
        .reg .b32 %t; .reg .b64 %p, %a; .reg .f32 %x;
        ld.param.u64 %p, [p];
        mov.u32 %t, %tid.x;
        cvt.rn.f32.u32 %x, %t;
        rem.u32 %t, %t, 8;
        mad.wide.u32 %a, %t, {4 * count}, %p;
        red.relaxed.gpu.global.add.v{count}.f32 [%a], {{{", ".join(["%x", "1.0"] * (count // 2))}}};
    """.replace("1.0", "0f3F800000")
    expected = sums.reshape(8, count).copy()
    for thread in range(64):
        expected[thread % 8] += np.array([thread, 1] * (count // 2), "f4")
    run(body, [sums], parameters=(("p", "u64"),), block=(64, 1, 1))
    assert sums.tolist() == expected.ravel().tolist()


def test_reductions_of_vectors_are_aligned(run):
    body = """
        .reg .b64 %p; .reg .f32 %x;
        ld.param.u64 %p, [p];
        mov.f32 %x, 0f00000000;
        red.global.add.v4.f32 [%p+8], {%x, %x, %x, %x};
    """
    with pytest.raises(LegoError, match="aligned"):
        run(body, [np.zeros(16, "f4")], parameters=(("p", "u64"),))


def test_atomics_in_shared_memory_of_each_block(run):
    out = np.zeros((2, 8), "u4")
    body = """
        .reg .pred %q; .reg .b32 %t, %b, %x; .reg .b64 %o, %a, %s;
        .shared .align 4 .b8 bins[32];
        mov.u32 %t, %tid.x;
        mov.u32 %b, %ctaid.x;
        mov.b64 %s, bins;
        setp.ge.u32 %q, %t, 8;
        @%q bra COUNT;
        mad.wide.u32 %a, %t, 4, %s;
        st.shared.b32 [%a], 0;
    COUNT:
        bar.sync 0;
        mul.lo.u32 %x, %t, %t;
        add.u32 %x, %x, %b;
        and.b32 %x, %x, 7;
        mad.wide.u32 %a, %x, 4, %s;
        red.shared.add.u32 [%a], 1;
        bar.sync 0;
        @%q exit;
        mad.wide.u32 %a, %t, 4, %s;
        ld.shared.b32 %x, [%a];
        ld.param.u64 %o, [o];
        mad.lo.u32 %t, %b, 8, %t;
        mad.wide.u32 %a, %t, 4, %o;
        st.global.b32 [%a], %x;
    """
    run(body, [out], parameters=(("o", "u64"),), grid=(2, 1, 1), block=(64, 1, 1))
    want = [np.bincount((np.arange(64) ** 2 + b) % 8, minlength=8).tolist() for b in range(2)]
    assert out.tolist() == want


OPERATIONS = {
    "and.b32": (0xFF, lambda old, n: old & n),
    "or.b32": (0x100, lambda old, n: old | n),
    "xor.b32": (0xAA, lambda old, n: old ^ n),
    "exch.b32": (7, lambda old, n: n),
    "min.s32": (20, min),
    "max.u32": (5, max),
    "inc.u32": (0, lambda old, n: 0 if old >= n else old + 1),
    "dec.u32": (5, lambda old, n: n if old == 0 or old > n else old - 1),
}


@pytest.mark.parametrize("op", OPERATIONS)
def test_atomic_operations(run, op):
    start, function = OPERATIONS[op]
    cell, old = np.array([start], "u4"), np.zeros(32, "u4")
    body = f"""
        .reg .b32 %t, %x; .reg .b64 %p, %o, %a;
        ld.param.u64 %p, [p];
        ld.param.u64 %o, [o];
        mov.u32 %t, %tid.x;
        atom.relaxed.gpu.global.{op} %x, [%p], %t;
        mad.wide.u32 %a, %t, 4, %o;
        st.global.b32 [%a], %x;
    """
    run(body, [cell, old], parameters=(("p", "u64"), ("o", "u64")))
    value, seen = start, []
    for n in range(32):
        seen.append(value)
        value = function(value, n)
    assert cell[0] == value
    assert old.tolist() == seen


def test_compare_and_swap_and_float_addition(run):
    cell, total = np.array([3], "u8"), np.array([0.5], "f4")
    body = """
        .reg .b32 %t, %f; .reg .b64 %p, %o, %u, %v;
        ld.param.u64 %p, [p];
        ld.param.u64 %o, [o];
        mov.u32 %t, %tid.x;
        cvt.u64.u32 %u, %t;
        add.u64 %v, %u, 1;
        atom.acq_rel.sys.global.cas.b64 %u, [%p], %u, %v;
        cvt.rn.f32.u32 %f, %t;
        red.global.add.f32 [%o], %f;
    """
    run(body, [cell, total], parameters=(("p", "u64"), ("o", "u64")))
    assert cell[0] == 32
    assert total[0] == 0.5 + 31 * 16
