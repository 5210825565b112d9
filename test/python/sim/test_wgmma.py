"""wgmma against NumPy: types, shapes, layouts in shared memory, groups, and what must not be done.

Operands are put into shared memory by the canonical layouts of PTX ISA 9.7.15.5.1, written as the
ISA writes them, with shapes and strides in elements and a swizzle of the address; the simulator
has formulas of its own.
"""

import itertools

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

SHARED = 48 * 1024
B_AT = 16 * 1024
SWIZZLES = (0, 32, 64, 128)
MODE = {0: 0, 128: 1, 64: 2, 32: 3}


# --- layouts ---


def offset(coordinate, shape, stride):
    """A coordinate through a layout of nested (shape, stride), the first mode varying fastest."""
    if isinstance(shape, int):
        return coordinate * stride
    total = 0
    for s, d in zip(shape, stride, strict=True):
        size = size_of(s)
        total += offset(coordinate % size, s, d)
        coordinate //= size
    return total


def size_of(shape):
    return shape if isinstance(shape, int) else int(np.prod([size_of(s) for s in shape]))


def canonical(extent, bytes_each, transposed, swizzle, leading, stride):
    """The layout of (row, k), with offsets in bytes; `leading` and `stride` too."""
    t = 16 // bytes_each
    s = swizzle // 16
    lbo, sbo = leading // bytes_each, stride // bytes_each
    many = 99
    match transposed, swizzle:
        case False, 0:
            shape, strides = ((8, many), (t, 2)), ((t, sbo), (1, lbo))
        case False, _:
            shape, strides = ((8, many), (t, 2)), ((s * t, sbo), (1, t))
        case True, 0:
            shape, strides = ((t, 1, many), (8, 2)), ((1, t, sbo), (t, lbo))
        case True, _:
            shape, strides = ((t, s, many), (8, 2)), ((1, t, lbo), (s * t, sbo))
    rows = [offset(r, shape[0], strides[0]) for r in range(extent)]
    columns = [offset(k, shape[1], strides[1]) for k in range(32 // bytes_each)]
    return (np.add.outer(rows, columns)) * bytes_each


def swizzled(address, swizzle, base=0):
    """Swizzle<b, 4, 3>: b bits from bit 4 on, combined with the bits three above."""
    bits = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
    mask = (1 << bits) - 1
    return address ^ (((address >> 7) - base & mask) << 4)


def strides_for(extent, transposed, swizzle):
    """Leading and stride offsets without overlap, with odd gaps."""
    run = max(swizzle, 16)
    core = 8 * run
    if not transposed:
        groups = extent // 8
        return (groups * 128 + 128, 128) if swizzle == 0 else (0, core)
    if swizzle == 0:
        return extent // 8 * 128 + 256, 128
    return 2 * core, core


def descriptor(start, leading, stride, swizzle, base=0):
    fields = (start >> 4) | (leading >> 4) << 16 | (stride >> 4) << 32
    return np.uint64(fields | base << 49 | MODE[swizzle] << 62)


# --- elements ---


def fp8(code, fraction):
    bias = {3: 7, 2: 15}[fraction]
    power, digits = code >> fraction & 0x7F >> fraction, code & (1 << fraction) - 1
    size = np.where(
        power == 0,
        np.ldexp(digits.astype("f8"), 1 - bias - fraction),
        np.ldexp(digits + float(1 << fraction), power - bias - fraction),
    )
    return np.where(code & 128, -size, size)


def draw(kind, shape, rng):
    """Random elements: their bits, as an array whose items are whole bytes, and their values."""
    if kind == "f16":
        x = rng.normal(size=shape).astype("f2")
        return x.view("u2"), x.astype("f8")
    if kind == "bf16":
        word = rng.normal(size=shape).astype("f4").view("u4") >> 16
        return word.astype("u2"), (word << 16).view("f4").astype("f8")
    if kind == "tf32":
        word = rng.normal(size=shape).astype("f4").view("u4")
        return word, (word >> 13 << 13).view("f4").astype("f8")
    if kind in ("e4m3", "e5m2"):
        code = rng.integers(0, 0x50, shape) | rng.integers(0, 2, shape) << 7
        return code.astype("u1"), fp8(code, 3 if kind == "e4m3" else 2)
    code = rng.integers(0, 256, shape).astype("u1")
    return code, (code.view("i1") if kind == "s8" else code).astype("i8")


WIDTH = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
D_TYPE = {"f16": "f2", "f32": "f4", "s32": "i4"}


def d_positions(columns):
    """Row and column of element i of lane l of the warpgroup: arrays (128, columns / 2)."""
    lane, i = np.arange(128)[:, None], np.arange(columns // 2)
    row = 16 * (lane // 32) + lane % 32 // 4 + np.where(i % 4 < 2, 0, 8)
    return row, i // 4 * 8 + lane % 4 * 2 + i % 2


def a_positions(packed):
    """Row and k of element i of lane l of the warpgroup, A in four registers."""
    lane, i = np.arange(128)[:, None], np.arange(4 * packed)
    register = i // packed
    row = 16 * (lane // 32) + lane % 32 // 4 + np.where(register % 2 == 0, 0, 8)
    return row, lane % 4 * packed + i % packed + np.where(register < 2, 0, 4 * packed)


# --- sums of products of 8-bit floats ---

LEAST = {"e4m3": -6, "e5m2": -14}


def cut_sum(a, b, old, kinds):
    """a bᵀ + old, each term cut off 13 bits below the largest exponent; an f32 so too."""
    exponents = [
        np.floor(np.log2(np.maximum(np.abs(x), 2.0 ** LEAST[kind])))
        for x, kind in zip((a, b), kinds, strict=True)
    ]
    terms = np.concatenate([a[:, None] * b[None], old[..., None].astype("f8")], axis=-1)
    apart = exponents[0][:, None] + exponents[1][None]
    apart[terms[..., :-1] == 0] = -np.inf
    with np.errstate(divide="ignore"):
        own = np.floor(np.log2(np.abs(terms[..., -1:])))
    unit = 2.0 ** (np.concatenate([apart, own], axis=-1).max(-1, keepdims=True) - 13)
    total = (np.trunc(terms / unit) * unit).sum(-1)
    if old.dtype == np.float16:
        return total
    return (total.astype("f4").view("u4") & 0xFFFFFC00).view("f4")


# --- programs ---


def names(prefix, count):
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"


def program(registers, kind, body, threads=128):
    """Shared memory from `image`, A and D in registers from arrays; `body`; D back.

    `%da` and `%db` are descriptors, whose start is counted from the array `tile`; `%scale` is the
    predicate, `%tile` the address of the array, `%lane` the thread.
    """
    each = range(registers)
    return f"""
        .shared .align 1024 .b8 tile[{SHARED}];
        .reg .b64 %base, %at, %da, %db, %first; .reg .b32 %lane, %i, %to, %tile, %x<4>, %a<4>;
        .reg .b32 %flag; .reg .{kind} %d<{registers}>; .reg .pred %scale, %p, %q;
        mov.u32 %lane, %tid.x; mov.u32 %tile, tile;
        ld.param.u64 %base, [image]; mov.b32 %i, %lane;
    FILL:
        mad.wide.u32 %at, %i, 16, %base; ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%at];
        shl.b32 %to, %i, 4; add.u32 %to, %to, %tile;
        st.shared.v4.b32 [%to], {{%x0, %x1, %x2, %x3}};
        add.u32 %i, %i, {threads}; setp.lt.u32 %p, %i, {SHARED // 16}; @%p bra FILL;
        fence.proxy.async; bar.sync 0;
        cvt.u64.u32 %first, %tile; shr.u64 %first, %first, 4;
        ld.param.u64 %da, [desc_a]; add.u64 %da, %da, %first;
        ld.param.u64 %db, [desc_b]; add.u64 %db, %db, %first;
        ld.param.u32 %flag, [scale]; setp.ne.u32 %scale, %flag, 0;
        ld.param.u64 %base, [pa]; mad.wide.u32 %at, %lane, 16, %base;
        ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%at];
        ld.param.u64 %base, [pd]; mad.wide.u32 %at, %lane, {4 * registers}, %base;
        {" ".join(f"ld.global.b32 %d{i}, [%at+{4 * i}];" for i in each)}
        {body}
        {" ".join(f"st.global.b32 [%at+{4 * i}], %d{i};" for i in each)}
    """


PARAMETERS = tuple(
    (name, "u32" if name == "scale" else "u64")
    for name in ("image", "desc_a", "desc_b", "scale", "pa", "pd")
)
FENCE = "wgmma.fence.sync.aligned;"
WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


class Operand:
    """An operand of a product: its elements, and where they lie in shared memory."""

    def __init__(self, kind, extent, rng, *, transposed=False, swizzle=128, at=0, base=0):
        self.kind, self.transposed = kind, transposed
        width = WIDTH[kind]
        self.bits, self.values = draw(kind, (extent, 32 // width), rng)
        leading, stride = strides_for(extent, transposed, swizzle)
        positions = canonical(extent, width, transposed, swizzle, leading, stride)
        self.address = swizzled(at + positions, swizzle, base)
        self.descriptor = descriptor(at, leading, stride, swizzle, base)

    def put(self, image):
        image.view(f"u{WIDTH[self.kind]}")[self.address // WIDTH[self.kind]] = self.bits


def accumulators(kind, columns, rng, big=False):
    """D before: (64, columns) numbers."""
    if kind != "s32":
        return rng.normal(size=(64, columns)).astype(D_TYPE[kind])
    x = rng.integers(-1000, 1000, (64, columns))
    return np.where(x > 0, 2**31 - x, -(2**31) - x).astype("i4") if big else x.astype("i4")


@pytest.fixture
def product(run):
    """One product of each of two warpgroups of a block; gives D and the exact result."""

    def multiply(
        a_kind, b_kind, d_kind, columns, *, a=None, b=None, in_registers=False, scale=1,
        signs=(1, 1), saturate="", big=False, order="late", seed=0,
    ):  # fmt: skip
        rng = np.random.default_rng(columns)
        a = Operand(a_kind, 64, rng, **(a or {}))
        b = Operand(b_kind, columns, rng, **({"at": B_AT} | (b or {})))
        image = rng.integers(0, 256, SHARED).astype("u1")
        b.put(image)
        fragment = np.zeros((128, 4), "u4")
        if in_registers:
            fragment = np.ascontiguousarray(a.bits[a_positions(4 // WIDTH[a_kind])]).view("u4")
        else:
            a.put(image)
        old = [accumulators(d_kind, columns, rng, big) for _ in range(2)]
        positions = d_positions(columns)
        d = np.stack([x[positions] for x in old])
        registers = d.nbytes // 1024
        majors = [] if in_registers else [int(a.transposed)]
        majors = [*majors, int(b.transposed)] if WIDTH[a_kind] == 2 else []
        immediates = [] if d_kind == "s32" else [*signs, *majors]
        listed = "".join(f", {x}" for x in immediates)
        shape = f"m64n{columns}k{32 // WIDTH[a_kind]}"
        body = f"""
            {FENCE}
            wgmma.mma_async.sync.aligned.{shape}{saturate}.{d_kind}.{a_kind}.{b_kind}
                {names("d", registers)}, {names("a", 4) if in_registers else "%da"}, %db,
                %scale{listed};
            {WAIT}
        """
        run(
            program(registers, "f32" if d_kind == "f32" else "b32", body, threads=256),
            [image, a.descriptor, b.descriptor, np.uint32(scale), np.stack([fragment] * 2), d],
            parameters=PARAMETERS,
            block=(256, 1, 1),
            order=order,
            seed=seed,
        )
        got = np.zeros((2, 64, columns), D_TYPE[d_kind])
        got[:, *positions] = d
        began = np.stack(old) if scale else np.zeros((2, 64, columns), D_TYPE[d_kind])
        sign = signs[0] * signs[1]
        if a_kind in LEAST:
            want = [cut_sum(sign * a.values, b.values, x, (a_kind, b_kind)) for x in began]
            return got, np.stack(want)
        return got, sign * (a.values @ b.values.T) + began

    return multiply


def check(result):
    """Floats are rounded once, integers are exact and wrap."""
    got, want = result
    if got.dtype.kind == "i":
        np.testing.assert_array_equal(got.astype("i8"), (want + 2**31) % 2**32 - 2**31)
    else:
        np.testing.assert_array_equal(got, want.astype(got.dtype))


FLOATS = [
    *(("f16", "f16", d) for d in ("f16", "f32")),
    ("bf16", "bf16", "f32"),
    ("tf32", "tf32", "f32"),
    *((a, b, "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    ("e4m3", "e5m2", "f16"),
]
INTEGERS = [(a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")]


@pytest.mark.parametrize("in_registers", [False, True], ids=["shared", "registers"])
@pytest.mark.parametrize(("a", "b", "d"), FLOATS + INTEGERS)
def test_types(product, a, b, d, in_registers):
    check(product(a, b, d, 16, in_registers=in_registers))


@pytest.mark.parametrize("columns", range(8, 257, 8))
def test_all_widths(product, columns):
    check(product("f16", "f16", "f32", columns))


@pytest.mark.parametrize("columns", [8, 24, 32, 48, 224, 256])
def test_integer_widths(product, columns):
    check(product("s8", "u8", "s32", columns, big=True))


def test_integers_saturate(product):
    got, want = product("s8", "u8", "s32", 32, big=True, saturate=".satfinite")
    assert (want > 2**31 - 1).any()
    assert (want < -(2**31)).any()
    np.testing.assert_array_equal(got, np.clip(want, -(2**31), 2**31 - 1))


@pytest.mark.parametrize("columns", [8, 72, 256])
@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("major", list(itertools.product([False, True], repeat=2)))
def test_layouts_of_16_bits(product, swizzle, major, columns):
    """Both majors of both operands; 72 columns leave the last run of a wide swizzle half full."""
    a, b = ({"transposed": t, "swizzle": swizzle} for t in major)
    check(product("f16", "f16", "f32", columns, a=a, b=b))


@pytest.mark.parametrize("kind", [("tf32", "tf32", "f32"), ("e4m3", "e4m3", "f32")])
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_layouts_of_other_widths(product, swizzle, kind):
    check(product(*kind, 40, a={"swizzle": swizzle}, b={"swizzle": swizzle}))


def test_a_transposed_b_beside_a_in_registers(product):
    check(product("bf16", "bf16", "f32", 64, b={"transposed": True}, in_registers=True))


@pytest.mark.parametrize("swizzle", SWIZZLES[1:])
def test_a_pattern_that_begins_elsewhere(product, swizzle):
    """The base offset moves the swizzle's pattern to an operand that is not aligned to it."""
    a = {"swizzle": swizzle, "at": 3 * 128, "base": 3}
    b = {"swizzle": swizzle, "at": B_AT + 5 * 128, "base": 5}
    check(product("f16", "f16", "f32", 32, a=a, b=b))


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_step_along_k(product, step):
    """Inside a run of 128 bytes an operand may start at any multiple of 32."""
    a, b = {"at": 32 * step}, {"at": B_AT + 32 * step}
    check(product("f16", "f16", "f32", 32, a=a, b=b))


@pytest.mark.parametrize("signs", [(1, -1), (-1, 1), (-1, -1)])
def test_signs(product, signs):
    check(product("f16", "f16", "f32", 16, signs=signs))


@pytest.mark.parametrize("d", ["f16", "f32"])
def test_without_the_old_value(product, d):
    check(product("f16", "f16", d, 24, scale=0))


def test_single_bits(run):
    """b1: the ones that a row of A and a column of B have in common."""
    rng = np.random.default_rng(1)
    a, b = (Operand("u8", n, rng, at=at) for n, at in ((64, 0), (16, B_AT)))
    image = np.zeros(SHARED, "u1")
    a.put(image)
    b.put(image)
    d = np.zeros((128, 8), "i4")
    line = f"wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc {names('d', 8)}, %da, %db, "
    body = FENCE + line + "%scale;" + WAIT
    arguments = [image, a.descriptor, b.descriptor, np.uint32(0), np.zeros((128, 4), "u4"), d]
    run(program(8, "b32", body), arguments, parameters=PARAMETERS, block=(128, 1, 1))
    got = np.zeros((64, 16), "i4")
    got[d_positions(16)] = d
    bits = [np.unpackbits(x.bits, axis=1).astype("i4") for x in (a, b)]
    np.testing.assert_array_equal(got, bits[0] @ bits[1].T)


# --- groups, in all orders ---

MMA = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16"


@pytest.fixture
def execute(run):
    """Run a body on one f16 tile of four k steps; gives D and the exact product of each step."""

    def go(body, *, order="late", seed=0, threads=128, record=True):
        rng = np.random.default_rng(5)
        image = np.zeros(SHARED, "u1")
        steps = []
        for k in range(4):
            a = Operand("f16", 64, rng, at=32 * k)
            b = Operand("f16", 16, rng, at=B_AT + 32 * k)
            a.put(image)
            b.put(image)
            steps.append(a.values @ b.values.T)
        start = descriptor(0, 0, 1024, 128), descriptor(B_AT, 0, 1024, 128)
        d = np.zeros((threads, 8), "f4")
        run(
            program(8, "f32", body, threads),
            [image, *start, np.uint32(1), np.zeros((threads, 4), "u4"), d],
            parameters=PARAMETERS,
            block=(threads, 1, 1),
            order=order,
            seed=seed,
            record=record,
        )
        got = np.zeros((64, 16), "f4")
        got[d_positions(16)] = d[:128]
        return got, steps

    return go


def issue(step=0, registers="d", shape=MMA):
    """A product of one k step; descriptors move on by 32 bytes."""
    move = "add.u64 %da, %da, 2; add.u64 %db, %db, 2;" if step else ""
    return f"{move} {shape} {names(registers, 8)}, %da, %db, %scale, 1, 1, 0, 0;"


ORDERS = [("late", 0), ("early", 0), *(("random", seed) for seed in range(4))]


@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_a_chain(execute, order, seed):
    """Four products into one accumulator; two groups, of which the first is waited for apart."""
    body = FENCE + issue() + issue(1) + "wgmma.commit_group.sync.aligned;" + issue(1) + issue(1)
    body += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" + WAIT
    got, steps = execute(body, order=order, seed=seed)
    np.testing.assert_allclose(got, sum(steps), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_two_warpgroups(product, order, seed):
    """Warps of a block that drift apart compute their own rows all the same."""
    check(product("f16", "f16", "f32", 24, order=order, seed=seed))


OVERWRITE = """
    mad.lo.u32 %to, %lane, 16, %tile; mov.b32 %i, 0;
    st.shared.v4.b32 [%to], {%i, %i, %i, %i}; st.shared.v4.b32 [%to+2048], {%i, %i, %i, %i};
    st.shared.v4.b32 [%to+4096], {%i, %i, %i, %i}; st.shared.v4.b32 [%to+6144], {%i, %i, %i, %i};
    fence.proxy.async; bar.sync 0;
"""


def test_operands_reused_too_soon(execute):
    """A is overwritten between issue and wait: seen where products are late, not where early."""
    group = "wgmma.commit_group.sync.aligned;"
    body = FENCE + issue() + group + OVERWRITE + WAIT
    got, steps = execute(body, order="early")
    np.testing.assert_allclose(got, steps[0], atol=1e-4)
    got, _ = execute(body, order="late")
    np.testing.assert_array_equal(got, 0)
    got, _ = execute(FENCE + issue() + WAIT + OVERWRITE)
    np.testing.assert_allclose(got, steps[0], atol=1e-4)


@pytest.mark.parametrize(("order", "seed"), ORDERS)
@pytest.mark.parametrize(
    "touch",
    ["mov.b32 %i, %d5;", "mov.f32 %d5, 0f00000000;", "@%q bra DONE; add.f32 %d5, %d5, %d5; DONE:"],
)
def test_registers_in_flight(execute, touch, order, seed):
    """Touching an accumulator before the wait is an error, whenever the wgmma is performed."""
    body = FENCE + issue() + "wgmma.commit_group.sync.aligned; setp.eq.u32 %q, %lane, 0;"
    message = r"touches %d5, which belongs to wgmma.mma_async.* \(line \d+\) until"
    with pytest.raises(LegoError, match=message):
        execute(body + touch + WAIT, order=order, seed=seed, record=False)
    got, steps = execute(body + WAIT + "mov.b32 %i, %d5;", order=order, seed=seed)
    np.testing.assert_allclose(got, steps[0], atol=1e-4)


def test_one_group_may_stay(execute):
    """The accumulators of the second group are still taken, those of the first are not."""
    head = ".reg .f32 %e<8>;" + "".join(f"mov.f32 %e{i}, 0f00000000;" for i in range(8)) + FENCE
    group = "wgmma.commit_group.sync.aligned;"
    head += issue() + group + issue(1, "e") + group + "wgmma.wait_group.sync.aligned 1;"
    got, steps = execute(head + "add.f32 %d0, %d0, 0f3F800000;" + WAIT)
    steps[0][:, ::2][d_positions(16)[0][:, 0], d_positions(16)[1][:, 0] // 2] += 1
    np.testing.assert_allclose(got, steps[0], atol=1e-4)
    with pytest.raises(LegoError, match="touches %e3"):
        execute(head + "mov.f32 %e3, %d0;" + WAIT, record=False)


def test_a_guard_that_does_not_hold_touches_nothing(execute):
    body = FENCE + issue() + "setp.gt.u32 %q, %lane, 999; @%q mov.f32 %d5, 0f00000000;" + WAIT
    got, steps = execute(body)
    np.testing.assert_allclose(got, steps[0], atol=1e-4)


def test_registers_of_a_are_taken_too(execute):
    line = f"{MMA} {names('d', 8)}, {names('a', 4)}, %db, %scale, 1, 1, 0;"
    with pytest.raises(LegoError, match="touches %a2"):
        execute(FENCE + line + "mov.b32 %a2, 0;" + WAIT, record=False)
    execute(FENCE + line + WAIT + "mov.b32 %a2, 0;")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (issue(), "without a wgmma.fence before it"),
        (FENCE + "mov.f32 %d2, 0f00000000;" + issue(), r"uses %d2, which line \d+ has touched"),
        (FENCE + issue() + WAIT + "mov.b32 %i, %d1;" + issue(), "uses %d1, which line"),
        (
            FENCE + issue() + "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, "
            "%d3}, %da, %db, %scale, 1, 1, 0, 0;",
            "uses %d0, an accumulator of wgmma of the shape m64n16k16",
        ),
    ],
)  # fmt: skip
def test_missing_fences(execute, body, message):
    with pytest.raises(LegoError, match=message):
        execute(body + WAIT, record=False)


def test_accumulators_that_become_a(execute):
    """Between a product and one that takes its D as A there is a wait and a fence."""
    first = MMA.replace("f32.f16", "f16.f16") + f" {names('a', 4)}, %da, %db, %scale, 1, 1, 0, 0;"
    second = f"{MMA} {names('d', 8)}, {names('a', 4)}, %db, %scale, 1, 1, 0;" + WAIT
    execute(FENCE + first + WAIT + FENCE + second)
    with pytest.raises(LegoError, match="uses %a0, an accumulator of wgmma of the shape"):
        execute(FENCE + first + WAIT + second, record=False)


def test_fences_where_they_should_stand(execute):
    body = FENCE + issue() + WAIT + "add.f32 %d1, %d1, %d1;" + FENCE + issue(1) + WAIT
    body += FENCE + f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {names('d', 4)}, "
    execute(body + "%da, %db, %scale, 1, 1, 0, 0;" + WAIT)


@pytest.mark.parametrize(
    ("body", "threads", "message"),
    [
        (issue(), 96, "needs the 4 warps of a warpgroup, and the CTA has 96 threads"),
        ("@%q " + issue()[1:] + "@!%q " + issue()[1:], 128, "but execute this .* 0, 1, 1, 1 times"),
        ("@%q add.u64 %da, %da, 2;" + issue(), 128, "warpgroup, but .* with different operands"),
        ("add.u64 %da, %da, %odd;" + issue(), 128, "operands that differ between the lanes"),
        ("or.b64 %db, %db, 0x0020400000000000;" + issue(), 128, "sets the bits 46, 53, which must"),
        ("shl.b64 %db, %db, 3;" + issue(), 128, "out of bounds: wgmma.* reads 8 bytes"),
    ],
)  # fmt: skip
def test_wrong_wgmma_operands_are_errors(execute, body, threads, message):
    head = ".reg .b64 %odd; .reg .b32 %odd32; and.b32 %odd32, %lane, 1; cvt.u64.u32 %odd, %odd32;"
    head += "setp.ge.u32 %q, %lane, 32;" + FENCE
    with pytest.raises(LegoError, match=message):
        execute(head + body + WAIT, threads=threads, record=False)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{MMA} {names('d', 7)}, %da, %db, %scale, 1, 1, 0, 0;", "8 .f32 registers should stand"),
        (f"{MMA} {names('d', 8)}, %da, %db, %scale, 1, 0, 0, 0;", "a scale of 0 where 1 or -1"),
        (f"{MMA} {names('d', 8)}, %da, %db, %scale, 1, 1, 0;", "7 operands where 8 should stand"),
        (f"{MMA} {names('d', 8)}, {names('a', 4)}, %db, %scale, 1, 1, 0, 1;", "8 operands where 7"),
        ("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%d0}, %da, %db, %scale;",
         r"this form of wgmma is not modelled.*PTX ISA 9.7.15.5.2"),
        ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%d0}, %da, %db, %x0, 0, %scale, 1;",
         r"is not modelled \(PTX ISA 9.7.15.6\)"),
    ],
)  # fmt: skip
def test_wrong_wgmma_syntax_is_an_error(execute, line, message):
    with pytest.raises(LegoError, match=message):
        execute(line, record=False)
