"""ldmatrix, stmatrix and movmatrix against the ISA's figures, element by element."""

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

BYTES = 4096
COUNTS = {"x1": 1, "x2": 2, "x4": 4}


def setup(threads):
    """Fill shared memory from `src`; %row: the lane's row address; %to: 16 bytes of the lane."""
    return f"""
        .shared .align 16 .b8 tile[{BYTES}];
        .reg .b32 %t, %i, %w, %row, %tile, %r<4>; .reg .b64 %base, %at, %to, %generic, %row64;
        .reg .pred %p;
        mov.u32 %t, %tid.x; mov.u32 %tile, tile;
        mov.b32 %i, %t;
        ld.param.u64 %base, [src];
    FILL:
        mad.wide.u32 %at, %i, 4, %base; ld.global.b32 %w, [%at];
        shl.b32 %row, %i, 2; add.u32 %row, %row, %tile; st.shared.b32 [%row], %w;
        add.u32 %i, %i, {threads}; setp.lt.u32 %p, %i, {BYTES // 4}; @%p bra FILL;
        bar.sync 0;
        ld.param.u64 %base, [rows]; mad.wide.u32 %at, %t, 4, %base; ld.global.b32 %row, [%at];
        add.u32 %row, %row, %tile;
        mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;
        ld.param.u64 %base, [out]; mad.wide.u32 %to, %t, 16, %base;
    """


STORE = "st.global.v4.b32 [%to], {%r0, %r1, %r2, %r3};"
PARAMETERS = (("src", "u64"), ("rows", "u64"), ("out", "u64"))


def rows_of(warps, seed=3, used=32):
    """A different 16-byte row for each lane, in random order; garbage for the other lanes."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(BYTES // 16)[: 32 * warps].astype("u4") * 16
    return np.where(np.arange(32 * warps) % 32 < used, rows, 0x7FFFFFF1)


def held(matrices, trans):
    """Registers of 32 lanes that hold (count, 8, 8) matrices, as (32, 4) words."""
    registers = np.zeros((32, 4), "u4")
    for j, matrix in enumerate(matrices):
        matrix = matrix.T if trans else matrix
        for lane in range(32):
            low, high = matrix[lane // 4, 2 * (lane % 4)], matrix[lane // 4, 2 * (lane % 4) + 1]
            registers[lane, j] = int(low) | int(high) << 16
    return registers


def vector(count):
    return "{" + ", ".join(f"%r{j}" for j in range(count)) + "}"


@pytest.mark.parametrize("space", ["", ".shared", ".shared::cta"])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", COUNTS)
def test_ldmatrix(run, count, trans, space):
    number = COUNTS[count]
    memory = np.random.default_rng(1).integers(0, 2**16, BYTES // 2).astype("u2")
    rows = rows_of(4, used=8 * number)
    out = np.zeros((128, 4), "u4")
    address = "[%row]"
    generic = ""
    if not space:
        generic = "cvt.u64.u32 %row64, %row; cvta.shared.u64 %generic, %row64;"
        address = "[%generic]"
    load = f"ldmatrix.sync.aligned.m8n8.{count}{trans}{space}.b16 {vector(number)}, {address};"
    body = setup(128) + generic + load + STORE
    run(body, [memory, rows, out], parameters=PARAMETERS, block=(128, 1, 1))
    for warp in range(4):
        starts = rows[32 * warp : 32 * warp + 8 * number].reshape(number, 8) // 2
        matrices = memory[starts[..., None] + np.arange(8)]
        np.testing.assert_array_equal(
            out[32 * warp : 32 * warp + 32], held(matrices, trans), strict=True
        )


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", COUNTS)
def test_stmatrix(run, count, trans):
    """Every block writes its matrices and copies its whole memory out."""
    number, warps = COUNTS[count], 2
    rng = np.random.default_rng(2)
    memory = rng.integers(0, 2**16, BYTES // 2).astype("u2")
    matrices = rng.integers(0, 2**16, (warps, number, 8, 8)).astype("u2")
    rows = rows_of(warps, used=8 * number)
    registers = np.concatenate([held(m, trans) for m in matrices])
    out = np.zeros(BYTES // 2, "u2")
    values = f"""
        ld.param.u64 %base, [values]; mad.wide.u32 %at, %t, 16, %base;
        ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%at];
        bar.sync 0;
        stmatrix.sync.aligned.m8n8.{count}{trans}.shared.b16 [%row], {vector(number)};
        bar.sync 0;
        mov.b32 %i, %t; ld.param.u64 %base, [out];
    COPY:
        mad.wide.u32 %at, %i, 4, %base;
        shl.b32 %row, %i, 2; add.u32 %row, %row, %tile; ld.shared.b32 %w, [%row];
        st.global.b32 [%at], %w;
        add.u32 %i, %i, 64; setp.lt.u32 %p, %i, {BYTES // 4}; @%p bra COPY;
    """
    run(
        setup(64) + values,
        [memory, rows, out, registers],
        parameters=(*PARAMETERS, ("values", "u64")),
        block=(64, 1, 1),
    )
    want = memory.copy()
    for warp in range(warps):
        for j in range(number):
            for r in range(8):
                start = rows[32 * warp + 8 * j + r] // 2
                want[start : start + 8] = matrices[warp, j, r]
    np.testing.assert_array_equal(out, want)


def test_movmatrix(lanewise):
    matrices = np.random.default_rng(3).integers(0, 2**16, (2, 8, 8)).astype("u2")
    a = np.concatenate([held([m], False)[:, 0] for m in matrices])
    want = np.concatenate([held([m], True)[:, 0] for m in matrices])
    got = lanewise("movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;", "u4", a=a)
    np.testing.assert_array_equal(got, want)


def test_one_address_for_all(run):
    """All rows are one row, which a constant address gives."""
    memory = np.arange(BYTES // 2, dtype="u2")
    out = np.zeros((32, 4), "u4")
    load = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [tile+48];"
    run(setup(32) + load + STORE, [memory, rows_of(1), out], parameters=PARAMETERS)
    matrices = np.broadcast_to(memory[24:32], (2, 8, 8))
    np.testing.assert_array_equal(out, held(matrices, False))


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (8, "misaligned: ldmatrix.* reads 16 bytes at byte offset 264 .* thread .37, 0, 0."),
        (BYTES, "out of bounds: ldmatrix.* reads 16 bytes at byte offset 4352 .* thread .37, 0"),
    ],
)
def test_bad_rows(run, offset, message):
    """Only the lanes that give an address can give a bad one."""
    rows = np.full(64, 256, "u4")
    rows[37] += offset
    rows[31] = 3
    load = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%row];"
    arguments = [np.zeros(BYTES // 4, "u4"), rows, np.zeros((64, 4), "u4")]
    with pytest.raises(LegoError, match=message):
        run(setup(64) + load, arguments, parameters=PARAMETERS, block=(64, 1, 1))


def test_newer_forms_are_refused(run):
    line = "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%row];"
    with pytest.raises(LegoError, match=r"this form of ldmatrix is not modelled.* 9.7.14.5.15"):
        run(setup(32) + line, [], parameters=PARAMETERS, record=False)
