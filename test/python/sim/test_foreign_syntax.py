"""What compilers write that the examples of the PTX ISA do not: orders, wraps, odd operands."""

import itertools
import re

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

LANES = np.arange(64, dtype="u4")


@pytest.mark.parametrize(
    "words", list(itertools.permutations(["global", "gpu", "acq_rel", "add", "u32"]))[::7]
)
def test_modifiers_in_any_order(run, words):
    out = np.zeros(2, "u4")
    text = f"""
        .reg .b64 %p; .reg .b32 %old;
        ld.param.u64 %p, [out];
        atom.{".".join(words)} %old, [%p], 3;
        st.global.release.gpu.b32 [%p+4], {{ %old }};
    """
    # The assembler wants the type behind the operation.
    run(text, [out], parameters=(("out", "u64"),), record=False)
    assert out[0] == 96


def test_types_keep_their_order(lanewise, run):
    x = np.linspace(-3, 3, 64).astype("f8")
    got = lanewise("cvt.ftz.rn.f32.f64 %d, %a;", "f4", a=x)
    assert (got == x.astype("f4")).all()
    text = ".reg .b64 %a; .reg .b32 %d; cvt.ftz.f64.f32 %d, %a;"
    with pytest.raises(LegoError, match=r"the register %d is .b32 where .f64"):
        run(text, [], record=False)


def test_an_address_of_32_bits_wraps(lanewise):
    lines = """
        .shared .align 4 .b8 s[512];
        mov.b32 %y, s;
        shl.b32 %x, %a, 2;
        st.shared.b32 [%x], %a;
        sub.u32 %y, %x, 128;
        ld.shared.b32 { %d }, [%y+128];
        sub.u32 %y, 64, 128;
        ld.shared.b32 %x, [%y+72];
        mad.lo.u32 %d, %x, 100, %d;
    """
    assert (lanewise(lines, "u4", a=LANES) == LANES % 64 + 200).all()
    lines = ".shared .b32 s[64]; mov.b32 %y, s; sub.u32 %y, 64, 128; ld.shared.b32 %d, [%y+60];"
    with pytest.raises(LegoError, match=r"out of bounds.*byte offset -4 of the shared memory"):
        lanewise(lines, "u4", a=LANES)


def test_special_registers_of_a_gpu(run):
    out = np.zeros((4, 8), "u4")
    text = """
        .reg .b64 %p, %t; .reg .b32 %x<8>, %b;
        ld.param.u64 %p, [out];
        mov.u32 %b, %ctaid.x;
        mad.wide.u32 %p, %b, 32, %p;
        mov.u32 %x0, %smid; mov.u32 %x1, %nsmid; mov.u32 %x2, %gridid; mov.u32 %x3, %envreg7;
        mov.u64 %t, %globaltimer; cvt.u32.u64 %x4, %t;
        mov.u32 %x5, %globaltimer_hi; mov.u32 %x6, %pm3; mov.u32 %x7, %clock_hi;
        st.global.v4.b32 [%p], {%x0, %x1, %x2, %x3};
        st.global.v4.b32 [%p+16], {%x4, %x5, %x6, %x7};
    """
    run(text, [out], parameters=(("out", "u64"),), grid=(4, 1, 1), block=(1, 1, 1))
    assert (out[:, 0] < out[:, 1]).all()
    assert len(set(out[:, 0].tolist())) == 4
    assert (out[:, 4] > 0).all()
    assert (out[:, [3, 5, 6, 7]] == 0).all()


def test_words_of_128_bits(run):
    out, given = np.zeros((32, 4), "u8"), np.arange(64, dtype="u8").reshape(32, 2)
    text = """
        .reg .b64 %p, %q, %lo, %hi; .reg .b32 %t; .reg .b128 %x, %y, %z; .reg .pred %odd;
        ld.param.u64 %p, [out]; ld.param.u64 %q, [given];
        mov.u32 %t, %tid.x;
        mad.wide.u32 %p, %t, 32, %p;
        mad.wide.u32 %q, %t, 16, %q;
        and.b32 %t, %t, 1;
        setp.ne.u32 %odd, %t, 0;
        ld.global.b128 %x, [%q];
        mov.b128 {%lo, %hi}, %x;
        add.u64 %lo, %lo, 1000;
        mov.b128 %y, {%hi, %lo};
        @%odd mov.b128 %y, %x;
        st.global.b128 [%p], %y;
        atom.global.cas.b128 %z, [%q], %y, %x;
        atom.exch.global.b128 %z, [%q], %y;
        st.global.b128 [%p+16], %z;
    """
    run(text, [out, given], parameters=(("out", "u64"), ("given", "u64")), checks=True)
    for t in range(32):
        x = [2 * t, 2 * t + 1]
        y = x if t % 2 else [2 * t + 1, 2 * t + 1000]
        assert out[t].tolist() == [*y, *x]
        assert given[t].tolist() == y


def test_atomics_on_vectors(run):
    out = np.zeros(4, "f4")
    text = """
        .reg .b64 %p; .reg .f32 %a, %b, %c, %d;
        ld.param.u64 %p, [out];
        atom.global.v2.f32.add {%a, %b}, [%p], {0f3F800000, 0f40000000};
        red.relaxed.gpu.global.add.v2.f32 [%p+8], {0f3F800000, 0f40000000};
    """
    run(text, [out], parameters=(("out", "u64"),))
    assert out.tolist() == [32, 64, 32, 64]


def test_match(lanewise):
    a = (np.arange(64) * 7 % 5).astype("u4")
    got = lanewise("match.any.sync.b32 %d, %a, -1;", "u4", a=a)
    wide = lanewise("cvt.u64.u32 %u, %a; match.any.sync.b64 %d, %u, -1;", "u4", a=a)
    for k in range(64):
        warp = a[k // 32 * 32 :][:32]
        assert got[k] == wide[k] == sum(1 << i for i in range(32) if warp[i] == a[k])
    a = np.where(np.arange(64) < 32, 3, a).astype("u4")
    line = "match.all.sync.b32 %d|%p, %a, -1; @%p xor.b32 %d, %d, 1;"
    assert lanewise(line, "u4", a=a).tolist() == [2**32 - 2] * 32 + [0] * 32


def test_match_among_some_lanes(lanewise):
    lines = """
        mov.b32 %d, 0;
        and.b32 %x, %a, 1;
        setp.eq.u32 %p, %x, 0;
        shr.u32 %y, %a, 4;
        @%p match.any.sync.b32 %d, %y, 0x55555555;
        @!%p match.any.sync.b32 %d, %y, 0xAAAAAAAA;
    """
    got = lanewise(lines, "u4", a=LANES)
    for k in range(64):
        same = [i for i in range(32) if (k // 32 * 32 + i) // 16 == k // 16 and i % 2 == k % 2]
        assert got[k] == sum(1 << i for i in same)


@pytest.mark.parametrize("offset", [-40, -3, -1, 0, 1, 2, 9])
def test_find_the_nth_set_bit(lanewise, pairs, offset):
    mask, base = pairs("u4", "u4")
    base = base % 32

    def reference(mask, base):
        if offset == 0:
            return base if mask >> base & 1 else 2**32 - 1
        step, left, at = (1 if offset > 0 else -1), abs(offset), base
        while 0 <= at < 32:
            left -= mask >> at & 1
            if left == 0:
                return at
            at += step
        return 2**32 - 1

    got = lanewise(f"fns.b32 %d, %a, %b, {offset};", "u4", a=mask, b=base)
    want = [reference(*row) for row in zip(mask.tolist(), base.tolist(), strict=True)]
    assert got.tolist() == want


def test_lop3_with_a_predicate(lanewise):
    a, b = LANES % 4, LANES // 4 % 4
    line = "setp.gt.u32 %q, %a, 2; lop3.{}.b32 %d|%p, %a, %b, 3, 0x80, %q; @%p or.b32 %d, %d, 64;"
    for word, combine in (("or", np.logical_or), ("and", np.logical_and)):
        got = lanewise(line.format(word), "u4", a=a, b=b)
        both = a & b & 3
        assert (got == both + 64 * combine(both != 0, a > 2)).all()


@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_set_of_halves(lanewise, form):
    rng = np.random.default_rng(5)
    x, y = rng.integers(-3, 3, (2, 64, 2)).astype("f4")
    if form == "f16":
        words = [v.astype("f2").view("u4").reshape(-1) for v in (x, y)]
    else:
        words = [(v.view("u4") >> 16).astype("u2").view("u4").reshape(-1) for v in (x, y)]
    one = {"f16": 0x3C00, "bf16": 0x3F80}[form]
    for cmp, reference in (("lt", np.less), ("neu", np.not_equal), ("ge", np.greater_equal)):
        holds = reference(x, y)
        a, b = words
        got = lanewise(f"set.{cmp}.{form}x2.{form}x2 %d, %a, %b;", "u4", a=a, b=b)
        assert (got.view("u2").reshape(-1, 2) == holds * one).all()
        got = lanewise(f"set.{cmp}.u32.{form}x2 %d, %a, %b;", "u4", a=a, b=b)
        assert (got.view("u2").reshape(-1, 2) == holds * 0xFFFF).all()
        low = [w.astype("u2") for w in words]
        got = lanewise(f"set.{cmp}.u16.{form} %d, %a, %b;", "u2", a=low[0], b=low[1])
        assert (got == holds[:, 0] * 0xFFFF).all()
        got = lanewise(
            f"setp.eq.u32 %p, 1, 2; set.{cmp}.or.{form}.{form} %d, %a, %b, %p;", "u2",
            a=low[0], b=low[1],
        )  # fmt: skip
        assert (got == holds[:, 0] * one).all()


def test_gross_reciprocals_of_doubles(lanewise):
    x = np.concatenate([np.random.default_rng(1).random(60) * 100, [0.0, np.inf, 5e-324, 1e308]])
    for op, function in (("rcp", lambda v: 1 / v), ("rsqrt", lambda v: 1 / np.sqrt(v))):
        got = lanewise(f"{op}.approx.ftz.f64 %d, %a;", "f8", a=x)
        assert (got.view("u8") & 0xFFFFFFFF == 0).all()
        flushed = np.where(x < 1e-300, 0, x)
        with np.errstate(divide="ignore"):
            want = function(flushed)
        want = np.where(np.abs(want) < 2.3e-308, 0, want)
        np.testing.assert_allclose(got, want, rtol=2**-19)


def test_a_lane_that_no_shuffle_reads_needs_no_value(run):
    out = np.zeros(32, "u4")
    text = """
        .reg .b64 %p; .reg .b32 %t, %x, %d; .reg .pred %first;
        ld.param.u64 %p, [out];
        mov.u32 %t, %tid.x;
        mad.wide.u32 %p, %t, 4, %p;
        setp.eq.u32 %first, %t, LANE;
        @%first mov.u32 %x, 77;
        shfl.sync.idx.b32 %d, %x, 0, 31, -1;
        st.global.u32 [%p], %d;
    """
    run(text.replace("LANE", "0"), [out], parameters=(("out", "u64"),))
    assert (out == 77).all()
    with pytest.raises(LegoError, match=r"shfl.sync.idx.b32 reads %x, which has not been written"):
        run(text.replace("LANE", "1"), [out], parameters=(("out", "u64"),))


def test_caches_and_profilers_are_ignored(run):
    out = np.zeros(32, "u4")
    text = """
        .reg .b64 %p, %policy; .reg .b32 %x;
        ld.param.u64 %p, [out];
        createpolicy.fractional.L2::evict_first.b64 %policy;
        createpolicy.range.global.L2::evict_last.b64 %policy, [%p], 128, 128;
        ld.global.L1::evict_last.L2::cache_hint.b32 %x, [%p], %policy;
        applypriority.global.L2::evict_normal [%p], 128;
        discard.global.L2 [%p], 128;
        atom.add.global.L2::cache_hint.u32 %x, [%p], 1, %policy;
        ldu.global.u32 %x, [%p];
        st.global.L2::cache_hint.u32 [%p+4], %x, %policy;
        pmevent 3;
    """
    run(text, [out], parameters=(("out", "u64"),), block=(1, 1, 1))
    assert out[:2].tolist() == [1, 1]


MODULE = """.version VERSION
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %p; .reg .b32 %r;
    ld.param.u64 %p, [out];
    mov.b32 %r, 7;
    LINE
    st.global.u32 [%p], %r;
    ret;
}
"""


def test_a_newer_isa(run):
    """What is known of it runs; an unknown instruction or modifier is an error at its line."""
    out = np.zeros(1, "u4")
    text = MODULE.replace("VERSION", "99.1")
    run(text.replace("LINE", ""), [out], block=(1, 1, 1), record=False)
    assert out[0] == 7
    for line, message in (
        ("frobnicate.b32 %r, %r;", "frobnicate.b32 is no instruction that the simulator knows"),
        ("add.turbo.u32 %r, %r, 1;", "this form of add is not modelled: add.turbo.u32"),
        ("tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::ld.sync.aligned is not modelled"),
    ):
        out[0] = 0
        with pytest.raises(LegoError, match=message) as e:
            run(text.replace("LINE", line), [out], block=(1, 1, 1), record=False)
        assert e.value.location.line == 9
        assert out[0] == 0, "the kernel has run"
    assert "PTX ISA 99.1" in str(_refused(run, text.replace("LINE", "frobnicate;")))
    assert "'new' is no version" in str(_refused(run, text.replace("99.1", "new")))


def _refused(run, text):
    with pytest.raises(LegoError) as e:
        run(text, [np.zeros(1, "u4")], record=False)
    return e.value


def test_a_kernel_and_arguments_that_do_not_match(run):
    text = MODULE.replace("VERSION", "8.7").replace("LINE", "")
    out = np.zeros(1, "u4")
    for options, arguments, message in (
        ({"kernel": "other"}, [out], "no kernel named other.*its kernels are: k"),
        ({}, [], "k takes 1 arguments, 0 were given.*its parameters are: out"),
        ({}, [out, out], "k takes 1 arguments, 2 were given"),
        ({}, [np.uint32(3)], r"argument 0 of k \(out\): a uint32 scalar has 4 bytes"),
        ({}, ["text"], "str is neither a NumPy array nor a NumPy scalar"),
    ):
        with pytest.raises(LegoError) as e:
            run(text, arguments, record=False, **options)
        assert re.search(message, str(e.value), re.DOTALL)
