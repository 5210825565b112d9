"""mma.sync: every type and shape against NumPy, the fragments dealt out by the ISA's formulas.

The tables below repeat, shape by shape, the formulas that PTX ISA 9.7.14.5 gives for the row and
the column of element i of lane l, with g = l / 4 and t = l % 4. They know nothing of the one rule
that the simulator derives its fragments from.
"""

import itertools

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError


def upper(i):
    """16-bit and other four-register fragments of A, pairs: a0 a1 a4 a5 lie in the upper half."""
    return 0 if i in (0, 1, 4, 5) else 8


# (shape, bits) → row and column of element i of A, row of element i of B (its column is g).
MULTIPLICANDS = {
    ("m16n8k8", 16): (
        4,
        lambda g, t, i: (g + (0 if i < 2 else 8), 2 * t + (i & 1)),
        2,
        lambda t, i: 2 * t + i,
    ),
    ("m16n8k16", 16): (
        8,
        lambda g, t, i: (g + upper(i), 2 * t + (i & 1) + (0 if i < 4 else 8)),
        4,
        lambda t, i: 2 * t + (i & 1) + (0 if i < 2 else 8),
    ),
    ("m16n8k4", 32): (2, lambda g, t, i: (g + 8 * i, t), 1, lambda t, i: t),
    ("m16n8k8", 32): (
        4,
        lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
        2,
        lambda t, i: t if i == 0 else t + 4,
    ),
    ("m8n8k16", 8): (4, lambda g, t, i: (g, 4 * t + i), 4, lambda t, i: 4 * t + i),
    ("m16n8k16", 8): (
        8,
        lambda g, t, i: (g if i < 4 else g + 8, 4 * t + (i & 3)),
        4,
        lambda t, i: 4 * t + i,
    ),
    ("m16n8k32", 8): (
        16,
        lambda g, t, i: (
            g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
            4 * t + (i & 3) + (0 if i < 8 else 16),
        ),
        8,
        lambda t, i: 4 * t + (i & 3) + (0 if i < 4 else 16),
    ),
    ("m8n8k32", 4): (8, lambda g, t, i: (g, 8 * t + i), 8, lambda t, i: 8 * t + i),
    ("m16n8k32", 4): (
        16,
        lambda g, t, i: (g if i < 8 else g + 8, 8 * t + (i & 7)),
        8,
        lambda t, i: 8 * t + i,
    ),
    ("m16n8k64", 4): (
        32,
        lambda g, t, i: (
            g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
            8 * t + (i & 7) + (0 if i < 16 else 32),
        ),
        16,
        lambda t, i: 8 * t + (i & 7) + (0 if i < 8 else 32),
    ),
    ("m8n8k128", 1): (32, lambda g, t, i: (g, 32 * t + i), 32, lambda t, i: 32 * t + i),
    ("m16n8k128", 1): (
        64,
        lambda g, t, i: (g if i < 32 else g + 8, 32 * t + (i & 31)),
        32,
        lambda t, i: 32 * t + i,
    ),
    ("m16n8k256", 1): (
        128,
        lambda g, t, i: (
            g if i < 32 or 64 <= i < 96 else g + 8,
            32 * t + (i & 31) + (0 if i < 64 else 128),
        ),
        64,
        lambda t, i: 32 * t + (i & 31) + (0 if i < 32 else 128),
    ),
    ("m8n8k4", 64): (1, lambda g, t, i: (g, t), 1, lambda t, i: t),
    ("m16n8k4", 64): (2, lambda g, t, i: (g + 8 * i, t), 1, lambda t, i: t),
    ("m16n8k8", 64): (
        4,
        lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
        2,
        lambda t, i: t + 4 * i,
    ),
    ("m16n8k16", 64): (
        8,
        lambda g, t, i: (g if i % 2 == 0 else g + 8, i // 2 * 4 + t),
        4,
        lambda t, i: t + 4 * i,
    ),
}


def accumulator(rows):
    """Elements of C a lane, and the row and column of element i."""
    return rows // 4, lambda g, t, i: (g if i < 2 else g + 8, 2 * t + (i & 1))


def e4m3(code):
    """From the definition: bias 7, no infinities."""
    sign, power, digits = code >> 7, code >> 3 & 15, code & 7
    size = digits * 2.0**-9 if power == 0 else (8 + digits) * 2.0 ** (power - 10)
    return -size if sign else size


def e5m2(code):
    return float(np.array([code << 8], "u2").view("f2")[0])


class Kind:
    """How to draw numbers of an element type, and how they look as bits."""

    def __init__(self, name):
        self.name = name
        self.bits = {"bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8}.get(name) or int(name[1:])

    def draw(self, rng, shape):
        """Bits (as Python integers in an array) and values."""
        count = 1 << min(self.bits, 16)
        if self.name == "f16":
            x = rng.normal(size=shape).astype("f2")
            return x.view("u2").astype("u8"), x.astype("f8")
        if self.name == "bf16":
            word = rng.normal(size=shape).astype("f4").view("u4") >> 16
            return word.astype("u8"), (word << 16).view("f4").astype("f8")
        if self.name == "tf32":
            # The low bits are noise that must not count.
            word = rng.normal(size=shape).astype("f4").view("u4")
            return word.astype("u8"), (word >> 13 << 13).view("f4").astype("f8")
        if self.name == "f32":
            x = rng.normal(size=shape).astype("f4")
            return x.view("u4").astype("u8"), x.astype("f8")
        if self.name == "f64":
            x = rng.normal(size=shape)
            return x.view("u8"), x
        if self.name in ("e4m3", "e5m2"):
            decode = e4m3 if self.name == "e4m3" else e5m2
            # Magnitudes below NaN, infinity and what would overflow f16 sums.
            code = rng.integers(0, 0x50, shape) | rng.integers(0, 2, shape) << 7
            return code.astype("u8"), np.vectorize(decode)(code)
        if self.name == "s32":
            x = rng.integers(-(2**31), 2**31, shape)
            return (x % 2**32).astype("u8"), x
        word = rng.integers(0, count, shape)
        signed = self.name[0] == "s"
        value = np.where(word >= count // 2, word - count, word) if signed else word
        return word.astype("u8"), value


def deal(words, shape, bits, elements, word_of):
    """Bits of a matrix as registers: an array of (32 lanes, registers)."""
    width = max(bits, 32)
    registers = np.zeros((32, elements * bits // width), f"u{width // 8}")
    for lane in range(32):
        for i in range(elements):
            at, shift = divmod(i * bits, width)
            word = int(words[word_of(lane // 4, lane % 4, i)])
            registers[lane, at] |= registers.dtype.type(word << shift)
    return registers


def collect(registers, rows, bits, elements, word_of):
    """The reverse, for accumulators."""
    words = np.zeros((rows, 8), "u8")
    width = max(bits, 32)
    for lane in range(32):
        for i in range(elements):
            at, shift = divmod(i * bits, width)
            word = int(registers[lane, at]) >> shift & (1 << bits) - 1
            words[word_of(lane // 4, lane % 4, i)] = word
    return words


def registers(prefix, count):
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"


def program(opcode, kinds, counts):
    """Each lane loads the registers of a, b and c, multiplies, and stores d."""
    size = {name: width for name, (_, width) in kinds.items()}
    lines = [".reg .b64 %base, %at;", ".reg .b32 %thread, %group, %extent, %lane;"]
    lines += [f".reg .{kinds[n][0]} %{n}<{counts[n]}>;" for n in "abcd"]
    lines += ["mov.u32 %thread, %tid.x; mov.u32 %group, %ctaid.x; mov.u32 %extent, %ntid.x;"]
    lines += ["mad.lo.u32 %lane, %group, %extent, %thread;"]
    for n in "abc":
        lines.append(f"ld.param.u64 %base, [p{n}];")
        lines.append(f"mad.wide.u32 %at, %lane, {counts[n] * size[n]}, %base;")
        lines += [
            f"ld.global.b{8 * size[n]} %{n}{i}, [%at+{i * size[n]}];" for i in range(counts[n])
        ]
    lines.append(f"{opcode} " + ", ".join(registers(n, counts[n]) for n in "dabc") + ";")
    lines.append("ld.param.u64 %base, [pd];")
    lines.append(f"mad.wide.u32 %at, %lane, {counts['d'] * size['d']}, %base;")
    lines += [
        f"st.global.b{8 * size['d']} [%at+{i * size['d']}], %d{i};" for i in range(counts["d"])
    ]
    return "\n".join(lines)


REGISTER = {"f32": ("f32", 4), "f64": ("f64", 8), "s32": ("s32", 4)}
POINTERS = tuple((f"p{n}", "u64") for n in "abcd")


@pytest.fixture
def multiply(run):
    """`mma` on random matrices in two warps of two blocks; gives A, B and C, and the bits of D."""

    def apply(opcode, shape, a_kind, b_kind, c_kind, draw=None):
        rows, depth = int(shape[1:].split("n")[0]), int(shape.split("k")[1])
        a_kind, b_kind, c_kind = Kind(a_kind), Kind(b_kind), Kind(c_kind)
        per_a, place_a, per_b, row_b = MULTIPLICANDS[shape, a_kind.bits]
        per_c, place_c = accumulator(rows)
        rng = np.random.default_rng(len(opcode) + depth)
        shapes = {"a": (rows, depth), "b": (depth, 8), "c": (rows, 8)}
        dealt, values = {n: [] for n in "abc"}, {n: [] for n in "abc"}
        for _ in range(4):
            for n, kind in zip("abc", (a_kind, b_kind, c_kind), strict=True):
                words, value = (draw or {}).get(n, kind.draw)(rng, shapes[n])
                word_of = {
                    "a": place_a,
                    "b": lambda g, t, i: (row_b(t, i), g),
                    "c": place_c,
                }[n]
                per = {"a": per_a, "b": per_b, "c": per_c}[n]
                dealt[n].append(deal(words, shapes[n], kind.bits, per, word_of))
                values[n].append(value)
        a, b, c = (np.ascontiguousarray(np.stack(dealt[n])) for n in "abc")
        d = np.zeros_like(c)
        counts = {"a": a.shape[2], "b": b.shape[2], "c": c.shape[2], "d": c.shape[2]}
        names = {"a": a_kind.name, "b": b_kind.name, "c": c_kind.name, "d": c_kind.name}
        kinds = {n: REGISTER.get(name, ("b32", 4)) for n, name in names.items()}
        run(
            program(opcode, kinds, counts),
            [a, b, c, d],
            parameters=POINTERS,
            grid=(2, 1, 1),
            block=(64, 1, 1),
        )
        words = np.stack([collect(x, rows, c_kind.bits, per_c, place_c) for x in d])
        return (*(np.stack(values[n]) for n in "abc"), words)

    return apply


FLOATS = [
    *((s, "f16", "f16", c) for s in ("m16n8k8", "m16n8k16") for c in ("f16", "f32")),
    *((s, "bf16", "bf16", "f32") for s in ("m16n8k8", "m16n8k16")),
    *((s, "tf32", "tf32", "f32") for s in ("m16n8k4", "m16n8k8")),
    *(("m16n8k32", a, b, "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *(("m16n8k16", "e5m2", "e4m3", c) for c in ("f16", "f32")),
    ("m16n8k32", "e4m3", "e5m2", "f16"),
    *((s, "f64", "f64", "f64") for s in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
]


@pytest.mark.parametrize(("shape", "a", "b", "c"), FLOATS)
def test_floats(multiply, shape, a, b, c):
    """The sum is rounded once: at most half a unit of D's last place from the exact result."""
    opcode = f"mma.sync.aligned.{shape}.row.col.{c}.{a}.{b}.{c}"
    x, y, z, words = multiply(opcode, shape, a, b, c)
    dtype = {"f16": "f2", "f32": "f4", "f64": "f8"}[c]
    got = words.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    want = np.einsum("wmk,wkn->wmn", x, y) + z
    if c == "f64":
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)
    else:
        np.testing.assert_array_equal(got, want.astype(dtype))


@pytest.mark.parametrize("saturate", ["", ".satfinite"])
@pytest.mark.parametrize(
    ("shape", "a", "b"),
    [
        *(
            (s, a, b)
            for s in ("m8n8k16", "m16n8k16", "m16n8k32")
            for a, b in [("s8", "u8"), ("u8", "s8")]
        ),
        *(
            (s, a, b)
            for s in ("m8n8k32", "m16n8k32", "m16n8k64")
            for a, b in [("s4", "u4"), ("u4", "s4")]
        ),
        ("m16n8k32", "s8", "s8"),
        ("m16n8k32", "u8", "u8"),
        ("m16n8k64", "s4", "s4"),
    ],
)
def test_integers(multiply, shape, a, b, saturate):
    """Exact. Accumulators near the limits wrap, or stop there."""
    opcode = f"mma.sync.aligned.{shape}.row.col{saturate}.s32.{a}.{b}.s32"
    edge = {"c": lambda rng, shape: near_the_limits(rng, shape)}
    x, y, z, words = multiply(opcode, shape, a, b, "s32", edge)
    want = np.einsum("wmk,wkn->wmn", x, y) + z
    assert (want > 2**31 - 1).any() or (want < -(2**31)).any()
    want = np.clip(want, -(2**31), 2**31 - 1) if saturate else want
    np.testing.assert_array_equal(words, want % 2**32)


def near_the_limits(rng, shape):
    x = rng.integers(-100, 100, shape)
    x = np.where(x > 0, 2**31 - x, -(2**31) - x)
    return (x % 2**32).astype("u8"), x


@pytest.mark.parametrize("op", ["xor", "and"])
@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
def test_single_bits(multiply, shape, op):
    opcode = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{op}.popc"
    x, y, z, words = multiply(opcode, shape, "b1", "b1", "s32")
    pairs = x[:, :, :, None], y[:, None, :, :]
    counts = (np.bitwise_xor if op == "xor" else np.bitwise_and)(*pairs).sum(axis=2)
    np.testing.assert_array_equal(words, (counts + z) % 2**32)


def test_special_numbers(multiply):
    """Too large a sum is infinite, infinity times zero the canonical NaN."""

    def a(rng, shape):
        x = np.zeros(shape, "f2")
        x[0], x[1, 0], x[2, 0], x[3, 3] = 60000, np.inf, -np.inf, np.nan
        return x.view("u2").astype("u8"), x.astype("f8")

    def b(rng, shape):
        x = np.zeros(shape, "f2")
        x[:, 0], x[:, 1] = 60000, -1
        return x.view("u2").astype("u8"), x.astype("f8")

    def c(rng, shape):
        return np.zeros(shape, "u8"), np.zeros(shape)

    draw = {"a": a, "b": b, "c": c}
    opcode = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
    words = multiply(opcode, "m16n8k16", "f16", "f16", "f16", draw)[3][0]
    inf = 0x7C00
    assert words[0, :3].tolist() == [inf, inf | 0x8000, 0]
    assert words[1, :3].tolist() == [inf, inf | 0x8000, 0x7FFF]
    assert words[2, :3].tolist() == [inf | 0x8000, inf, 0x7FFF]
    assert words[3].tolist() == [0x7FFF] * 8


def test_a_warp_that_lacks_lanes(run):
    body = """
        .reg .b32 %a<2>, %b; .reg .f32 %c<4>; .reg .pred %p; .reg .b32 %t;
        mov.u32 %t, %tid.x; setp.ge.u32 %p, %t, 40;
        mov.b32 %a0, 0; mov.b32 %a1, 0; mov.b32 %b, 0;
        mov.f32 %c0, 0f00000000; mov.f32 %c1, %c0; mov.f32 %c2, %c0; mov.f32 %c3, %c0;
        @%p exit;
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
            {%c0, %c1, %c2, %c3}, {%a0, %a1}, {%b}, {%c0, %c1, %c2, %c3};
    """
    message = "by 8 of a warp's 32 lanes, all of which it needs, in thread .32, 0, 0."
    with pytest.raises(LegoError, match=message):
        run(body, [], block=(64, 1, 1), record=False)
    with pytest.raises(LegoError, match="by 20 of a warp's 32 lanes"):
        run(body, [], block=(20, 1, 1), record=False)


def test_warps_that_come_apart(run):
    """One warp runs a loop before it multiplies, the other does not; a third does not at all."""
    body = """
        .reg .b32 %t, %w, %i; .reg .pred %p, %q; .reg .b64 %base, %at;
        .reg .f64 %a, %b, %d<2>;
        mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.b32 %i, 0;
        cvt.rn.f64.u32 %a, %t; mov.f64 %b, 0d3FF0000000000000;
        mov.f64 %d0, 0d0000000000000000; mov.f64 %d1, 0d0000000000000000;
        setp.eq.u32 %p, %w, 2; @%p bra END;
        setp.eq.u32 %p, %w, 0; @%p bra MEET;
    LOOP:
        add.f64 %a, %a, %b; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 3; @%q bra LOOP;
    MEET:
        mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%a}, {%b}, {%d0, %d1};
    END:
        ld.param.u64 %base, [out]; mad.wide.u32 %at, %t, 16, %base;
        st.global.f64 [%at], %d0; st.global.f64 [%at+8], %d1;
    """
    out = np.ones((96, 2))
    run(body, [out], parameters=(("out", "u64"),), block=(96, 1, 1))
    lane = np.arange(64)
    sums = 4 * (lane // 4 * 4) + 6 + np.where(lane < 32, 0, 12)
    np.testing.assert_array_equal(out[:64], np.repeat(sums[:, None], 2, axis=1))
    np.testing.assert_array_equal(out[64:], 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%c0, %c1, %c2, %c3}, {%a0}, {%b}, "
         "{%c0, %c1, %c2, %c3};", "where 2 .b32 registers should stand"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%c0, %c1, %c2, %c3}, {%a0, %c1}, "
         "{%d}, {%c0, %c1, %c2, %c3};", "the register %d is .f64 where .b32 should stand"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%c0}, {%a0}, {%b}, {%c0};",
         r"this form of mma is not modelled: .*\(PTX ISA 9.7.14.5.14\)"),
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c0}, {%a0}, {%b}, {%c0}, %a1, 0;",
         r"mma.sp.* is not modelled \(PTX ISA 9.7.14.6\)"),
    ],
)  # fmt: skip
def test_wrong_mma_syntax_is_an_error(run, line, message):
    body = f".reg .b32 %a<2>, %b; .reg .f32 %c<4>; .reg .f64 %d;\n{line}"
    with pytest.raises(LegoError, match=message):
        run(body, [], record=False)


def matmul(m, n, k):
    """C = A·B of row-major f16 matrices, C in f32, by blocks of four warps for 64 × 64 of C.

    Tiles of A and B, 32 deep, go through shared memory, whose rows are padded by 16 bytes; each
    warp multiplies 32 × 32 of C by ldmatrix and mma.
    """
    acc = [[f"%c{i}_{j}_{e}" for e in range(4)] for i in range(2) for j in range(4)]
    copies = "".join(
        f"""
        ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%ga+{i * 32 * k * 2}];
        st.shared.v4.b32 [%sa+{i * 32 * 80}], {{%x0, %x1, %x2, %x3}};
        ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%gb+{i * 16 * n * 2}];
        st.shared.v4.b32 [%sb+{i * 16 * 144}], {{%x0, %x1, %x2, %x3}};
        """
        for i in range(2)
    )
    steps = ""
    for kk in range(2):
        for i in range(2):
            steps += f"""
            ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%a{i}_0, %a{i}_1, %a{i}_2, %a{i}_3}},
                [%la+{i * 16 * 80 + kk * 32}];
            ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
                {{%b{2 * i}_0, %b{2 * i}_1, %b{2 * i + 1}_0, %b{2 * i + 1}_1}},
                [%lb+{kk * 16 * 144 + i * 32}];
            """
        for i, j in itertools.product(range(2), range(4)):
            c = "{" + ", ".join(acc[4 * i + j]) + "}"
            steps += f"""
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {c},
                {{%a{i}_0, %a{i}_1, %a{i}_2, %a{i}_3}}, {{%b{j}_0, %b{j}_1}}, {c};
            """
    stores = "".join(
        f"st.global.v2.f32 [%gc+{((i * 16 + h * 8) * n + j * 8) * 4}], "
        f"{{{acc[4 * i + j][2 * h]}, {acc[4 * i + j][2 * h + 1]}}};\n"
        for i, j, h in itertools.product(range(2), range(4), range(2))
    )
    declared = ", ".join(r for four in acc for r in four)
    halves = ", ".join(
        [f"%a{i}_{e}" for i in range(2) for e in range(4)]
        + [f"%b{j}_{e}" for j in range(4) for e in range(2)]
    )
    zeros = "".join(f"mov.f32 {r}, 0f00000000;\n" for four in acc for r in four)
    return f"""
        .shared .align 16 .b8 ta[{64 * 80}]; .shared .align 16 .b8 tb[{32 * 144}];
        .reg .b32 %t, %bx, %by, %r, %c, %sa, %sb, %la, %lb, %wm, %wn, %l, %i, %x<4>, {halves};
        .reg .b64 %ga, %gb, %gc, %base; .reg .f32 {declared}; .reg .pred %p;
        mov.u32 %t, %tid.x; mov.u32 %bx, %ctaid.x; mov.u32 %by, %ctaid.y;
        shr.u32 %r, %t, 2; and.b32 %c, %t, 3;
        mov.u32 %sa, ta; mad.lo.u32 %sa, %r, 80, %sa; mad.lo.u32 %sa, %c, 16, %sa;
        mad.lo.u32 %r, %by, 64, %r; mul.lo.u32 %r, %r, {k}; mad.lo.u32 %r, %c, 8, %r;
        ld.param.u64 %base, [a]; mad.wide.u32 %ga, %r, 2, %base;
        shr.u32 %r, %t, 3; and.b32 %c, %t, 7;
        mov.u32 %sb, tb; mad.lo.u32 %sb, %r, 144, %sb; mad.lo.u32 %sb, %c, 16, %sb;
        mul.lo.u32 %r, %r, {n}; mad.lo.u32 %r, %bx, 64, %r; mad.lo.u32 %r, %c, 8, %r;
        ld.param.u64 %base, [b]; mad.wide.u32 %gb, %r, 2, %base;
        and.b32 %l, %t, 31; shr.u32 %wm, %t, 6; shr.u32 %wn, %t, 5; and.b32 %wn, %wn, 1;
        and.b32 %r, %l, 15; shr.u32 %c, %l, 4;
        mov.u32 %lb, tb; mad.lo.u32 %lb, %r, 144, %lb; mad.lo.u32 %lb, %wn, 64, %lb;
        mad.lo.u32 %lb, %c, 16, %lb;
        mad.lo.u32 %r, %wm, 32, %r; mov.u32 %la, ta; mad.lo.u32 %la, %r, 80, %la;
        mad.lo.u32 %la, %c, 16, %la;
        shr.u32 %r, %l, 2; mad.lo.u32 %r, %wm, 32, %r; mad.lo.u32 %r, %by, 64, %r;
        mul.lo.u32 %r, %r, {n}; and.b32 %c, %l, 3; mad.lo.u32 %r, %c, 2, %r;
        mad.lo.u32 %r, %wn, 32, %r; mad.lo.u32 %r, %bx, 64, %r;
        ld.param.u64 %base, [c]; mad.wide.u32 %gc, %r, 4, %base;
        {zeros}
        mov.b32 %i, 0;
    LOOP:
        {copies}
        bar.sync 0;
        {steps}
        bar.sync 0;
        add.u64 %ga, %ga, 64; add.u64 %gb, %gb, {32 * n * 2};
        add.u32 %i, %i, 32; setp.lt.u32 %p, %i, {k}; @%p bra LOOP;
        {stores}
    """


def test_a_gemm_of_ctas_is_correct(run):
    m, n, k = 128, 64, 96
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(m, k)).astype("f2"), rng.normal(size=(k, n)).astype("f2")
    c = np.zeros((m, n), "f4")
    parameters = tuple((name, "u64") for name in "abc")
    run(
        matmul(m, n, k),
        [a, b, c],
        parameters=parameters,
        grid=(n // 64, m // 64, 1),
        block=(128, 1, 1),
    )
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), rtol=0, atol=2e-5)
