"""Floating point: every result rounded once, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

KINDS = {"f2": "f16", "bf": "bf16", "f4": "f32", "f8": "f64"}


def widen(x, form):
    return (x.astype("u4") << np.uint32(16)).view("f4") if form == "bf" else x


def as_numbers(x, form):
    return widen(x, form).astype("f8").tolist()


def storage(form):
    return "u2" if form == "bf" else form


def check(rounded, got, form, mode, exact, *inputs):
    bad = []
    rows = zip(as_numbers(got, form), *(as_numbers(x, form) for x in inputs), strict=True)
    for value, *operands in rows:
        want = rounded(exact(*map(Fraction, operands)), form, mode)
        if value != want:
            bad.append((operands, value, want))
    assert not bad, (len(bad), bad[:3])


MODES = [(form, "rn") for form in KINDS] + [("f4", mode) for mode in ("rz", "rm", "rp")]
EXACT = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}


@pytest.mark.parametrize(("form", "mode"), MODES)
@pytest.mark.parametrize("op", EXACT)
def test_one_rounding(lanewise, floats, rounded, op, form, mode):
    a, b = floats(form, 2048, 1), floats(form, 2048, 2)
    line = f"{op}.{mode}.{KINDS[form]} %d, %a, %b;"
    check(rounded, lanewise(line, storage(form), a=a, b=b), form, mode, EXACT[op], a, b)


@pytest.mark.parametrize(("form", "mode"), MODES)
def test_fused_multiply_add(lanewise, floats, rounded, form, mode):
    a, b, c = (floats(form, 2048, seed) for seed in (1, 2, 3))
    # Products that nearly cancel c show a second rounding.
    if form != "bf":
        with np.errstate(all="ignore"):
            near = -(a * b)
        c = np.where((np.arange(2048) % 2 == 0) & np.isfinite(near), near, c)
    line = f"fma.{mode}.{KINDS[form]} %d, %a, %b, %c;"
    got = lanewise(line, storage(form), a=a, b=b, c=c)
    check(rounded, got, form, mode, lambda a, b, c: a * b + c, a, b, c)


def test_fma_keeps_what_a_second_rounding_loses(lanewise):
    """A tie in the product that only a tiny addend breaks: f64 arithmetic would miss it."""
    a = np.array([1 + 2.0**-12], "f4")
    b = np.array([1 + 2.0**-12], "f4")
    c = np.array([2.0**-100], "f4")
    got = lanewise("fma.rn.f32 %d, %a, %b, %c;", "f4", a=a, b=b, c=c)
    assert got[0] == np.float32(1 + 2.0**-11 + 2.0**-23)


@pytest.mark.parametrize(("form", "op"), [("f4", "div.rn"), ("f4", "div.full"), ("f8", "div.rn")])
def test_division(lanewise, floats, rounded, form, op):
    a, b = floats(form, 2048, 1), floats(form, 2048, 2)
    b = np.where(b == 0, np.array(1, form), b)
    got = lanewise(f"{op}.{KINDS[form]} %d, %a, %b;", form, a=a, b=b)
    check(rounded, got, form, "rn", lambda a, b: a / b, a, b)
    got = lanewise(f"rcp.rn.{KINDS[form]} %d, %b;", form, b=b)
    check(rounded, got, form, "rn", lambda b: 1 / b, b)


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_packed_pairs_are_two_halves(lanewise, floats, kind):
    form = "f2" if kind == "f16x2" else "bf"
    a, b = floats(form, 512, 1), floats(form, 512, 2)
    for op in ("add.rn", "mul.rn"):
        single = lanewise(f"{op}.{kind[:-2]} %d, %a, %b;", storage(form), a=a, b=b)
        packed = lanewise(f"{op}.{kind} %d, %a, %b;", "u4", a=a.view("u4"), b=b.view("u4"))
        assert np.array_equal(single.view("u2"), packed.view("u2"))
    c = floats(form, 512, 3)
    single = lanewise(f"fma.rn.{kind[:-2]} %d, %a, %b, %c;", storage(form), a=a, b=b, c=c)
    words = {name: x.view("u4") for name, x in (("a", a), ("b", b), ("c", c))}
    packed = lanewise(f"fma.rn.{kind} %d, %a, %b, %c;", "u4", **words)
    assert np.array_equal(single.view("u2"), packed.view("u2"))


@pytest.mark.parametrize(("mode", "sign"), [("rn", 0), ("rz", 0), ("rp", 0), ("rm", 1)])
def test_the_sign_of_a_sum_that_cancels(lanewise, mode, sign):
    a = np.array([1.5, -0.0, 0.0], "f4")
    got = lanewise(f"sub.{mode}.f32 %d, %a, %a;", "f4", a=a)
    assert np.signbit(got).tolist() == [sign] * 3


NAN, INF = float("nan"), float("inf")


def test_nan_is_canonical_and_infinities_behave(lanewise):
    a = np.array([INF, INF, 0, NAN, -INF, 3e38, 1, -0.0], "f4")
    b = np.array([-INF, INF, INF, 1, 1, 3e38, NAN, -0.0], "f4")
    total = lanewise("add.f32 %d, %a, %b;", "f4", a=a, b=b).view("u4")
    assert [hex(x) for x in total] == [
        *("0x7fffffff", "0x7f800000", "0x7f800000", "0x7fffffff"),
        *("0xff800000", "0x7f800000", "0x7fffffff", "0x80000000"),
    ]
    product = lanewise("mul.f32 %d, %a, %b;", "f4", a=a, b=b).view("u4")
    assert [hex(x) for x in product[:4]] == ["0xff800000", "0x7f800000", "0x7fffffff", "0x7fffffff"]
    fused = lanewise("fma.rn.f32 %d, %a, %b, %a;", "f4", a=a, b=b).view("u4")
    assert [hex(x) for x in fused[1:4]] == ["0x7f800000", "0x7fffffff", "0x7fffffff"]


def test_minimum_and_maximum(lanewise):
    a = np.array([1, -0.0, 0.0, NAN, NAN, INF, -2, 5], "f4")
    b = np.array([2, 0.0, -0.0, 1, NAN, -INF, NAN, -7], "f4")
    least = lanewise("min.f32 %d, %a, %b;", "f4", a=a, b=b)
    most = lanewise("max.f32 %d, %a, %b;", "f4", a=a, b=b)
    zeros = np.array([0x80000000, 0x80000000, 0, 0], "u4")
    assert np.array_equal(np.append(least[1:3], most[1:3]).view("u4"), zeros)
    assert least[[0, 3, 5, 6, 7]].tolist() == [1, 1, -INF, -2, -7]
    assert most[[0, 3, 5, 6, 7]].tolist() == [2, 1, INF, -2, 5]
    assert least[4:5].view("u4")[0] == 0x7FFFFFFF
    strict = lanewise("max.NaN.f32 %d, %a, %b;", "f4", a=a, b=b)
    assert np.isnan(strict[[3, 4, 6]]).all()
    assert strict[7] == 5
    crossed = lanewise("min.xorsign.abs.f32 %d, %a, %b;", "f4", a=a, b=b)
    assert crossed[[0, 7]].tolist() == [1, -5]


def test_flushing_and_clamping(lanewise):
    tiny = np.float32(1e-40)
    a = np.array([tiny, -tiny, 1e-38, 2, -3, NAN, 0.25, 1e-38], "f4")
    b = np.array([1, 1, 1e-3, 1, 1, 1, 1, 1], "f4")
    product = lanewise("mul.ftz.f32 %d, %a, %b;", "f4", a=a, b=b)
    # 1e-38 is itself a subnormal number.
    assert product.view("u4")[[0, 1, 2, 7]].tolist() == [0, 0x80000000, 0, 0]
    assert lanewise("mul.f32 %d, %a, %b;", "f4", a=a, b=b)[0] == tiny
    clamped = lanewise("add.sat.f32 %d, %a, %b;", "f4", a=a, b=b - 1)
    assert clamped[3:7].tolist() == [1, 0, 0, 0.25]


UNARY = {
    "sqrt.rn.f32": ("f4", np.sqrt),
    "sqrt.rn.f64": ("f8", np.sqrt),
    "rsqrt.approx.f32": ("f4", lambda x: 1 / np.sqrt(x)),
    "ex2.approx.f32": ("f4", np.exp2),
    "ex2.approx.f16": ("f2", np.exp2),
    "lg2.approx.f32": ("f4", np.log2),
    "sin.approx.f32": ("f4", np.sin),
    "cos.approx.f32": ("f4", np.cos),
    "tanh.approx.f32": ("f4", np.tanh),
    "rcp.approx.ftz.f32": ("f4", lambda x: 1 / x),
}


@pytest.mark.parametrize("op", UNARY)
def test_functions(lanewise, op):
    form, function = UNARY[op]
    a = np.linspace(0.25, 9, 64).astype(form)
    want = function(a.astype("f8")).astype(form)
    got = lanewise(f"{op} %d, %a;", form, a=a)
    assert np.all(np.abs(got - want) <= np.spacing(np.abs(want)))


def test_signs(lanewise):
    a = np.array([1.5, -2, 0.0, -0.0], "f4")
    b = np.array([-3, 4, -5, 6], "f4")
    assert lanewise("copysign.f32 %d, %a, %b;", "f4", a=a, b=b).tolist() == [3, -4, 5, -6]
    assert lanewise("neg.f32 %d, %a;", "u4", a=a).tolist() == (a.view("u4") ^ (1 << 31)).tolist()
    assert lanewise("abs.f32 %d, %a;", "u4", a=a).tolist() == (a.view("u4") % (1 << 31)).tolist()


def test_properties(lanewise):
    a = np.array([1, 1e-40, NAN, INF, 0, -INF, -1e-39, -1], "f4")
    want = {
        "finite": [1, 1, 0, 0, 1, 0, 1, 1],
        "infinite": [0, 0, 0, 1, 0, 1, 0, 0],
        "number": [1, 1, 0, 1, 1, 1, 1, 1],
        "notanumber": [0, 0, 1, 0, 0, 0, 0, 0],
        "normal": [1, 0, 0, 0, 0, 0, 0, 1],
        "subnormal": [0, 1, 0, 0, 0, 0, 1, 0],
    }
    for test, holds in want.items():
        got = lanewise(f"testp.{test}.f32 %p, %a; selp.u32 %d, 1, 0, %p;", "u4", a=a)
        assert got.tolist() == holds, test
