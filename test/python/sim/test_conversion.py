"""Conversions between all types, against Python's integers and rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

INT = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"]
FLOAT = {"f2": "f16", "bf": "bf16", "f4": "f32", "f8": "f64"}


def name(kind):
    return {"i": "s", "u": "u"}[kind[0]] + str(8 * int(kind[1]))


def wrap(x, kind):
    bits = 8 * int(kind[1])
    x %= 1 << bits
    return x - (1 << bits) if kind[0] == "i" and x >> bits - 1 else x


@pytest.mark.parametrize("of", INT)
@pytest.mark.parametrize("to", INT)
def test_integer_to_integer(lanewise, pairs, of, to):
    (a,) = pairs(of)
    got = lanewise(f"cvt.{name(to)}.{name(of)} %d, %a;", to, a=a)
    assert got.tolist() == [wrap(x, to) for x in a.tolist()]
    info = np.iinfo(to)
    if info.min <= np.iinfo(of).min and np.iinfo(of).max <= info.max:
        return
    got = lanewise(f"cvt.sat.{name(to)}.{name(of)} %d, %a;", to, a=a)
    assert got.tolist() == [min(max(x, info.min), info.max) for x in a.tolist()]


def test_a_wider_register_gets_the_sign(lanewise):
    """cvt.s8 into a 32-bit register: the low byte, extended through the whole register."""
    a = np.array([0x17F, 0x180, 0xFF, 0x100], "u4")
    assert lanewise("cvt.s8.u32 %d, %a;", "i4", a=a).tolist() == [127, -128, -1, 0]
    assert lanewise("cvt.u8.u32 %d, %a;", "i4", a=a).tolist() == [127, 128, 255, 0]
    assert lanewise("cvt.s16.s8 %d, %a;", "i4", a=a).tolist() == [127, -128, -1, 0]


ROUND = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


@pytest.mark.parametrize("of", ["f2", "f4", "f8"])
@pytest.mark.parametrize("to", INT)
def test_float_to_integer(lanewise, floats, of, to):
    edges = [0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, 255.5, 32767.5, 2147483647.5, 2.0**31]
    edges += [2.0**63, 2.0**64, -(2.0**63), -(2.0**31), -1.0, 1e30, -1e30, math.inf, -math.inf]
    with np.errstate(over="ignore"):
        a = np.concatenate([np.array(edges, of), floats(of, 108, 5)])
    info = np.iinfo(to)
    for mode, rounding in ROUND.items():
        got = lanewise(f"cvt.{mode}.{name(to)}.{FLOAT[of]} %d, %a;", to, a=a)
        for x, y in zip(a.astype("f8").tolist(), got.tolist(), strict=True):
            if math.isinf(x):
                want = info.max if x > 0 else info.min
            else:
                want = min(max(rounding(Fraction(x)), info.min), info.max)
            assert y == want, (mode, x)


def test_nan_to_integer(lanewise):
    """0, but the number with only its top bit set where either side has 64 bits."""
    single, double = np.array([np.nan], "f4"), np.array([np.nan])
    assert lanewise("cvt.rzi.s32.f32 %d, %a;", "u4", a=single).tolist() == [0]
    assert lanewise("cvt.rzi.s64.f32 %d, %a;", "u8", a=single).tolist() == [1 << 63]
    assert lanewise("cvt.rzi.u64.f32 %d, %a;", "u8", a=single).tolist() == [1 << 63]
    assert lanewise("cvt.rzi.s32.f64 %d, %a;", "u4", a=double).tolist() == [1 << 31]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("of", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("to", ["f2", "f4", "f8"])
def test_integer_to_float(lanewise, pairs, rounded, of, to, mode):
    (a,) = pairs(of)
    rng = np.random.default_rng(3)
    shifted = rng.integers(0, 2**63, 128, "u8") >> rng.integers(0, 63, 128, "u8")
    a = np.concatenate([a, shifted.astype(of)])
    got = lanewise(f"cvt.{mode}.{FLOAT[to]}.{name(of)} %d, %a;", to, a=a)
    assert got.astype("f8").tolist() == [rounded(Fraction(x), to, mode) for x in a.tolist()]


NARROW = [
    (of, to, mode)
    for of, to in [("f4", "f2"), ("f4", "bf"), ("f8", "f4"), ("f8", "f2")]
    for mode in (["rn", "rz"] if to == "bf" else ["rn", "rz", "rm", "rp"])
]


@pytest.mark.parametrize(("of", "to", "mode"), NARROW)
def test_narrowing(lanewise, floats, rounded, of, to, mode):
    a = floats(of, 2048, 4)
    if of == "f8":
        # Numbers that the narrower format can hold, ties among them.
        scale = np.random.default_rng(5).integers(-160 if to == "f4" else -30, 20, 2048)
        a = np.ldexp(np.round(np.ldexp(np.frexp(a)[0], 26)), scale - 26)
    got = lanewise(f"cvt.{mode}.{FLOAT[to]}.{FLOAT[of]} %d, %a;", "u2" if to == "bf" else to, a=a)
    if to == "bf":
        got = (got.astype("u4") << np.uint32(16)).view("f4")
    want = [rounded(Fraction(x), to, mode) for x in a.tolist()]
    bad = [
        (x, g, w)
        for x, g, w in zip(a.tolist(), got.astype("f8").tolist(), want, strict=True)
        if g != w
    ]
    assert not bad, (len(bad), bad[:3])


def test_widening_is_exact(lanewise):
    every = np.arange(65536, dtype="u2")
    half = every.view("f2")
    got = lanewise("cvt.f32.f16 %d, %a;", "f4", a=every)
    assert np.array_equal(got, half.astype("f4"), equal_nan=True)
    got = lanewise("cvt.f64.f16 %d, %a;", "f8", a=every)
    assert np.array_equal(got, half.astype("f8"), equal_nan=True)
    got = lanewise("cvt.f32.bf16 %d, %a;", "u4", a=every)
    wide = every.astype("u4") << np.uint32(16)
    number = ~np.isnan(wide.view("f4"))
    assert np.array_equal(got[number], wide[number])


def test_whole_numbers_stay_floats(lanewise):
    a = np.array([0.5, 1.5, -0.5, -1.2, 2.7, 1e10, -0.0, 3], "f4")
    assert lanewise("cvt.rni.f32.f32 %d, %a;", "f4", a=a).tolist() == np.rint(a).tolist()
    assert lanewise("cvt.rmi.f32.f32 %d, %a;", "f4", a=a).tolist() == np.floor(a).tolist()
    assert lanewise("cvt.rpi.f32.f32 %d, %a;", "f4", a=a).tolist() == np.ceil(a).tolist()
    assert lanewise("cvt.sat.f32.f32 %d, %a;", "f4", a=a).tolist() == np.clip(a, 0, 1).tolist()


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_packing_two(lanewise, floats, kind):
    a, b = floats("f4", 256, 1), floats("f4", 256, 2)
    single = kind[:-2]
    high = lanewise(f"cvt.rn.{single}.f32 %d, %a;", "u2", a=a).astype("u4")
    low = lanewise(f"cvt.rn.{single}.f32 %d, %b;", "u2", b=b).astype("u4")
    got = lanewise(f"cvt.rn.{kind}.f32 %d, %a, %b;", "u4", a=a, b=b)
    assert np.array_equal(got, high << np.uint32(16) | low)
    got = lanewise(f"cvt.rn.relu.{kind}.f32 %d, %a, %b;", "u4", a=a, b=b)
    assert np.array_equal(got & 0xFFFF, np.where(b < 0, 0, low))


def test_tf32_ties_go_away_from_zero(lanewise):
    a = np.array([0x3F801000, 0x3F800FFF, 0xBF801000, 0x3F803000, 0x7F800000], "u4")
    got = lanewise("cvt.rna.tf32.f32 %d, %a;", "u4", a=a)
    assert [hex(x) for x in got] == [
        "0x3f802000",
        "0x3f800000",
        "0xbf802000",
        "0x3f804000",
        "0x7f800000",
    ]
