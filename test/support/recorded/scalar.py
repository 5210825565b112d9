"""Scalar instructions: each line once for many values, its results one after another.

A line names its operands by width: %h0 … for 16 bits, %r0 … for 32, %d0 … for 64; its result is
%ho, %ro or %do. Free to use are the predicates %p, %q and the words %x, %y.
"""

from __future__ import annotations

import re

import numpy as np

from recorded.program import Accuracy, Program, kernel

THREADS = 256
WIDTHS = {"h": 16, "r": 32, "d": 64}

INTEGER_EDGES = (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255)


def integers(rng: np.random.Generator, bits: int, count: int = THREADS) -> np.ndarray:
    """Random bits, small numbers and the ends of the range."""
    kind = np.dtype(f"u{bits // 8}")
    x = rng.integers(0, 1 << bits, count, np.uint64).astype(kind)
    small = rng.integers(-40, 40, count).astype(np.int64).view(np.uint64).astype(kind)
    top = np.iinfo(kind).max
    edges = np.array([*INTEGER_EDGES, top, top - 1, top // 2, top // 2 + 1, top // 3], kind)
    edge = rng.choice(edges, count)
    which = rng.random(count)
    return np.where(which < 0.4, x, np.where(which < 0.7, small, edge)).astype(kind)


FRACTION = {16: 10, 32: 23, 64: 52}
BIAS = {16: 15, 32: 127, 64: 1023}


def floats(rng: np.random.Generator, bits: int, count: int = THREADS) -> np.ndarray:
    """Numbers near 1, of all sizes, subnormal, infinite, NaN, as bits."""
    kind, fraction = np.dtype(f"u{bits // 8}"), FRACTION[bits]
    exponents = (1 << (bits - 1 - fraction)) - 1
    near = BIAS[bits] + rng.integers(-6, 7, count)
    every = rng.integers(0, exponents + 1, count)
    exponent = np.where(rng.random(count) < 0.6, near, every).astype(np.uint64)
    mantissa = rng.integers(0, 1 << fraction, count, np.uint64)
    mantissa = np.where(rng.random(count) < 0.2, np.uint64(0), mantissa)
    sign = rng.integers(0, 2, count, np.uint64) << np.uint64(bits - 1)
    return (sign | exponent << np.uint64(fraction) | mantissa).astype(kind)


def bf16(rng: np.random.Generator, count: int = THREADS) -> np.ndarray:
    return (floats(rng, 32, count) >> np.uint32(16)).astype(np.uint16)


def lines(
    name: str, *texts: str, values: str = "integer", accuracy: Accuracy | None = None
) -> Program:
    """A program that executes each line for `THREADS` values of its operands."""
    outs = [re.search(r"%([hrd])o\b", t) for t in texts]
    used = sorted({w for t in texts for w in re.findall(r"%([hrd])\d", t)})
    results = sorted({m[1] for m in outs if m})
    parameters = ", ".join([f"u64 out_{w}" for w in results] + [f"u64 in_{w}" for w in used])
    body = [
        ".reg .pred %p, %q;",
        ".reg .b32 %x, %y, %thread;",
        ".reg .b64 %at, %base;",
        *(f".reg .b{WIDTHS[w]} %{w}0, %{w}1, %{w}2, %{w}o;" for w in "hrd"),
        "mov.u32 %thread, %tid.x;",
    ]
    for w in used:
        size = WIDTHS[w] // 8
        body.append(f"ld.param.u64 %base, [in_{w}];")
        body.append(f"mad.wide.u32 %at, %thread, {size}, %base;")
        body += [f"ld.global.b{8 * size} %{w}{k}, [%at+{k * THREADS * size}];" for k in range(3)]
    stored = dict.fromkeys(results, 0)
    for text, match in zip(texts, outs, strict=True):
        assert match, text
        w = match[1]
        size = WIDTHS[w] // 8
        body += [
            "{",
            text,
            f"ld.param.u64 %base, [out_{w}];",
            f"mad.wide.u32 %at, %thread, {size}, %base;",
            f"st.global.b{8 * size} [%at+{stored[w] * THREADS * size}], %{w}o;",
            "}",
        ]
        stored[w] += 1

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        made = [np.zeros(stored[w] * THREADS, f"u{WIDTHS[w] // 8}") for w in results]
        for w in used:
            bits = WIDTHS[w]
            if values == "bf16":
                pair = bf16(rng, 3 * THREADS * bits // 16)
                made.append(pair.view(f"u{bits // 8}"))
            elif values == "half":
                made.append(floats(rng, 16, 3 * THREADS * bits // 16).view(f"u{bits // 8}"))
            elif values == "float":
                made.append(floats(rng, bits, 3 * THREADS))
            elif values == "tame":
                tame = rng.uniform(-3, 3, 3 * THREADS).astype(f"f{bits // 8}")
                made.append(tame.view(f"u{bits // 8}"))
            elif values == "positive":
                tame = np.exp2(rng.uniform(-30, 30, 3 * THREADS)).astype(f"f{bits // 8}")
                made.append(tame.view(f"u{bits // 8}"))
            else:
                made.append(integers(rng, bits, 3 * THREADS))
        return made

    spread = {} if accuracy is None else dict.fromkeys(range(len(results)), accuracy)
    return Program(
        name,
        kernel(parameters, "\n".join(body)),
        arguments,
        tuple(range(len(results))),
        block=(THREADS, 1, 1),
        accuracy=spread,
    )


def each(template: str, *words: str) -> tuple[str, ...]:
    """The template with `*` replaced by each of the words."""
    return tuple(template.replace("*", word) for word in words)


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_F32, _F64 = Accuracy("f4"), Accuracy("f8")
_ROUNDINGS = ("rn", "rz", "rm", "rp")

_INTEGERS = (("h", "u16"), ("h", "s16"), ("r", "u32"), ("r", "s32"), ("d", "u64"), ("d", "s64"))


def _within(a: str, b: str) -> bool:
    """Whether every number of type `a` is one of type `b`."""
    wider = int(b[1:]) - int(a[1:])
    return wider >= 0 if a[0] == b[0] else a[0] == "u" and wider > 0


PROGRAMS: tuple[Program, ...] = (
    lines(
        "integer32",
        *each("add.* %ro, %r0, %r1;", "s32", "u32"),
        "sub.s32 %ro, %r0, %r1;",
        *each("mul.*.s32 %ro, %r0, %r1;", "lo", "hi"),
        "mul.hi.u32 %ro, %r0, %r1;",
        *each("mul.wide.* %do, %r0, %r1;", "s32", "u32"),
        *each("mad.*.s32 %ro, %r0, %r1, %r2;", "lo", "hi"),
        "mad.hi.u32 %ro, %r0, %r1, %r2;",
        "mad.wide.s32 %do, %r0, %r1, %d0;",
        *each("mul24.*.u32 %ro, %r0, %r1;", "lo", "hi"),
        "mad24.lo.s32 %ro, %r0, %r1, %r2;",
        *each("sad.* %ro, %r0, %r1, %r2;", "s32", "u32"),
        *each("min.* %ro, %r0, %r1;", "s32", "u32"),
        *each("max.* %ro, %r0, %r1;", "s32", "u32"),
        "abs.s32 %ro, %r0;",
        "neg.s32 %ro, %r0;",
        "add.sat.s32 %ro, %r0, %r1;",
        "sub.sat.s32 %ro, %r0, %r1;",
        "mad.hi.sat.s32 %ro, %r0, %r1, %r2;",
    ),
    lines(
        "integer16",
        *each("add.* %ho, %h0, %h1;", "s16", "u16"),
        "sub.s16 %ho, %h0, %h1;",
        *each("mul.* %ho, %h0, %h1;", "lo.s16", "hi.s16", "hi.u16"),
        *each("mul.wide.* %ro, %h0, %h1;", "s16", "u16"),
        "mad.lo.s16 %ho, %h0, %h1, %h2;",
        *each("min.* %ho, %h0, %h1;", "s16", "u16"),
        *each("max.* %ho, %h0, %h1;", "s16", "u16"),
        *each("*.s16x2 %ro, %r0, %r1;", "add", "min", "max"),
        "max.relu.s16x2 %ro, %r0, %r1;",
        *each("shl.b16 %ho, %h0, *;", "0", "5", "16"),
        "shr.s16 %ho, %h0, %r0;",
    ),
    lines(
        "integer64",
        *each("*.s64 %do, %d0, %d1;", "add", "sub", "min", "max", "mul.lo", "mul.hi"),
        *each("*.u64 %do, %d0, %d1;", "min", "max", "mul.hi"),
        "mad.lo.u64 %do, %d0, %d1, %d2;",
        "abs.s64 %do, %d0;",
        "neg.s64 %do, %d0;",
        "sad.u64 %do, %d0, %d1, %d2;",
        "shl.b64 %do, %d0, %r0;",
        *each("shr.* %do, %d0, %r0;", "s64", "u64"),
    ),
    lines(
        "division",
        *(f"or.b{n} %{w}1, %{w}1, 1; {op}.{t}{n} %{w}o, %{w}0, %{w}1;"
          for w, n in (("h", 16), ("r", 32), ("d", 64))
          for op in ("div", "rem") for t in "us"),
    ),
    lines(
        "carry",
        "add.cc.u32 %x, %r0, %r1; addc.u32 %ro, %r1, %r2;",
        "add.cc.u32 %x, %r0, %r1; addc.cc.u32 %y, %r1, %r2; addc.u32 %ro, %r0, 0;",
        "sub.cc.u32 %x, %r0, %r1; subc.u32 %ro, %r1, %r2;",
        "mad.lo.cc.u32 %x, %r0, %r1, %r2; madc.hi.u32 %ro, %r0, %r1, 0;",
        "add.cc.u64 %do, %d0, %d1; addc.u64 %do, %d1, %d2;",
    ),
    lines(
        "bits",
        "popc.b32 %ro, %r0;",
        "popc.b64 %ro, %d0;",
        "clz.b32 %ro, %r0;",
        "clz.b64 %ro, %d0;",
        *each("bfind.* %ro, %r0;", "u32", "s32", "shiftamt.u32", "shiftamt.s32"),
        *each("bfind.* %ro, %d0;", "u64", "s64"),
        "brev.b32 %ro, %r0;",
        "brev.b64 %do, %d0;",
        *each("bfe.* %ro, %r0, %r1, %r2;", "u32", "s32"),
        # A GPU takes more than the low byte of a position or length, which the ISA leaves open.
        *each("and.b32 %x, %r1, 255; and.b32 %y, %r2, 255; bfe.* %do, %d0, %x, %y;", "u64", "s64"),
        "bfi.b32 %ro, %r0, %r1, %r2, 7;",
        "and.b32 %x, %r1, 255; and.b32 %y, %r2, 255; bfi.b64 %do, %d0, %d1, %x, %y;",
        *each("szext.*.u32 %ro, %r0, %r1;", "clamp", "wrap"),
        *each("szext.*.s32 %ro, %r0, %r1;", "clamp", "wrap"),
        *each("bmsk.*.b32 %ro, %r0, %r1;", "clamp", "wrap"),
        *each("dp4a.* %ro, %r0, %r1, %r2;", "u32.u32", "s32.s32", "u32.s32"),
        *each("dp2a.*.s32.u32 %ro, %r0, %r1, %r2;", "lo", "hi"),
    ),
    lines(
        "logic",
        *each("*.b32 %ro, %r0, %r1;", "and", "or", "xor"),
        *each("*.b16 %ho, %h0, %h1;", "and", "or", "xor"),
        *each("*.b64 %do, %d0, %d1;", "and", "or", "xor"),
        "not.b32 %ro, %r0;",
        "cnot.b32 %ro, %r0;",
        *each("lop3.b32 %ro, %r0, %r1, %r2, *;", "0x80", "0x96", "0xca", "0xe8", "0x1b"),
        *each("shf.l.*.b32 %ro, %r0, %r1, %r2;", "clamp", "wrap"),
        *each("shf.r.*.b32 %ro, %r0, %r1, %r2;", "clamp", "wrap"),
        "shl.b32 %ro, %r0, %r1;",
        *each("shr.* %ro, %r0, %r1;", "u32", "s32", "b32"),
    ),
    lines(
        "prmt",
        "prmt.b32 %ro, %r0, %r1, %r2;",
        *each("prmt.b32.* %ro, %r0, %r1, %r2;", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"),
        *each("prmt.b32 %ro, %r0, %r1, *;", "0x5410", "0x7632", "0xba98", "0x3210"),
    ),
    lines(
        "comparison_integer",
        *(f"setp.{c}.{t} %p, %r0, %r1; selp.b32 %ro, %r2, 7, %p;"
          for c in _COMPARISONS for t in ("s32", "u32")),
        *(f"setp.{c}.{t} %p, %d0, %d1; selp.b64 %do, %d2, 7, %p;"
          for c in ("lt", "ge") for t in ("s64", "u64")),
        *(f"setp.{c}.{t} %p, %h0, %h1; selp.b16 %ho, %h2, 7, %p;"
          for c in ("lt", "ne") for t in ("s16", "u16")),
        *each("setp.hi.u32 %q, %r1, %r2; setp.lt.*.s32 %p, %r0, %r1, %q; selp.b32 %ro, 1, 2, %p;",
              "and", "or", "xor"),
        "setp.lo.u32 %p|%q, %r0, %r1; selp.b32 %x, 1, 2, %p; selp.b32 %y, 4, 8, %q; "
        "add.s32 %ro, %x, %y;",
        *each("set.*.u32.s32 %ro, %r0, %r1;", *_COMPARISONS),
        "set.lt.f32.u32 %ro, %r0, %r1;",
        "slct.b32.s32 %ro, %r0, %r1, %r2;",
    ),
    lines(
        "comparison_float",
        *each("setp.*.f32 %p, %r0, %r1; selp.b32 %ro, 1, 0, %p;", *_COMPARISONS, *_UNORDERED),
        *each("setp.*.f64 %p, %d0, %d1; selp.b32 %ro, 1, 0, %p;", *_COMPARISONS, *_UNORDERED),
        "setp.lt.ftz.f32 %p, %r0, %r1; selp.b32 %ro, 1, 0, %p;",
        *each("testp.*.f32 %p, %r0; selp.b32 %ro, 1, 0, %p;", "finite", "infinite", "number",
              "notanumber", "normal", "subnormal"),
        "slct.f32.f32 %ro, %r0, %r1, %r2;",
        values="float",
    ),
    lines(
        "convert_integer",
        *(f"cvt.{a}.{b} %{wa}o, %{wb}0;" for wa, a in _INTEGERS for wb, b in _INTEGERS if a != b),
        *(f"cvt.sat.{a}.{b} %{wa}o, %{wb}0;" for wa, a in _INTEGERS for wb, b in _INTEGERS
          if not _within(b, a)),
    ),
    lines(
        "convert_to_float",
        *(f"cvt.{m}.f32.{b} %ro, %{w}0;" for m in _ROUNDINGS
          for w, b in (("r", "s32"), ("r", "u32"), ("d", "s64"), ("d", "u64"))),
        *(f"cvt.{m}.f64.{b} %do, %d0;" for m in _ROUNDINGS for b in ("s64", "u64")),
        "cvt.rn.f64.s32 %do, %r0;",
        *(f"cvt.rn.f16.{b} %ho, %{w}0;" for w, b in (("h", "s16"), ("r", "s32"), ("r", "u32"))),
    ),
    lines(
        "convert_from_float",
        *(f"cvt.{m}.{t}.f32 %{w}o, %r0;" for m in ("rni", "rzi", "rmi", "rpi")
          for w, t in (("r", "s32"), ("r", "u32"), ("d", "s64"), ("d", "u64"))),
        *(f"cvt.{m}.s32.f64 %ro, %d0;" for m in ("rni", "rzi")),
        *(f"cvt.{m}.u64.f64 %do, %d0;" for m in ("rni", "rzi")),
        *(f"cvt.{m}.f32.f32 %ro, %r0;" for m in ("rni", "rzi", "rmi", "rpi")),
        values="float",
    ),
    lines(
        "convert_wide_float",
        *(f"cvt.{m}.f32.f64 %ro, %d0;" for m in _ROUNDINGS),
        values="float",
        accuracy=_F32,
    ),
    lines("convert_float_wide", "cvt.f64.f32 %do, %r0;", values="float", accuracy=_F64),
    lines(
        "convert_half",
        *(f"cvt.{m}.f16.f32 %ho, %r0;" for m in ("rn", "rz")),
        "cvt.rn.relu.f16.f32 %ho, %r0;",
        "cvt.rn.sat.f16.f32 %ho, %r0;",
        values="float",
        accuracy=Accuracy("f2"),
    ),
    lines("widen_half", "cvt.f32.f16 %ro, %h0;", values="half", accuracy=_F32),
    lines(
        "convert_pair",
        *(f"cvt.{m}.{t}.f32 %ro, %r0, %r1;" for m in ("rn", "rz") for t in ("f16x2",)),
        values="float",
        accuracy=Accuracy("f2"),
    ),
    lines(
        "convert_bf16",
        "cvt.rn.bf16.f32 %ho, %r0;",
        "cvt.rz.bf16.f32 %ho, %r0;",
        "cvt.rn.relu.bf16.f32 %ho, %r0;",
        values="float",
        accuracy=Accuracy("bf16"),
    ),
    lines(
        "float32",
        *(f"{op}.{m}.f32 %ro, %r0, %r1;" for op in ("add", "sub", "mul", "div") for m in _ROUNDINGS
          if op != "div" or m == "rn"),
        *(f"fma.{m}.f32 %ro, %r0, %r1, %r2;" for m in _ROUNDINGS),
        *each("add.rn.*.f32 %ro, %r0, %r1;", "ftz", "sat"),
        *each("mul.rn.*.f32 %ro, %r0, %r1;", "ftz", "sat"),
        *each("fma.rn.*.f32 %ro, %r0, %r1, %r2;", "ftz", "sat"),
        "rcp.rn.f32 %ro, %r0;",
        "sqrt.rn.f32 %ro, %r0;",
        *each("*.f32 %ro, %r0, %r1;", "min", "max", "min.NaN", "max.NaN", "min.ftz",
              "max.xorsign.abs"),
        "abs.f32 %ro, %r0;",
        "neg.f32 %ro, %r0;",
        "copysign.f32 %ro, %r0, %r1;",
        values="float",
        accuracy=_F32,
    ),
    lines(
        "float64",
        *each("*.rn.f64 %do, %d0, %d1;", "add", "sub", "mul", "div"),
        "fma.rn.f64 %do, %d0, %d1, %d2;",
        "rcp.rn.f64 %do, %d0;",
        "sqrt.rn.f64 %do, %d0;",
        *each("*.f64 %do, %d0, %d1;", "min", "max"),
        "abs.f64 %do, %d0;",
        values="float",
        accuracy=_F64,
    ),
    lines(
        "half",
        *each("*.f16x2 %ro, %r0, %r1;", "add.rn", "sub.rn", "mul.rn", "min", "max", "min.NaN"),
        *each("fma.rn.*f16x2 %ro, %r0, %r1, %r2;", "", "relu.", "sat.", "ftz."),
        "neg.f16x2 %ro, %r0;",
        "abs.f16x2 %ro, %r0;",
        values="half",
        accuracy=Accuracy("f2"),
    ),
    lines(
        "bf16",
        *each("*.bf16x2 %ro, %r0, %r1;", "add.rn", "sub.rn", "mul.rn", "min", "max"),
        *each("fma.rn.*bf16x2 %ro, %r0, %r1, %r2;", "", "relu."),
        values="bf16",
        accuracy=Accuracy("bf16"),
    ),
    lines(
        "approximate",
        "rcp.approx.f32 %ro, %r0;",
        "sqrt.approx.f32 %ro, %r0;",
        "rsqrt.approx.f32 %ro, %r0;",
        "lg2.approx.f32 %ro, %r0;",
        *each("div.*.f32 %ro, %r0, %r1;", "approx", "full"),
        values="positive",
        accuracy=Accuracy("f4", relative=2**-21, absolute=2**-21),
    ),
    lines(
        "trigonometric",
        "sin.approx.f32 %ro, %r0;",
        "cos.approx.f32 %ro, %r0;",
        "ex2.approx.f32 %ro, %r0;",
        values="tame",
        accuracy=Accuracy("f4", relative=2**-21, absolute=2**-20),
    ),
    lines("tanh", "tanh.approx.f32 %ro, %r0;", values="tame",
          accuracy=Accuracy("f4", relative=2**-10)),
)  # fmt: skip
