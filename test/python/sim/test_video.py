"""Video instructions, against integers: bytes, halves, saturation, accumulation, merging."""

import numpy as np
import pytest

rng = np.random.default_rng(3)
A, B, C = rng.integers(0, 2**32, (3, 64), "u4")
A[:8], B[:8] = [0, 2**31, 2**32 - 1, 0x7F7F7F7F, 0x80808080, 1, 0x80007FFF, 0xFF] * 1, A[7::-1]


def part(word, selector, signed):
    """The byte or half of a word, as Python's integer."""
    bits = {"b": 8, "h": 16}.get(selector[:1], 32)
    value = int(word) >> bits * int(selector[1:] or 0) & (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value


def clamp(value, bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def average(a, b):
    return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1


OPERATIONS = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vavrg": average,
}
SECOND = {"add": lambda x, c: x + c, "min": min, "max": max}


@pytest.mark.parametrize("second", ["", "add", "min", "max"])
@pytest.mark.parametrize(("x", "y"), [("", ""), ("b3", "h1"), ("h0", "b0")])
@pytest.mark.parametrize("types", ["u32.u32.u32", "s32.s32.u32", "s32.u32.s32"])
def test_scalar(lanewise, types, x, y, second):
    d, s, t = (word == "s32" for word in types.split("."))
    for name, operation in list(OPERATIONS.items())[:5]:
        line = f"{name}.{types}.sat{second and '.' + second} %d, %a{x and '.' + x}, "
        line += f"%b{y and '.' + y}{', %c' if second else ''};"
        got = lanewise(line, "u4", a=A, b=B, c=C)
        for k in range(64):
            value = operation(part(A[k], x, s), part(B[k], y, t))
            value = clamp(value, 32, d)
            if second:
                value = SECOND[second](value, part(C[k], "", d))
            assert got[k] == value % 2**32, (line, k)


def test_a_part_of_the_target(lanewise):
    got = lanewise("vadd.s32.s32.s32.sat %d.b2, %a.b0, %b.h0, %c;", "u4", a=A, b=B, c=C)
    for k in range(64):
        value = clamp(part(A[k], "b0", True) + part(B[k], "h0", True), 8, True)
        assert got[k] == int(C[k]) & 0xFF00FFFF | (value & 0xFF) << 16


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_shifts(lanewise, mode):
    b = (np.arange(64) % 37).astype("u4")
    for sign in "us":
        left = lanewise(f"vshl.{sign}32.{sign}32.u32.sat.{mode} %d, %a, %b;", "u4", a=A, b=b)
        right = lanewise(f"vshr.{sign}32.{sign}32.u32.{mode} %d, %a.h1, %b;", "u4", a=A, b=b)
        for k in range(64):
            by = int(b[k]) % 32 if mode == "wrap" else min(int(b[k]), 32)
            value = clamp(part(A[k], "", sign == "s") << by, 32, sign == "s")
            assert left[k] == value % 2**32
            assert right[k] == (part(A[k], "h1", sign == "s") >> by) % 2**32


def test_multiply_and_add(lanewise):
    for text, by, more in (("", 0, 0), (".shr7", 7, 0), (".shr15", 15, 0), (".shr7", 7, 1)):
        po = ".po" if more else ""
        line = f"vmad.s32.s32.u32{po}{text} %d, %a.h1, %b, %c;"
        got = lanewise(line, "u4", a=A, b=B, c=C)
        line = f"vmad.u32.u32.u32.sat{text} %d, %a, %b.b1, %c;"
        clamped = lanewise(line, "u4", a=A, b=B, c=C)
        for k in range(64):
            total = part(A[k], "h1", True) * int(B[k]) + part(C[k], "", True) + more
            assert got[k] == (total >> by) % 2**32
            total = int(A[k]) * part(B[k], "b1", False) + int(C[k]) >> by
            assert clamped[k] == min(total, 2**32 - 1)


def test_comparison(lanewise):
    got = lanewise("vset.s32.u32.ge.add %d, %a.b1, %b.h1, %c;", "u4", a=A, b=B, c=C)
    for k in range(64):
        holds = part(A[k], "b1", True) >= part(B[k], "h1", False)
        assert got[k] == (holds + int(C[k])) % 2**32


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("types", ["u32.u32.u32", "s32.s32.s32", "s32.u32.s32"])
def test_vectors(lanewise, types, count):
    d, s, t = (word == "s32" for word in types.split("."))
    bits, letter = 32 // count, "b" if count == 4 else "h"
    for name, operation in OPERATIONS.items():
        line = f"{name}{count}.{types}.sat %d.{letter}1, %a, %b, %c;"
        one = lanewise(line, "u4", a=A, b=B, c=C)
        every = lanewise(f"{name}{count}.{types}.sat %d, %a, %b, %c;", "u4", a=A, b=B, c=C)
        total = lanewise(f"{name}{count}.{types}.add %d, %a, %b, %c;", "u4", a=A, b=B, c=C)
        for k in range(64):
            values = [
                operation(part(A[k], f"{letter}{n}", s), part(B[k], f"{letter}{n}", t))
                for n in range(count)
            ]
            packed = [clamp(v, bits, d) % (1 << bits) << bits * n for n, v in enumerate(values)]
            mask = (1 << bits) - 1 << bits
            assert every[k] == sum(packed), (name, k)
            assert one[k] == int(C[k]) & ~mask | packed[1]
            assert total[k] == (sum(values) + int(C[k])) % 2**32


def test_orders_of_parts(lanewise):
    got = lanewise("vadd4.u32.u32.u32 %d, %a.b0123, %b.b7610, %c;", "u4", a=A, b=B, c=C)
    for k in range(64):
        both = [int(A[k]) >> 8 * n & 255 for n in range(4)]
        both += [int(B[k]) >> 8 * n & 255 for n in range(4)]
        bytes_ = [
            (both[x] + both[y]) % 256 for x, y in zip((3, 2, 1, 0), (0, 1, 6, 7), strict=True)
        ]
        assert got[k] == sum(v << 8 * n for n, v in enumerate(bytes_))


def test_vector_comparison(lanewise):
    got = lanewise("vset2.u32.u32.ne %d, %a, %b, %c;", "u4", a=A, b=B, c=C)
    added = lanewise("vset4.s32.s32.lt.add %d, %a, %b, %c;", "u4", a=A, b=B, c=C)
    for k in range(64):
        halves = [part(A[k], f"h{n}", False) != part(B[k], f"h{n}", False) for n in range(2)]
        assert got[k] == halves[0] + (halves[1] << 16)
        less = sum(part(A[k], f"b{n}", True) < part(B[k], f"b{n}", True) for n in range(4))
        assert added[k] == (less + int(C[k])) % 2**32
