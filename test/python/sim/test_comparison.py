"""Comparison and selection."""

import operator

import numpy as np
import pytest

NAN = float("nan")
OPS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@pytest.mark.parametrize("kind", ["u2", "i2", "u4", "i4", "u8", "i8"])
def test_integers(lanewise, pairs, kind):
    a, b = pairs(kind, kind)
    name = ("s" if kind[0] == "i" else "u") + str(8 * int(kind[1]))
    for op, reference in OPS.items():
        got = lanewise(f"setp.{op}.{name} %p, %a, %b; selp.u32 %d, 1, 0, %p;", "u4", a=a, b=b)
        assert np.array_equal(got, reference(a, b))
    if kind[0] == "u":
        for op, same in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
            got = lanewise(f"setp.{op}.{name} %p, %a, %b; selp.u32 %d, 1, 0, %p;", "u4", a=a, b=b)
            assert np.array_equal(got, OPS[same](a, b))


@pytest.mark.parametrize("form", ["f2", "f4", "f8"])
def test_floats_with_and_without_order(lanewise, form):
    values = [-1, 0, -0.0, 1, NAN, float("inf")]
    rows = [(x, y) for x in values for y in values]
    a, b = (np.array(column, form) for column in zip(*rows, strict=True))
    unordered = np.isnan(a) | np.isnan(b)
    name = f"f{8 * int(form[1])}"

    def holds(op):
        return lanewise(f"setp.{op}.{name} %p, %a, %b; selp.u32 %d, 1, 0, %p;", "u4", a=a, b=b)

    for op, reference in OPS.items():
        assert np.array_equal(holds(op), reference(a, b) & ~unordered), op
        assert np.array_equal(holds(op + "u"), reference(a, b) | unordered), op + "u"
    assert np.array_equal(holds("nan"), unordered)
    assert np.array_equal(holds("num"), ~unordered)


def test_two_predicates_and_a_third(lanewise):
    a = np.arange(64, dtype="i4")
    lines = """
        .reg .pred %c;
        and.b32 %x, %a, 1;
        setp.ne.u32 %c, %x, 0;
        setp.lt.OP.s32 %p|%q, %a, 20, NOT%c;
        selp.u32 %d, 1, 0, %p;
        @%q add.u32 %d, %d, 2;
    """
    odd = a % 2 == 1
    for op, combine in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
        for negation, third in (("", odd), ("!", ~odd)):
            got = lanewise(lines.replace("OP", op).replace("NOT", negation), "u4", a=a)
            want = combine(a < 20, third) + 2 * combine(a >= 20, third)
            assert np.array_equal(got, want)


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_packed_halves_give_two_predicates(lanewise, kind):
    def packed(values):
        if kind == "f16x2":
            return np.array(values, "f2").view("u4")
        return (np.array(values, "f4").view("u4") >> 16).astype("u2").view("u4")

    a, b = packed([1, 2, 3, 4]), packed([2, 2, 2, 5])
    lines = f"""
        setp.lt.{kind} %p|%q, %a, %b;
        selp.u32 %d, 1, 0, %p;
        @%q add.u32 %d, %d, 2;
    """
    assert lanewise(lines, "u4", a=a, b=b).tolist() == [1, 2]


def test_set_and_select(lanewise):
    a = np.array([1, -1, 5, NAN], "f4")
    got = lanewise("set.gt.u32.f32 %d, %a, 0f00000000;", "u4", a=a)
    assert got.tolist() == [2**32 - 1, 0, 2**32 - 1, 0]
    assert lanewise("set.gt.f32.f32 %d, %a, 0f00000000;", "f4", a=a).tolist() == [1, 0, 1, 0]
    c = np.array([0, -1, 7, -8], "i4")
    assert lanewise("slct.u32.s32 %d, 1, 2, %c;", "u4", c=c).tolist() == [1, 2, 1, 2]
    f = np.array([-0.0, -1e-40, 2, NAN], "f4")
    assert lanewise("slct.u32.f32 %d, 1, 2, %f;", "u4", f=f).tolist() == [1, 2, 1, 2]
    assert lanewise("slct.ftz.u32.f32 %d, 1, 2, %f;", "u4", f=f).tolist() == [1, 1, 1, 2]
