"""Logic, shifts, permutations and moves against Python's integers."""

import numpy as np
import pytest


def check(got, reference, *inputs):
    mask = (1 << got.dtype.itemsize * 8) - 1
    want = [reference(*row) & mask for row in zip(*map(np.ndarray.tolist, inputs), strict=True)]
    assert got.view(f"u{got.dtype.itemsize}").tolist() == want


BINARY = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}


@pytest.mark.parametrize("size", [2, 4, 8])
def test_bitwise(lanewise, pairs, size):
    a, b = pairs(f"u{size}", f"u{size}")
    for op, reference in BINARY.items():
        got = lanewise(f"{op}.b{8 * size} %d, %a, %b;", f"u{size}", a=a, b=b)
        check(got, reference, a, b)
    check(lanewise(f"not.b{8 * size} %d, %a;", f"u{size}", a=a), lambda a: ~a, a)
    check(lanewise(f"cnot.b{8 * size} %d, %a;", f"u{size}", a=a), lambda a: int(a == 0), a)


@pytest.mark.parametrize("table", [0x00, 0x01, 0x96, 0xE8, 0xCA, 0x3C, 0xFF])
def test_lop3(lanewise, pairs, table):
    a, b, c = pairs("u4", "u4", "u4")

    def reference(a, b, c):
        # The ISA: the table is the function applied to these three constants.
        bits = range(32)
        index = [(a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1) for i in bits]
        return sum((table >> n & 1) << i for i, n in zip(bits, index, strict=True))

    check(lanewise(f"lop3.b32 %d, %a, %b, %c, {table};", "u4", a=a, b=b, c=c), reference, a, b, c)


def test_predicate_logic(lanewise):
    a = np.arange(64, dtype="u4")
    lines = """
        setp.lt.u32 %p, %a, 20;
        setp.gt.u32 %q, %a, 10;
        and.pred %p, %p, %q;
        not.pred %q, %p;
        xor.pred %q, %q, %p;
        selp.u32 %d, 2, 0, %p;
        @%q add.u32 %d, %d, 1;
    """
    assert lanewise(lines, "u4", a=a).tolist() == [3 if 10 < x < 20 else 1 for x in range(64)]


@pytest.mark.parametrize("kind", ["u2", "i2", "u4", "i4", "u8", "i8"])
def test_shift_amounts_clamp(lanewise, pairs, kind):
    """PTX shifts by the size or more give 0 or the sign, where C and NumPy leave it open."""
    a, b = pairs(kind, "u4")
    b = np.where(np.arange(len(b)) % 2 == 0, b % 70, b)
    n = 8 * a.dtype.itemsize
    s = "s" if kind[0] == "i" else "u"
    got = lanewise(f"shr.{s}{n} %d, %a, %b;", kind, a=a, b=b)
    check(got, lambda a, b: a >> min(b, n), a, b)
    got = lanewise(f"shl.b{n} %d, %a, %b;", kind, a=a, b=b)
    check(got, lambda a, b: a << min(b, n), a, b)


def test_funnel_shift(lanewise, pairs):
    a, b, c = pairs("u4", "u4", "u4")
    for mode, amount in (("wrap", lambda c: c & 31), ("clamp", lambda c: min(c, 32))):
        got = lanewise(f"shf.l.{mode}.b32 %d, %a, %b, %c;", "u4", a=a, b=b, c=c)
        check(got, lambda a, b, c, n=amount: (b << 32 | a) << n(c) >> 32, a, b, c)
        got = lanewise(f"shf.r.{mode}.b32 %d, %a, %b, %c;", "u4", a=a, b=b, c=c)
        check(got, lambda a, b, c, n=amount: (b << 32 | a) >> n(c), a, b, c)


def test_permuting_bytes(lanewise, pairs):
    a, b, c = pairs("u4", "u4", "u4")
    # All nibbles, signs among them.
    c = (np.arange(len(c), dtype="u4") * np.uint32(0x9E3779B1)) >> np.uint32(16)

    def byte(a, b, n):
        x = (b << 32 | a) >> 8 * (n & 7) & 255
        return (255 if x & 128 else 0) if n & 8 else x

    def reference(a, b, c):
        return sum(byte(a, b, c >> 4 * i & 15) << 8 * i for i in range(4))

    check(lanewise("prmt.b32 %d, %a, %b, %c;", "u4", a=a, b=b, c=c), reference, a, b, c)


# From the ISA's table, most significant byte first, for selectors 0 to 3.
MODES = {
    "f4e": ["3210", "4321", "5432", "6543"],
    "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"],
    "rc16": ["1010", "3232", "1010", "3232"],
}


@pytest.mark.parametrize("mode", MODES)
def test_permuting_bytes_by_mode(lanewise, mode):
    c = np.arange(8, dtype="u4")
    a, b = np.full(8, 0x33221100, "u4"), np.full(8, 0x77665544, "u4")
    got = lanewise(f"prmt.b32.{mode} %d, %a, %b, %c;", "u4", a=a, b=b, c=c)
    want = [int("".join(2 * digit for digit in MODES[mode][n % 4]), 16) for n in range(8)]
    assert [f"{x:08x}" for x in got] == [f"{x:08x}" for x in want]


def test_moves_pack_and_unpack(lanewise, pairs):
    (a,) = pairs("u8")
    lines = """
        .reg .b16 %h0, %h1, %h2, %h3;
        .reg .b32 %w0, %w1;
        mov.b64 {%h0, %h1, %h2, %h3}, %a;
        mov.b32 %w0, {%h3, %h2};
        mov.b32 %w1, {%h1, %h0};
        mov.b64 %u, {%w0, %w1};
        mov.b64 {_, %x}, %u;
        mov.b64 {%y, _}, %u;
        mov.b64 %d, {%y, %x};
    """
    want = a.view("u2").reshape(-1, 4)[:, ::-1].copy().view("u8").reshape(-1)
    assert np.array_equal(lanewise(lines, "u8", a=a), want)


def test_a_copied_register_is_no_alias(lanewise):
    """A later write in some lanes must not reach the register it was copied from."""
    a = np.arange(32, dtype="u4")
    lines = """
        mov.b32 %x, %a;
        setp.lt.u32 %p, %a, 16;
        @%p mov.b32 %x, 99;
        sub.u32 %d, %a, %x;
    """
    want = np.where(a < 16, a - np.uint32(99), 0)
    assert np.array_equal(lanewise(lines, "u4", a=a), want)
