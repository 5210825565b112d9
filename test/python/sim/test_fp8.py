"""8-bit floats and tf32: conversions against the formats' definitions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

FORMATS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}
LARGEST = {"e4m3": 448, "e5m2": 57344}


def value(code, form):
    """A byte as a number, from the definition of its format."""
    exponent, fraction, bias = FORMATS[form]
    power, digits = code >> fraction & (1 << exponent) - 1, code & (1 << fraction) - 1
    sign = -1.0 if code & 128 else 1.0
    if form == "e4m3" and code & 127 == 127:
        return float("nan")
    if form == "e5m2" and power == 31:
        return float("nan") if digits else sign * float("inf")
    if power == 0:
        return sign * digits * 2.0 ** (1 - bias - fraction)
    return sign * (digits + (1 << fraction)) * 2.0 ** (power - bias - fraction)


def nearest(x, form):
    """The byte that a number becomes: of all finite ones the nearest, of two the even one."""
    if x != x:
        return 0x7F
    sign = 128 if np.signbit(x) else 0
    if abs(x) > LARGEST[form]:
        return sign | (0x7E if form == "e4m3" else 0x7B)
    size = abs(Fraction(float(x)))
    finite = [c for c in range(128) if np.isfinite(value(c, form))]
    return sign | min(finite, key=lambda c: (abs(Fraction(value(c, form)) - size), c & 1))


@pytest.fixture
def numbers():
    """f32 values: random ones over the whole range, all codes, all ties and their neighbours."""
    rng = np.random.default_rng(4)
    drawn = np.ldexp(rng.normal(size=500), rng.integers(-20, 18, 500))
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 1e30, -1e30, 57344, 61440, 65504]
    codes = [value(c, form) for form in FORMATS for c in range(256)]
    finite = sorted(x for x in codes if np.isfinite(x))
    ties = np.array([(a + b) / 2 for a, b in pairwise(finite)], "f4")
    x = np.concatenate([drawn, edges, codes, ties]).astype("f4")
    beside = [np.nextafter(ties, np.float32(side)) for side in (np.inf, -np.inf)]
    x = np.concatenate([x, *beside])
    return np.concatenate([x, x[: -len(x) % 64]])


@pytest.mark.parametrize("form", FORMATS)
def test_from_f32(lanewise, numbers, form):
    a, b = numbers, numbers[::-1].copy()
    got = lanewise(f"cvt.rn.satfinite.{form}x2.f32 %d, %a, %b;", "u2", a=a, b=b)
    want = np.array([nearest(x, form) for x in numbers], "u2")
    np.testing.assert_array_equal(got, want << 8 | want[::-1])


@pytest.mark.parametrize("form", FORMATS)
def test_relu(lanewise, numbers, form):
    """Negative numbers become +0, NaN stays."""
    line = f"cvt.rn.satfinite.relu.{form}x2.f32 %d, %a, 0f00000000;"
    got = lanewise(line, "u2", a=numbers)
    want = np.array([0 if x <= 0 else nearest(x, form) for x in numbers], "u2")
    np.testing.assert_array_equal(got, want << 8)


@pytest.mark.parametrize("form", FORMATS)
def test_from_f16(lanewise, form):
    halves = np.arange(0, 2**16, 11, "u2")
    a = np.concatenate([halves, halves[: -len(halves) % 128]]).view("u4")
    got = lanewise(f"cvt.rn.satfinite.{form}x2.f16x2 %d, %a;", "u2", a=a).view("u1")
    want = [nearest(x, form) for x in a.view("f2").astype("f4")]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("form", FORMATS)
def test_to_f16(lanewise, form, relu):
    """All 256 bytes; f16 holds each value exactly, and NaN is the canonical one."""
    low = np.arange(256, dtype="u2")
    a = low | low[::-1] << 8
    got = lanewise(f"cvt.rn{relu}.f16x2.{form}x2 %d, %a;", "u4", a=a).view("u2").reshape(-1, 2)
    exact = np.array([value(c, form) for c in range(256)])
    exact = np.where(exact <= 0, 0.0, exact) if relu else exact
    half = exact.astype("f2").view("u2")
    half[np.isnan(exact)] = 0x7FFF
    np.testing.assert_array_equal(got[:, 0], half)
    np.testing.assert_array_equal(got[:, 1], half[::-1])


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_tf32(lanewise, floats, mode):
    """Ten digits after the point remain; ties go to the even neighbour or, by rna, outwards."""
    a = floats("f4", 1024, 3)
    ties = (a.view("u4") & 0xFFFFE000 | 0x1000).view("f4")
    a = np.concatenate([a, ties])
    got = lanewise(f"cvt.{mode}.tf32.f32 %d, %a;", "f4", a=a)
    for x, y in zip(a.tolist(), got.tolist(), strict=True):
        size, unit = abs(Fraction(x)), Fraction(2) ** (max(exponent(x), -126) - 10)
        whole, rest = divmod(size, unit)
        up = {"rn": rest * 2 > unit or (rest * 2 == unit and whole % 2), "rna": rest * 2 >= unit}
        want = (whole + bool(up.get(mode))) * unit
        assert abs(y) == (float("inf") if want >= 2**128 else want), (mode, x)
        assert np.signbit(y) == np.signbit(x)


def exponent(x):
    return int(np.frexp(x)[1]) - 1


def test_tf32_limits(lanewise):
    """Overflow, infinities and NaN: what an H200 gave."""
    top = [0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x80000000]
    nans = [0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F801FFF, 0xFF800001]
    a = np.array(top + nans, "u4").view("f4")

    def by(mode):
        return lanewise(f"cvt.{mode}.tf32.f32 %d, %a;", "u4", a=a).tolist()

    plain = [0x7F800000, 0xFF800000, 0x7F800000, 0xFF800000, 0x80000000]
    clamped = [0x7F7FE000, 0xFF7FE000, 0x7F7FE000, 0xFF7FE000, 0x80000000]
    assert by("rn") == plain + [0x7FFFE000] * 5
    assert by("rz") == [*clamped[:2], *plain[2:]] + [0x7FFFE000] * 5
    assert by("rn.relu") == [0x7F800000, 0, 0x7F800000, 0, 0] + [0x7FFFE000] * 5
    upper = [0x7FFFE000, 0xFFFFE000, 0x7FC00000, 0x7F800000, 0xFF800000]
    assert by("rna") == plain + upper
    assert by("rna.satfinite") == clamped + [x - 0x2000 for x in upper]


@pytest.mark.parametrize(
    ("form", "most", "large"), [("f16", 0x7BFF, 65519.0), ("bf16", 0x7F7F, 3.4e38)]
)
@pytest.mark.parametrize("relu", ["", ".relu"])
def test_halves_that_saturate(lanewise, relu, form, most, large):
    """`.satfinite` gives the largest number where rounding alone gives infinity."""
    sign = 0 if relu else 0x8000
    a = np.array([large, -large, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, -0.0], "f4")
    negative = most | sign if sign else 0
    want = [most, negative, most, negative, most, negative, 0x7FFF, sign]
    assert lanewise(f"cvt.rn{relu}.satfinite.{form}.f32 %d, %a;", "u2", a=a).tolist() == want
    got = lanewise(f"cvt.rn{relu}.satfinite.{form}x2.f32 %d, %a, %a;", "u4", a=a)
    assert got.tolist() == [word * 0x10001 for word in want]
