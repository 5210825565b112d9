"""`wmma`: loads, products and stores of fragments, of all shapes, types and orders."""

import numpy as np
import pytest

from lego_mlir.sim.ptx.types import widen_bf16

rng = np.random.default_rng(4)

PROGRAM = """
    .reg .b64 %pa, %pb, %pc, %pd; .reg .b32 %la, %lb;
    .reg .REGA %a<COUNTA>; .reg .REGA %b<COUNTB>; .reg .REGC %c<COUNTC>; .reg .REGD %d<COUNTD>;
    ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c]; ld.param.u64 %pd, [d];
    wmma.load.a.sync.aligned.ORDERA.SHAPE.global.TYPEA {AS}, [%pa], LDA;
    wmma.load.b.sync.aligned.ORDERB.SHAPE.global.TYPEB {BS}, [%pb], LDB;
    wmma.load.c.sync.aligned.ORDERC.SHAPE.TYPEC {CS}, [%pc], LDC;
    wmma.mma.OPsync.aligned.ORDERA.ORDERB.SHAPE.KINDS {DS}, {AS}, {BS}, {CS};
    wmma.store.d.sync.aligned.row.SHAPE.global.TYPED [%pd], {DS};
"""

REGISTERS = {"f16": 8, "bf16": 0, "tf32": 4, "f64": 1, "s8": 0, "u8": 0, "s4": 1, "u4": 1, "b1": 1}
PER_WORD = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4, "s4": 8, "u4": 8, "b1": 32}


def run_wmma(run, shape, a_kind, b_kind, c_kind, d_kind, orders, a, b, c, op=""):
    """Multiply matrices given as they lie in memory by rows, transposed where the order is col."""
    m, n, k = shape
    per = PER_WORD.get(a_kind, 1)
    count_a, count_b = (REGISTERS[a_kind] or size // 32 // per for size in (m * k, k * n))
    count_c, count_d = (max(m * n // 32 // (2 if x == "f16" else 1), 1) for x in (c_kind, d_kind))
    kinds = f"{d_kind}.{c_kind}" if a_kind == "f16" else f"{d_kind}.{a_kind}.{b_kind}.{c_kind}"
    registers = {"f16": "b32", "f32": "f32", "s32": "b32", "f64": "f64"}
    words = {
        "REGA": "f64" if a_kind == "f64" else "b32", "REGC": registers[c_kind],
        "REGD": registers[d_kind], "COUNTA": count_a, "COUNTB": count_b, "COUNTC": count_c,
        "COUNTD": count_d, "TYPEA": a_kind, "TYPEB": b_kind, "TYPEC": c_kind, "TYPED": d_kind,
        "ORDERA": orders[0], "ORDERB": orders[1], "ORDERC": orders[2],
        "SHAPE": f"m{m}n{n}k{k}", "KINDS": kinds, "OP": op,
        "LDA": k if orders[0] == "row" else m, "LDB": n if orders[1] == "row" else k,
        "LDC": n if orders[2] == "row" else m,
        **{
            f"{x}S": ", ".join(f"%{x.lower()}{i}" for i in range(number))
            for x, number in zip("ABCD", (count_a, count_b, count_c, count_d), strict=True)
        },
    }  # fmt: skip
    text = PROGRAM
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, str(words[word]))
    out = np.zeros((m, n), {"f16": "f2", "f32": "f4", "s32": "i4", "f64": "f8"}[d_kind])
    given = [
        np.ascontiguousarray(x if order == "row" else x.T)
        for x, order in zip((a, b, c), orders, strict=True)
    ]
    parameters = tuple((name, "u64") for name in "abcd")
    run(text, [*given, out], parameters=parameters)
    return out


ORDERS = [
    ("row", "col", "row"),
    ("col", "row", "row"),
    ("row", "row", "col"),
    ("col", "col", "col"),
]
LONG = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("shape", LONG)
def test_halves(run, shape, orders):
    m, n, k = shape
    a, b = (rng.integers(-8, 8, s).astype("f2") for s in ((m, k), (k, n)))
    for c_kind, d_kind in (("f32", "f32"), ("f16", "f32"), ("f16", "f16"), ("f32", "f16")):
        c = rng.integers(-8, 8, (m, n)).astype({"f16": "f2", "f32": "f4"}[c_kind])
        got = run_wmma(run, shape, "f16", "f16", c_kind, d_kind, orders, a, b, c)
        assert (got == a.astype("f8") @ b.astype("f8") + c).all()


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("shape", LONG)
def test_bf16(run, shape, orders):
    m, n, k = shape
    a, b = (
        (rng.standard_normal(s).astype("f4").view("u4") >> 16).astype("u2")
        for s in ((m, k), (k, n))
    )
    c = rng.standard_normal((m, n)).astype("f4")
    got = run_wmma(run, shape, "bf16", "bf16", "f32", "f32", orders, a, b, c)
    want = widen_bf16(a).astype("f8") @ widen_bf16(b).astype("f8") + c
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("shape", LONG)
@pytest.mark.parametrize("kind", ["s8", "u8"])
def test_bytes(run, shape, orders, kind):
    m, n, k = shape
    dtype = {"s8": "i1", "u8": "u1"}[kind]
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max + 1, s).astype(dtype) for s in ((m, k), (k, n)))
    c = rng.integers(-99, 99, (m, n)).astype("i4")
    got = run_wmma(run, shape, kind, kind, "s32", "s32", orders, a, b, c)
    assert (got == a.astype("i4") @ b.astype("i4") + c).all()


@pytest.mark.parametrize("orders", ORDERS)
def test_tf32_and_f64(run, orders):
    a, b = rng.integers(-99, 99, (16, 8)).astype("f4"), rng.integers(-99, 99, (8, 16)).astype("f4")
    c = rng.integers(-99, 99, (16, 16)).astype("f4")
    got = run_wmma(run, (16, 16, 8), "tf32", "tf32", "f32", "f32", orders, a, b, c)
    assert (got == a @ b + c).all()
    a, b, c = a[:8, :4].astype("f8"), b[:4, :8].astype("f8"), c[:8, :8].astype("f8")
    got = run_wmma(run, (8, 8, 4), "f64", "f64", "f64", "f64", orders, a, b, c)
    assert (got == a @ b + c).all()


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize("kind", ["s4", "u4"])
def test_nibbles(run, kind, order):
    """A lies by rows and B by columns, two nibbles in a byte, the lower one first."""
    low = -8 if kind == "s4" else 0
    a, b = (rng.integers(low, low + 16, (8, 32)) for _ in range(2))
    c = rng.integers(-99, 99, (8, 8)).astype("i4")
    packed = [(x[:, ::2] & 15 | (x[:, 1::2] & 15) << 4).astype("u1") for x in (a, b)]
    orders = ("row", "col", order)
    got = run_wmma(
        run, (8, 8, 32), kind, kind, "s32", "s32", orders, packed[0], packed[1].T, c
    )  # fmt: skip
    assert (got == a @ b.T + c).all()


@pytest.mark.parametrize("op", ["xor", "and"])
def test_bits(run, op):
    a, b = (rng.integers(0, 2, (8, 128)).astype("u1") for _ in range(2))
    c = rng.integers(-99, 99, (8, 8)).astype("i4")
    packed = [np.packbits(x, axis=1, bitorder="little") for x in (a, b)]
    got = run_wmma(
        run, (8, 8, 128), "b1", "b1", "s32", "s32", ("row", "col", "row"),
        packed[0], packed[1].T, c, op=f"{op}.popc.",
    )  # fmt: skip
    combined = a[:, None] ^ b[None] if op == "xor" else a[:, None] & b[None]
    assert (got == combined.sum(-1) + c).all()
