"""Loads and stores in every state space, and what goes wrong with them."""

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

TWO = (("a", "u64"), ("b", "u64"))
HEAD = """
    .reg .pred %p; .reg .b16 %h<8>; .reg .b32 %t, %x<8>; .reg .b64 %a, %b, %pa, %pb, %l;
    mov.u32 %t, %tid.x;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
"""


def test_vectors(run):
    a = np.arange(128, dtype="u4")
    b = np.zeros(128, "u4")
    body = (
        HEAD
        + """
        mad.wide.u32 %pa, %t, 16, %a;
        mad.wide.u32 %pb, %t, 16, %b;
        ld.global.nc.L1::no_allocate.v4.b32 {%x0, %x1, %x2, %x3}, [%pa];
        st.global.v2.b32 [%pb+8], {%x0, %x1};
        st.global.cs.v2.u32 [%pb], {%x3, %x2};
    """
    )
    run(body, [a, b], parameters=TWO)
    want = a.reshape(32, 4)[:, [3, 2, 0, 1]]
    assert np.array_equal(b.reshape(32, 4), want)


USED = (
    HEAD
    + """
    mad.wide.u32 %pa, %t, 8, %a;
    mad.wide.u32 %pb, %t, 8, %b;
    PRAGMA
    ld.global.v2.b32 {%x0, %x1}, [%pa];
    st.global.b32 [%pb], %x0;
    st.global.u16 [%pb+4], %x1;
"""
)


def test_bytes_that_are_not_used_may_be_past_the_end(run):
    """As LLVM loads the last three of 16-bit numbers: with the byte behind them."""
    a = np.arange(127, dtype="u2")
    b = np.zeros(128, "u2")
    run(USED.replace("PRAGMA", '.pragma "used_bytes_mask 0x3f";'), [a, b], parameters=TWO)
    want = np.append(a, 0).reshape(32, 4)
    want[:, 3] = 0
    assert np.array_equal(b.reshape(32, 4), want)


@pytest.mark.parametrize("pragma", ["", '.pragma "nounroll";', '.pragma "used_bytes_mask 0x7f";'])
@pytest.mark.parametrize("count", [125, 127])
def test_bytes_that_are_used_are_in_bounds(run, pragma, count):
    mask = '.pragma "used_bytes_mask 0x3f";' if count == 125 else pragma
    a, b = np.arange(count, dtype="u2"), np.zeros(128, "u2")
    with pytest.raises(LegoError, match=r"out of bounds: ld\.global\.v2\.b32 reads"):
        run(USED.replace("PRAGMA", mask), [a, b], parameters=TWO)


def test_small_vectors(run):
    a = np.arange(64, dtype="u1")
    b = np.zeros(32, "u2")
    body = (
        HEAD
        + """
        mad.wide.u32 %pa, %t, 2, %a;
        mad.wide.u32 %pb, %t, 2, %b;
        ld.volatile.global.v2.u8 {%h0, %h1}, [%pa];
        mad.lo.u16 %h2, %h0, 256, %h1;
        st.relaxed.gpu.global.u16 [%pb], %h2;
    """
    )
    run(body, [a, b], parameters=TWO)
    assert np.array_equal(b, a.reshape(32, 2) @ np.array([256, 1], "u2"))


def test_extension_and_truncation(run):
    """Registers wider than the access: signs extended on loads, low bits kept on stores."""
    a = np.arange(-16, 16, dtype="i1")
    b = np.zeros(32, "i8")
    body = (
        HEAD
        + """
        cvt.u64.u32 %l, %t;
        add.s64 %pa, %a, %l;
        mad.wide.u32 %pb, %t, 8, %b;
        ld.global.s8 %l, [%pa];
        st.global.b64 [%pb], %l;
        ld.global.u8 %x0, [%pa];
        add.u32 %x0, %x0, 0x1100;
        st.global.b8 [%pa], %x0;
    """
    )
    before = a.copy()
    run(body, [a, b], parameters=TWO)
    assert b.tolist() == before.tolist()
    assert np.array_equal(a, before)


def test_generic_addresses_reach_every_space(run):
    text = """
    .global .align 4 .u32 counter = 40;
    .const .align 4 .b32 table[4] = {10, 20, 30, 0x28};
    .visible .entry k(.param .u64 a, .param .u32 n)
    {
        .reg .pred %p; .reg .b32 %t, %x<8>, %n; .reg .b64 %a, %pa, %s, %l, %g, %c;
        .shared .align 8 .b8 tile[128];
        .local .align 8 .b8 depot[16];
        mov.u32 %t, %tid.x;
        ld.param.u64 %a, [a];
        ld.param.u32 %n, [n];
        mad.wide.u32 %pa, %t, 4, %a;
        mov.b64 %s, tile;
        cvta.shared.u64 %s, %s;
        mad.wide.u32 %s, %t, 4, %s;
        mov.b64 %l, depot;
        cvta.local.u64 %l, %l;
        st.b32 [%s], %t;
        mul.lo.u32 %x0, %t, 100;
        st.b32 [%l+8], %x0;
        mov.b64 %g, counter;
        ld.b32 %x1, [%g];
        ld.const.b32 %x2, [table+12];
        ld.shared.b32 %x3, [tile+4];
        ld.b32 %x4, [%s];
        ld.b32 %x5, [%l+8];
        cvta.to.local.u64 %l, %l;
        ld.local.b32 %x6, [%l+8];
        setp.eq.u32 %p, %x5, %x6;
        @!%p trap;
        add.u32 %x4, %x4, %x5;
        add.u32 %x4, %x4, %x1;
        add.u32 %x4, %x4, %x2;
        add.u32 %x4, %x4, %x3;
        add.u32 %x4, %x4, %n;
        st.b32 [%pa], %x4;
        ret;
    }
    """
    out = np.zeros(32, "u4")
    run(text, [out, np.uint32(1000)])
    assert out.tolist() == [101 * t + 40 + 40 + 1 + 1000 for t in range(32)]


def test_lanes_may_read_different_buffers(run):
    """A pointer picked by each lane: one access, three state spaces."""
    a, b = np.full(32, 5, "u4"), np.zeros(32, "u4")
    body = (
        HEAD
        + """
        .shared .align 4 .b32 cell;
        st.shared.b32 [cell], 7;
        mov.b64 %l, cell;
        cvta.shared.u64 %l, %l;
        and.b32 %x0, %t, 1;
        setp.eq.u32 %p, %x0, 0;
        selp.b64 %pa, %a, %l, %p;
        ld.b32 %x1, [%pa];
        mad.wide.u32 %pb, %t, 4, %b;
        st.global.b32 [%pb], %x1;
    """
    )
    run(body, [a, b], parameters=TWO)
    assert b.tolist() == [5, 7] * 16


def test_parameters_of_every_size(run):
    out = np.zeros(5, "u8")
    body = """
        .reg .b16 %h; .reg .b32 %x; .reg .b64 %o, %u;
        ld.param.u64 %o, [o];
        ld.param.u8 %h, [p];
        st.global.u8 [%o], %h;
        ld.param.s16 %u, [q];
        st.global.b64 [%o+8], %u;
        ld.param.b32 %x, [r];
        st.global.b32 [%o+16], %x;
        ld.param.f64 %u, [s];
        st.global.b64 [%o+24], %u;
        ld.param.b16 %h, [t];
        st.global.b16 [%o+32], %h;
    """
    kinds = (
        *(("p", "u8"), ("o", "u64 .ptr .global .align 1")),
        *(("q", "s16"), ("r", "f32"), ("s", "f64"), ("t", "b16")),
    )
    run(
        body,
        [np.uint8(200), out, np.int16(-3), np.float32(1.5), np.float64(0.1), np.float16(-2)],
        parameters=kinds,
        block=(1, 1, 1),
    )
    assert out[0] == 200
    assert out[1:2].view("i8")[0] == -3
    assert out[2:3].view("f4")[0] == 1.5
    assert out[3:4].view("f8")[0] == 0.1
    assert out[4:5].view("f2")[0] == -2


def test_special_registers(run):
    out = np.zeros((48, 12), "u4")
    body = """
        .reg .b32 %x<12>, %i; .reg .b64 %o, %a;
        mov.u32 %x0, %tid.x; mov.u32 %x1, %tid.y; mov.u32 %x2, %tid.z; mov.u32 %x3, %ctaid.x;
        mov.u32 %x4, %ctaid.y; mov.u32 %x5, %ctaid.z; mov.u32 %x6, %ntid.x; mov.u32 %x7, %ntid.z;
        mov.u32 %x8, %nctaid.y; mov.u32 %x9, %laneid; mov.u32 %x10, %warpid;
        mov.u32 %x11, %lanemask_lt;
        mad.lo.u32 %i, %x5, 2, %x4;
        mad.lo.u32 %i, %i, 1, %x3;
        mad.lo.u32 %i, %i, 3, %x2;
        mad.lo.u32 %i, %i, 2, %x1;
        mad.lo.u32 %i, %i, 2, %x0;
        ld.param.u64 %o, [o];
        mad.wide.u32 %a, %i, 48, %o;
        st.global.v4.b32 [%a], {%x0, %x1, %x2, %x3};
        st.global.v4.b32 [%a+16], {%x4, %x5, %x6, %x7};
        st.global.v4.b32 [%a+32], {%x8, %x9, %x10, %x11};
    """
    run(body, [out], parameters=(("o", "u64"),), grid=(1, 2, 2), block=(2, 2, 3))
    rows = []
    for bz, by, tz, ty, tx in np.ndindex(2, 2, 3, 2, 2):
        lane = tx + 2 * ty + 4 * tz
        rows.append([tx, ty, tz, 0, by, bz, 2, 3, 2, lane, 0, (1 << lane) - 1])
    assert out.tolist() == rows


def fault(run, line, *, a=None, grid=(1, 1, 1), **options):
    a = np.zeros(32, "u4") if a is None else a
    body = HEAD + "mad.wide.u32 %pa, %t, 4, %a;\n" + line
    with pytest.raises(LegoError) as e:
        run(body, [a, np.zeros(32, "u4")], parameters=TWO, grid=grid, **options)
    error = e.value
    row = error.source.splitlines()[error.location.line - 1]
    assert row[error.location.column - 1 :].startswith(("ld.", "st.", "atom.", "@", "red."))
    return error.message


def test_out_of_bounds_names_argument_offset_and_thread(run):
    message = fault(run, "ld.global.b32 %x0, [%pa+8];")
    assert message.startswith("out of bounds: ld.global.b32 reads 4 bytes at byte offset 128 of")
    assert "argument 0 (a), which has 128 bytes, in thread (30, 0, 0) of CTA (0, 0, 0)" in message
    message = fault(run, "st.global.b32 [%pa+-8], 1;")
    assert "writes 4 bytes at byte offset -8 of argument 0 (a)" in message
    assert "in thread (0, 0, 0) of" in message


def test_out_of_bounds_in_some_lanes_only(run):
    line = """
        setp.eq.u32 %p, %t, 9;
        selp.b32 %x1, 4000, 0, %p;
        cvt.u64.u32 %l, %x1;
        add.s64 %pa, %pa, %l;
        @%p ld.global.b32 %x0, [%pa];
    """
    assert "byte offset 4036 of argument 0" in (message := fault(run, line))
    assert "in thread (9, 0, 0) of" in message


def test_the_block_is_named(run):
    line = """
        mov.u32 %x1, %ctaid.x;
        mad.lo.u32 %x1, %x1, 8, %t;
        mad.wide.u32 %pa, %x1, 4, %a;
        ld.global.b32 %x0, [%pa];
    """
    message = fault(run, line, grid=(3, 1, 1), block=(20, 1, 1))
    assert "byte offset 128" in message
    assert "in thread (16, 0, 0) of CTA (2, 0, 0)" in message


def test_misaligned(run):
    message = fault(run, "ld.global.v2.b32 {%x0, %x1}, [%pa];")
    for words in ("misaligned: ld.global.v2.b32", "byte offset 4", "multiple of 8", "(1, 0, 0)"):
        assert words in message


def test_wild_and_mixed_up_addresses(run):
    assert "address 0x10, where there is no buffer" in fault(
        run, "mov.b64 %l, 16; ld.global.b8 %h0, [%l];"
    )
    shared = ".shared .b32 cell; mov.b64 %l, cell;"
    message = fault(run, shared + "cvta.shared.u64 %l, %l; ld.global.b32 %x0, [%l];", record=False)
    assert "a generic address of the shared memory" in message
    message = fault(run, shared + "ld.shared.b32 %x0, [%a];")
    assert "of the shared memory, which has 4 bytes" in message


def test_addresses_of_parameters(run):
    """A pointer to a parameter is one of its state space; generic it is by cvta."""
    a, b = np.zeros(32, "u4"), np.zeros(32, "u4")
    body = HEAD + "mad.wide.u32 %pb, %t, 4, %b; mov.b64 %l, a;"
    direct = "ld.param.b64 %pa, [%l]; st.global.b64 [%b], %pa; ld.param.b64 %pa, [%l+8];"
    run(body + direct + "st.global.b64 [%b+8], %pa;", [a, b], parameters=TWO)
    run(
        body + "cvta.param.u64 %l, %l; ld.b64 %pa, [%l]; st.global.b64 [%b+16], %pa; "
        "cvta.to.param.u64 %l, %l; ld.param.b64 %pa, [%l+8]; st.global.b64 [%b+24], %pa;",
        [a, b],
        parameters=TWO,
    )
    pointers = b.view("u8")
    assert pointers[:2].tolist() == pointers[2:4].tolist()
    assert pointers[0] != pointers[1]
    with pytest.raises(LegoError, match=r"(?s)address 0x8, where there is no buffer.*hint: cvta"):
        run(body + "ld.b64 %pa, [%l+8];", [a, b], parameters=TWO)


def test_read_only_arrays(run):
    a = np.zeros(32, "u4")
    a.flags.writeable = False
    assert "writes argument 0 (a), which is read-only" in fault(run, "st.global.b32 [%pa], 1;", a=a)


def test_views_of_any_dtype_and_shape(run):
    """The device sees the bytes of an array, whatever it calls them."""
    a = np.arange(32, dtype="f4").reshape(2, 4, 4)
    b = np.zeros((4, 8), "i4")
    body = (
        HEAD
        + """
        mad.wide.u32 %pa, %t, 4, %a;
        mad.wide.u32 %pb, %t, 4, %b;
        ld.global.f32 %x0, [%pa];
        st.global.f32 [%pb], %x0;
    """
    )
    run(body, [a, b], parameters=TWO)
    assert np.array_equal(b.view("f4").ravel(), a.ravel())
