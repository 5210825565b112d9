"""Integer arithmetic and bits against Python's integers."""

import numpy as np
import pytest


def wrap(x, kind):
    bits = np.dtype(kind).itemsize * 8
    x %= 1 << bits
    return x - (1 << bits) if np.dtype(kind).kind == "i" and x >> bits - 1 else x


def name(kind):
    return {"i": "s", "u": "u"}[np.dtype(kind).kind] + str(np.dtype(kind).itemsize * 8)


def trunc_div(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def check(got, reference, *inputs):
    want = [
        wrap(reference(*row), got.dtype)
        for row in zip(*map(np.ndarray.tolist, inputs), strict=True)
    ]
    bad = [(row, g, w) for *row, g, w in zip(*inputs, got.tolist(), want, strict=True) if g != w]
    assert not bad, bad[:5]


INT = ["u2", "u4", "u8", "i2", "i4", "i8"]
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("kind", INT)
@pytest.mark.parametrize("op", BINARY)
def test_binary(lanewise, pairs, op, kind):
    a, b = pairs(kind, kind)
    got = lanewise(f"{op}.{name(kind)} %d, %a, %b;", kind, a=a, b=b)
    check(got, BINARY[op], a, b)


@pytest.mark.parametrize("kind", INT)
def test_upper_half_of_the_product(lanewise, pairs, kind):
    a, b = pairs(kind, kind)
    bits = a.dtype.itemsize * 8
    got = lanewise(f"mul.hi.{name(kind)} %d, %a, %b;", kind, a=a, b=b)
    check(got, lambda a, b: a * b >> bits, a, b)


@pytest.mark.parametrize("kind", ["u2", "u4", "i2", "i4"])
def test_whole_product(lanewise, pairs, kind):
    a, b = pairs(kind, kind)
    wide = f"{kind[0]}{2 * int(kind[1])}"
    check(lanewise(f"mul.wide.{name(kind)} %d, %a, %b;", wide, a=a, b=b), lambda a, b: a * b, a, b)
    c = np.resize(pairs(wide)[0], len(a))
    got = lanewise(f"mad.wide.{name(kind)} %d, %a, %b, %c;", wide, a=a, b=b, c=c)
    check(got, lambda a, b, c: a * b + c, a, b, c)


@pytest.mark.parametrize("kind", INT)
def test_multiply_and_add(lanewise, pairs, kind):
    a, b, c = pairs(kind, kind, kind)
    bits = a.dtype.itemsize * 8
    got = lanewise(f"mad.lo.{name(kind)} %d, %a, %b, %c;", kind, a=a, b=b, c=c)
    check(got, lambda a, b, c: a * b + c, a, b, c)
    got = lanewise(f"mad.hi.{name(kind)} %d, %a, %b, %c;", kind, a=a, b=b, c=c)
    check(got, lambda a, b, c: (a * b >> bits) + c, a, b, c)


@pytest.mark.parametrize("kind", INT)
def test_division_is_towards_zero(lanewise, pairs, kind):
    a, b = pairs(kind, kind)
    b = np.where(b == 0, np.array(3, kind), b)
    check(lanewise(f"div.{name(kind)} %d, %a, %b;", kind, a=a, b=b), trunc_div, a, b)
    got = lanewise(f"rem.{name(kind)} %d, %a, %b;", kind, a=a, b=b)
    check(got, lambda a, b: a - trunc_div(a, b) * b, a, b)


@pytest.mark.parametrize("kind", INT)
def test_sum_of_absolute_differences(lanewise, pairs, kind):
    a, b, c = pairs(kind, kind, kind)
    got = lanewise(f"sad.{name(kind)} %d, %a, %b, %c;", kind, a=a, b=b, c=c)
    check(got, lambda a, b, c: c + abs(a - b), a, b, c)


@pytest.mark.parametrize("kind", ["i2", "i4", "i8"])
def test_sign(lanewise, pairs, kind):
    (a,) = pairs(kind)
    check(lanewise(f"abs.{name(kind)} %d, %a;", kind, a=a), abs, a)
    check(lanewise(f"neg.{name(kind)} %d, %a;", kind, a=a), lambda a: -a, a)


def test_saturating(lanewise, pairs):
    a, b = pairs("i4", "i4")

    def clamp(x):
        return max(-(2**31), min(2**31 - 1, x))

    check(lanewise("add.sat.s32 %d, %a, %b;", "i4", a=a, b=b), lambda a, b: clamp(a + b), a, b)
    check(lanewise("sub.sat.s32 %d, %a, %b;", "i4", a=a, b=b), lambda a, b: clamp(a - b), a, b)


@pytest.mark.parametrize("kind", ["u4", "i4"])
def test_24_bits(lanewise, pairs, kind):
    a, b, c = pairs(kind, kind, kind)

    def low(x):
        x &= 0xFFFFFF
        return x - (1 << 24) if kind == "i4" and x >> 23 else x

    for part, shift in (("lo", 0), ("hi", 16)):
        got = lanewise(f"mul24.{part}.{name(kind)} %d, %a, %b;", kind, a=a, b=b)
        check(got, lambda a, b, s=shift: low(a) * low(b) >> s, a, b)
        got = lanewise(f"mad24.{part}.{name(kind)} %d, %a, %b, %c;", kind, a=a, b=b, c=c)
        check(got, lambda a, b, c, s=shift: (low(a) * low(b) >> s) + c, a, b, c)


def test_packed_halves(lanewise, pairs):
    a, b = pairs("u4", "u4")

    def halves(f):
        return lambda a, b: sum(f(a >> s & 0xFFFF, b >> s & 0xFFFF) % 65536 << s for s in (0, 16))

    check(lanewise("add.u16x2 %d, %a, %b;", "u4", a=a, b=b), halves(lambda x, y: x + y), a, b)
    check(lanewise("min.u16x2 %d, %a, %b;", "u4", a=a, b=b), halves(min), a, b)
    signed = halves(lambda x, y: max(wrap(x, "i2"), wrap(y, "i2")))
    check(lanewise("max.s16x2 %d, %a, %b;", "u4", a=a, b=b), signed, a, b)


@pytest.mark.parametrize("kind", ["u4", "u8"])
def test_counting_bits(lanewise, pairs, kind):
    (a,) = pairs(kind)
    n = a.dtype.itemsize * 8
    check(lanewise(f"popc.b{n} %d, %a;", "u4", a=a), int.bit_count, a)
    check(lanewise(f"clz.b{n} %d, %a;", "u4", a=a), lambda a: n - a.bit_length(), a)
    check(lanewise(f"brev.b{n} %d, %a;", kind, a=a), lambda a: int(f"{a:0{n}b}"[::-1], 2), a)
    check(lanewise(f"bfind.u{n} %d, %a;", "u4", a=a), lambda a: a.bit_length() - 1, a)
    got = lanewise(f"bfind.shiftamt.u{n} %d, %a;", "u4", a=a)
    check(got, lambda a: n - a.bit_length() if a else -1, a)


@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_highest_bit_of_signed(lanewise, pairs, kind):
    (a,) = pairs(kind)
    n = a.dtype.itemsize * 8
    got = lanewise(f"bfind.s{n} %d, %a;", "u4", a=a)
    check(got, lambda a: (~a if a < 0 else a).bit_length() - 1, a)


@pytest.mark.parametrize("kind", ["u4", "i4", "u8", "i8"])
def test_extracting_a_field(lanewise, pairs, kind):
    a, b, c = pairs(kind, "u4", "u4")
    b, c = b % 80, c % 80
    top = a.dtype.itemsize * 8 - 1

    def reference(a, b, c):
        # The pseudocode of the ISA, bit by bit.
        pos, length = b & 255, c & 255
        if kind[0] == "u" or length == 0:
            sign = 0
        else:
            sign = a >> min(pos + length - 1, top) & 1
        bit = [a >> pos + i & 1 if i < length and pos + i <= top else sign for i in range(top + 1)]
        return sum(x << i for i, x in enumerate(bit))

    check(lanewise(f"bfe.{name(kind)} %d, %a, %b, %c;", kind, a=a, b=b, c=c), reference, a, b, c)


@pytest.mark.parametrize("kind", ["u4", "u8"])
def test_inserting_a_field(lanewise, pairs, kind):
    a, b, c = pairs(kind, kind, "u4")
    c = c % 80
    e = np.roll(c, 5)
    n = a.dtype.itemsize * 8

    def reference(a, b, c, d):
        for i in range(d & 255):
            at = (c & 255) + i
            if at < n:
                b = b & ~(1 << at) | (a >> i & 1) << at
        return b

    got = lanewise(f"bfi.b{n} %d, %a, %b, %c, %e;", kind, a=a, b=b, c=c, e=e)
    check(got, reference, a, b, c, e)


def test_extending_and_masks(lanewise, pairs):
    a, b = pairs("u4", "u4")
    b = b % 70

    def extended(a, n):
        a &= (1 << n) - 1
        return a - (1 << n) if n and a >> n - 1 else a

    s = a.view("i4")
    got = lanewise("szext.clamp.s32 %d, %a, %b;", "i4", a=s, b=b)
    check(got, lambda a, b: extended(a, min(b, 32)), s, b)
    got = lanewise("szext.wrap.u32 %d, %a, %b;", "u4", a=a, b=b)
    check(got, lambda a, b: a & (1 << b % 32) - 1, a, b)
    a = a % 40
    got = lanewise("bmsk.clamp.b32 %d, %a, %b;", "u4", a=a, b=b)
    check(got, lambda a, b: (1 << min(b, 32)) - 1 << a, a, b)
    got = lanewise("bmsk.wrap.b32 %d, %a, %b;", "u4", a=a, b=b)
    check(got, lambda a, b: (1 << b % 32) - 1 << a % 32, a, b)


def test_dot_products_of_bytes(lanewise, pairs):
    a, b, c = pairs("u4", "u4", "u4")

    def byte(x, i, kind):
        return wrap(x >> 8 * i & 255, kind)

    got = lanewise("dp4a.u32.s32 %d, %a, %b, %c;", "i4", a=a, b=b, c=c)
    check(
        got, lambda a, b, c: c + sum(byte(a, i, "u1") * byte(b, i, "i1") for i in range(4)), a, b, c
    )
    got = lanewise("dp2a.hi.s32.u32 %d, %a, %b, %c;", "i4", a=a, b=b, c=c)
    check(
        got,
        lambda a, b, c: (
            c + sum(wrap(a >> 16 * i & 65535, "i2") * byte(b, i + 2, "u1") for i in range(2))
        ),
        a,
        b,
        c,
    )


def test_carries_add_up_to_long_numbers(lanewise, pairs):
    a, b = pairs("u8", "u8")
    lines = """
        .reg .b32 %a0, %a1, %b0, %b1, %d0, %d1;
        mov.b64 {%a0, %a1}, %a;
        mov.b64 {%b0, %b1}, %b;
        OP.cc.u32 %d0, %a0, %b0;
        OPc.u32 %d1, %a1, %b1;
        mov.b64 %d, {%d0, %d1};
    """
    check(lanewise(lines.replace("OP", "add"), "u8", a=a, b=b), lambda a, b: a + b, a, b)
    check(lanewise(lines.replace("OP", "sub"), "u8", a=a, b=b), lambda a, b: a - b, a, b)


def test_carries_run_through(lanewise):
    """A middle word that overflows only by the carry that comes in."""
    a, b = np.array([0xFFFFFFFF_00000001], "u8"), np.array([0x00000002_FFFFFFFF], "u8")
    lines = """
        .reg .b32 %a0, %a1, %b0, %b1;
        mov.b64 {%a0, %a1}, %a;
        mov.b64 {%b0, %b1}, %b;
        add.cc.u32 %x, %a0, %b0;
        addc.cc.u32 %x, %a1, 0;
        addc.u32 %d, 0, 0;
    """
    assert lanewise(lines, "u4", a=a, b=b).tolist() == [1]
    lines = lines.replace("add", "sub").replace("%a1, 0;", "0, 0;").replace("%a0, %b0", "%b1, %b0")
    assert lanewise(lines, "u4", a=a, b=b).tolist() == [0xFFFFFFFF]


def test_carries_multiply_long_numbers(lanewise, pairs):
    """The upper 64 bits of a 64-bit square, from 32-bit products with carries."""
    (a,) = pairs("u8")
    lines = """
        .reg .b32 %a0, %a1, %d0, %d1, %m, %n;
        mov.b64 {%a0, %a1}, %a;
        mul.hi.u32 %m, %a0, %a0;
        mad.lo.cc.u32 %m, %a0, %a1, %m;
        madc.hi.u32 %n, %a0, %a1, 0;
        mad.lo.cc.u32 %m, %a1, %a0, %m;
        madc.hi.cc.u32 %n, %a1, %a0, %n;
        addc.u32 %d1, 0, 0;
        mad.lo.cc.u32 %d0, %a1, %a1, %n;
        madc.hi.u32 %d1, %a1, %a1, %d1;
        mov.b64 %d, {%d0, %d1};
    """
    check(lanewise(lines, "u8", a=a), lambda a: a * a >> 64, a)
