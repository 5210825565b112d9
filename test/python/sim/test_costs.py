"""What kernels cost: by hand for the patterns everyone knows, by enumeration for any."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir import sim
from lego_mlir.diagnostics import Location
from lego_mlir.sim.cost.report import report

LANE = np.arange(32)
BYTES = 8192
LETTER = {1: "b8", 2: "b16", 4: "b32", 8: "v2.b32", 16: "v4.b32"}

# Every thread accesses `buffer` at the byte offset that `table` holds for it.
HEAD = f"""
    .reg .pred %p, %q; .reg .b32 %t, %b, %n, %o, %r<4>; .reg .b16 %h; .reg .b64 %a, %g;
    .shared .align 128 .b8 tile[{BYTES}];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %n, %b, %n, %t;
    ld.param.u64 %a, [table];
    mad.wide.u32 %a, %n, 4, %a;
    ld.global.b32 %o, [%a];
    cvt.u64.u32 %a, %o;
    ld.param.u64 %g, [buffer];
    add.u64 %g, %g, %a;
    mov.u32 %r0, tile; mov.b16 %h, 0;
    add.u32 %o, %o, %r0;
    setp.ne.u32 %p, %t, 0xffffffff;
"""
PARAMETERS = (("table", "u64"), ("buffer", "u64"))


def registers(width):
    match width:
        case 1 | 2:
            return "%h"
        case 4:
            return "%r0"
        case 8:
            return "{%r0, %r1}"
        case _:
            return "{%r0, %r1, %r2, %r3}"


@pytest.fixture
def cost(run):
    """The cost rows of the instructions that stand after `HEAD`, for a table of byte offsets."""

    def launch(lines, offsets, *, threads=32, **options):
        offsets = np.asarray(offsets, "u4").reshape(-1, threads)
        buffer = np.zeros(BYTES, "u1")
        costs = run(
            HEAD + lines,
            [offsets, buffer],
            parameters=PARAMETERS,
            grid=(len(offsets), 1, 1),
            block=(threads, 1, 1),
            costs=True,
            **options,
        )
        return costs.memory[1:]

    return launch


def access(space, width, writes=False):
    address = "[%g]" if space == "global" else "[%o]"
    if writes:
        return f"st.{space}.{LETTER[width]} {address}, {registers(width)};"
    return f"ld.{space}.{LETTER[width]} {registers(width)}, {address};"


# --- by hand ---


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize(
    ("width", "offsets", "sectors", "least"),
    [
        pytest.param(4, 4 * LANE, 4, 4, id="row of f32"),
        pytest.param(4, 128 * LANE, 32, 4, id="column of 32x32 f32"),
        pytest.param(4, 8 * LANE, 8, 4, id="every second f32"),
        pytest.param(4, 0 * LANE, 1, 1, id="broadcast"),
        pytest.param(4, 4 * LANE + 4, 5, 4, id="row of f32, one off"),
        pytest.param(4, 4 * LANE[::-1], 4, 4, id="row of f32, backwards"),
        pytest.param(2, 2 * LANE, 2, 2, id="row of f16"),
        pytest.param(2, 2 * LANE + 2, 3, 2, id="row of f16, one off"),
        pytest.param(1, LANE, 1, 1, id="row of i8"),
        pytest.param(8, 8 * LANE, 8, 8, id="row of v2"),
        pytest.param(16, 16 * LANE, 16, 16, id="row of v4"),
        pytest.param(16, 128 * LANE, 32, 16, id="column of v4"),
    ],
)
def test_sectors(cost, width, offsets, sectors, least, writes):
    (row,) = cost(access("global", width, writes), offsets)
    assert (row.space, row.requests, row.lanes, row.bytes) == ("global", 1, 32, 32 * width)
    assert (row.sectors, row.least_sectors) == (sectors, least)
    assert row.excess_sectors == sectors - least
    assert (row.wavefronts, row.least_wavefronts) == (0, 0)


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize(
    ("width", "offsets", "wavefronts", "least"),
    [
        pytest.param(4, 4 * LANE, 1, 1, id="row of f32"),
        pytest.param(4, 128 * LANE, 32, 1, id="column of 32x32 f32"),
        pytest.param(4, 132 * LANE, 1, 1, id="column of 32x33 f32"),
        pytest.param(4, 128 * LANE + 4 * (LANE ^ 5), 1, 1, id="column of 32x32 f32, swizzled"),
        pytest.param(4, 8 * LANE, 2, 1, id="every second f32"),
        pytest.param(4, 0 * LANE, 1, 1, id="broadcast"),
        pytest.param(4, 128 * (LANE // 16), 2, 1, id="two words of a bank"),
        pytest.param(2, 2 * LANE, 1, 1, id="row of f16"),
        pytest.param(2, 64 * LANE, 16, 1, id="column of 32x32 f16"),
        pytest.param(8, 8 * LANE, 2, 2, id="row of v2"),
        pytest.param(16, 16 * LANE, 4, 4, id="row of v4"),
        pytest.param(16, 128 * LANE, 32, 4, id="column of v4"),
        pytest.param(16, 128 * LANE + 16 * (LANE % 8), 4, 4, id="column of v4, swizzled"),
    ],
)
def test_wavefronts(cost, width, offsets, wavefronts, least, writes):
    (row,) = cost(access("shared", width, writes), offsets)
    assert (row.space, row.requests, row.lanes, row.bytes) == ("shared", 1, 32, 32 * width)
    assert (row.wavefronts, row.least_wavefronts) == (wavefronts, least)
    assert row.excess_wavefronts == wavefronts - least
    assert (row.sectors, row.least_sectors) == (0, 0)


def test_atomics_on_one_word_go_one_after_the_other(cost):
    atom = "atom.shared.add.u32 %r0, [%o], 1; red.global.add.u32 [%g], 1;"
    shared, in_global = cost(atom, 0 * LANE)
    assert (shared.wavefronts, shared.least_wavefronts) == (32, 1)
    assert (in_global.sectors, in_global.least_sectors) == (1, 1)
    shared, in_global = cost(atom, 4 * LANE)
    assert (shared.wavefronts, in_global.sectors) == (1, 4)


def test_a_generic_address_is_counted_where_it_lies(cost):
    lines = """
        cvt.u64.u32 %a, %o; cvta.shared.u64 %a, %a;
        setp.lt.u32 %q, %t, 8;
        selp.b64 %a, %a, %g, %q;
        ld.b32 %r0, [%a];
    """
    rows = cost(lines, 128 * LANE)
    assert {(r.space, r.lanes, r.sectors, r.wavefronts) for r in rows} == {
        ("shared", 8, 0, 8),
        ("global", 24, 24, 0),
    }


def test_local_memory_is_interleaved(cost):
    """The same variable of 32 threads is one line, whatever its size in a thread."""
    lines = """
        .local .align 16 .b8 spill[48];
        st.local.b32 [spill+4], %r0;
        st.local.v4.b32 [spill+16], {%r0, %r1, %r2, %r3};
    """
    one, four = cost(lines, 0 * LANE)
    assert (one.space, one.bytes, one.sectors, one.least_sectors) == ("local", 128, 4, 4)
    assert (four.bytes, four.sectors, four.least_sectors) == (512, 16, 16)


def test_matrix_rows_are_phases_of_eight_lanes(cost):
    load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%o];"
    (plain,) = cost(load, 128 * LANE)
    assert (plain.bytes, plain.wavefronts, plain.least_wavefronts) == (512, 32, 4)
    (swizzled,) = cost(load, 128 * LANE + 16 * (LANE % 8))
    assert (swizzled.wavefronts, swizzled.least_wavefronts) == (4, 4)
    (one,) = cost("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%o], {%r0};", 16 * LANE)
    assert (one.lanes, one.bytes, one.wavefronts, one.least_wavefronts) == (8, 128, 1, 1)


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_an_asynchronous_copy_costs_on_both_sides(cost, order):
    copy = "cp.async.ca.shared.global [%o], [%g], 4; cp.async.wait_all;"
    rows = cost(copy, np.tile(128 * LANE, 4), threads=64, order=order)
    assert [(r.space, r.bytes, r.requests) for r in rows] == [
        ("global", 512, 4),
        ("shared", 512, 4),
    ]
    assert (rows[0].sectors, rows[0].least_sectors) == (128, 16)
    assert (rows[1].wavefronts, rows[1].least_wavefronts) == (128, 4)


def test_of_bulk_copies_the_bytes_are_counted(cost):
    lines = """
        setp.eq.u32 %p, %t, 0;
        @%p cp.async.bulk.global.shared::cta.bulk_group [%g], [tile], 256;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
    """
    rows = cost(lines, np.zeros((3, 64)), threads=64)
    assert {(r.space, r.requests, r.bytes) for r in rows} == {
        ("shared", 3, 768),
        ("global", 3, 768),
    }
    assert sum(r.sectors + r.wavefronts for r in rows) == 0


# --- which lanes, which warps ---


def test_lanes_whose_guard_does_not_hold_ask_for_nothing(cost):
    lines = """
        setp.lt.u32 %p, %t, 5;
        @%p ld.global.b32 %r0, [%g];
        setp.gt.u32 %p, %t, 99;
        @%p ld.global.b32 %r0, [%g];
    """
    (row,) = cost(lines, np.tile(128 * LANE, 2), threads=64)
    assert (row.requests, row.lanes, row.bytes) == (1, 5, 20)
    assert (row.sectors, row.least_sectors) == (5, 1)


def test_a_cta_may_end_with_a_partial_warp(cost):
    offsets = np.tile(4 * np.arange(48), 3)
    rows = cost(access("global", 4) + access("shared", 4), offsets, threads=48)
    assert [(r.requests, r.lanes) for r in rows] == [(6, 144), (6, 144)]
    assert (rows[0].sectors, rows[1].wavefronts) == (3 * 6, 3 * 2)


def test_each_iteration_costs_its_own(cost):
    """A pattern that changes from one execution to the next: strides of 4, 8, 16 … bytes."""
    lines = """
        sub.u32 %o, %o, %r0;
        mov.u32 %r1, 0;
    AGAIN:
        shl.b32 %r2, %o, %r1;
        add.u32 %r2, %r2, %r0;
        ld.shared.b32 %r3, [%r2];
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p, %r1, 6;
        @%p bra AGAIN;
    """
    (row,) = cost(lines, np.tile(4 * LANE, 40))
    assert (row.requests, row.wavefronts) == (40 * 6, 40 * (1 + 2 + 4 + 8 + 16 + 32))


@pytest.mark.parametrize(("guard", "lanes", "sectors"), [("", 32, 4 + 5), ("@%q", 16, 2 + 3)])
def test_the_same_pattern_elsewhere_in_its_line_costs_otherwise(cost, guard, lanes, sectors):
    lines = f"""
        setp.lt.u32 %q, %t, 16;
        mov.u32 %r1, 0;
    AGAIN:
        {guard} ld.global.b32 %r3, [%g];
        add.u64 %g, %g, 4;
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p, %r1, 2;
        @%p bra AGAIN;
    """
    (row,) = cost(lines, 4 * LANE)
    assert (row.lanes, row.sectors) == (2 * lanes, sectors)


def sectors_of(offsets, width):
    asked = {b for o in offsets for b in range(o, o + width)}
    return len({b // 32 for b in asked}), -(-len(asked) // 32)


def wavefronts_of(offsets, lanes, width):
    executed = least = 0
    for phase in range(max(1, width // 4)):
        phase_lanes = [k for k in range(32) if k * max(1, width // 4) // 32 == phase]
        words = {
            b // 4
            for o, lane in zip(offsets, lanes, strict=True)
            if lane in phase_lanes
            for b in range(o, o + width)
        }
        banks = [sum(w % 32 == bank for w in words) for bank in range(32)]
        executed += max(banks)
        least += bool(words)
    return executed, least


@given(st.data())
def test_any_pattern_agrees_with_enumeration(data):
    """Random offsets of several blocks with a partial warp, some lanes of them, twice over."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    width = data.draw(st.sampled_from([1, 2, 4, 8, 16]))
    threads = data.draw(st.sampled_from([32, 40, 96]))
    blocks = data.draw(st.integers(1, 4))
    spread = data.draw(st.sampled_from([8, 64, BYTES // 16]))
    offsets = rng.integers(0, spread, (blocks, threads), "u4") * width
    active = rng.random((blocks, threads)) < data.draw(st.sampled_from([0.2, 0.9, 1.0]))
    # The highest bit of a table entry switches its lane off.
    table = offsets | np.where(active, 0, 1 << 31).astype("u4")
    switch = "setp.ge.s32 %p, %o, 0;\n"
    head = HEAD.replace("cvt.u64.u32 %a, %o;", switch + "cvt.u64.u32 %a, %o;")
    head = head.replace("setp.ne.u32 %p, %t, 0xffffffff;", "")
    lines = "".join(f"@%p {access(space, width)}\n" for space in ("global", "shared") * 2)
    text = f"""
        .version 8.7
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 table, .param .u64 buffer) {{ {head} {lines} ret; }}
    """
    buffer = np.zeros(BYTES, "u1")
    arguments = [table, buffer]
    costs = sim.launch(
        text, "k", (blocks, 1, 1), (threads, 1, 1), arguments, costs=True, checks=False
    )
    sums = np.zeros(6, int)
    for block in range(blocks):
        for first in range(0, threads, 32):
            on = np.flatnonzero(active[block, first : first + 32])
            if len(on):
                mine = [int(o) for o in offsets[block, first + on]]
                counted = *sectors_of(mine, width), *wavefronts_of(mine, on, width)
                sums += [1, len(on), *counted]
    expected = sums.tolist()
    for row in costs.memory[1:]:
        own = expected[2:4] if row.space == "global" else expected[4:6]
        found = (
            [row.sectors, row.least_sectors]
            if row.space == "global"
            else [row.wavefronts, row.least_wavefronts]
        )
        assert [row.requests, row.lanes, *found] == [*expected[:2], *own]
        assert row.bytes == expected[1] * width
    assert len(costs.memory) == (5 if active.any() else 1)


# --- instructions ---


def test_instructions_by_class(run):
    """Two warps in each of three blocks; the loop runs twice, the branch in half of one warp."""
    out = np.zeros(192, "f4")
    body = """
        .reg .pred %p; .reg .b32 %t, %i, %n, %b; .reg .f32 %x; .reg .b64 %o;
        .shared .b32 word;
        mov.u32 %t, %tid.x;                                 // movement
        mov.u32 %n, %ntid.x;                                // movement
        mov.u32 %b, %ctaid.x;                               // movement
        mad.lo.u32 %n, %b, %n, %t;                          // integer
        mov.u32 %i, 0;                                      // movement
        cvt.rn.f32.u32 %x, %t;                              // conversion
    LOOP:
        add.u32 %i, %i, 1;                                  // integer
        setp.lt.u32 %p, %i, 2;                              // comparison
        @%p bra LOOP;                                       // control
        setp.ge.u32 %p, %t, 16;                             // comparison
        @%p bra JOIN;                                       // control
        mul.rn.f32 %x, %x, 0f40000000;                      // float, 16 lanes of one warp
        and.b32 %t, %t, 3;                                  // logic, the same
    JOIN:
        bar.sync 0;                                         // synchronisation
        shfl.sync.idx.b32 %t, %t, 0, 31, 0xffffffff;        // warp
        @%p st.shared.b32 [word], %t;                       // shared memory
        ld.param.u64 %o, [o];                               // parameters
        mad.wide.u32 %o, %n, 4, %o;                         // integer
        st.global.f32 [%o], %x;                             // global memory
        exit;                                               // control
    """
    costs = run(
        body, [out], parameters=(("o", "u64"),), grid=(3, 1, 1), block=(64, 1, 1), costs=True
    )
    found = {name: (issues.warps, issues.lanes) for name, issues in costs.classes.items()}
    whole = (6, 192)
    assert found == {
        "movement": (4 * 6, 4 * 192),
        "integer": (4 * 6, 4 * 192),
        "conversion": whole,
        "comparison": (3 * 6, 3 * 192),
        "control": (4 * 6, 4 * 192),
        "float": (3, 48),
        "logic": (3, 48),
        "synchronisation": whole,
        "warp": whole,
        "shared memory": whole,
        "parameters": whole,
        "global memory": whole,
    }
    assert costs.threads == 192
    issues = {i.opcode: n.warps for i, n in costs.issues}
    assert (issues["add.u32"], issues["mul.rn.f32"], issues["ret"]) == (12, 3, 0)
    # What the guard lets through is what memory sees.
    (shared, _) = costs.memory
    assert (shared.requests, shared.lanes) == (6, 144)


# --- where they come from ---

LOCATED = """
    .version 8.7
    .target sm_90a
    .address_size 64
    .file 1 "a.mlir"
    .visible .entry k(.param .u64 o) {
        .reg .b32 %x; .reg .b64 %o;
        ld.param.u64 %o, [o];
        .loc 1 7 3
        ld.global.b32 %x, [%o];
        ld.global.b32 %x, [%o];
        .loc 2 9 5, function_name $L__info, inlined_at 1 8 2
        ld.global.b32 %x, [%o];
        .loc 3 1 1
        st.global.b32 [%o], %x;
        .loc 1 12 1
        ret;
    }
    .visible .entry second(.param .u64 o) {
        .reg .b64 %o;
        ld.param.u64 %o, [o];
        st.global.b32 [%o], 0;
        ret;
    }
    .file 2 "b.mlir"
"""


def test_rows_have_source_locations():
    costs = sim.launch(LOCATED, "k", (1, 1, 1), (32, 1, 1), [np.zeros(4, "u4")], costs=True)
    seven = Location("a.mlir", 7, 3)
    assert [row.source for row in costs.memory] == [seven, seven, Location("b.mlir", 9, 5), None]
    costs = sim.launch(LOCATED, "second", (1, 1, 1), (32, 1, 1), [np.zeros(4, "u4")], costs=True)
    assert [row.source for row in costs.memory] == [None]


def test_the_report_adds_up_a_line_and_puts_waste_first():
    source, out = np.zeros((32, 32), "f4"), np.zeros((32, 32), "f4")
    text = """
        .version 8.7
        .target sm_90a
        .address_size 64
        .file 1 "a.mlir"
        .visible .entry k(.param .u64 in, .param .u64 out) {
            .reg .b32 %t, %x, %y; .reg .b64 %i, %o;
            mov.u32 %t, %tid.x;
            ld.param.u64 %i, [in];
            ld.param.u64 %o, [out];
            mad.wide.u32 %i, %t, 4, %i;
            mad.wide.u32 %o, %t, 128, %o;
            .loc 1 3 1
            ld.global.b32 %x, [%i];
            ld.global.b32 %y, [%i+128];
            .loc 1 4 1
            st.global.b32 [%o], %x;
            st.global.b32 [%o+4], %y;
            ret;
        }
    """
    costs = sim.launch(text, "k", (1, 1, 1), (32, 1, 1), [source, out], costs=True)
    assert costs.excess_sectors == 56
    assert costs.excess_wavefronts == 0
    lines = [" ".join(line.split()) for line in report(costs).splitlines()]
    assert lines[:4] == [
        "costs k 56 excess sectors, 0 excess wavefronts",
        "memory space requests requested moved least excess",
        "a.mlir:4:1 st.global.b32 global 2 256 bytes 64 sectors 8 56 (8.0×)",
        "a.mlir:3:1 ld.global.b32 global 2 256 bytes 8 sectors 8 0",
    ]
    assert lines[-1] == "all 10 320 10.00"


def test_halves_of_lines_that_loads_touch() -> None:
    """A sector alone brings its half of a line; stores write sectors."""
    text = """
        .version 8.3
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 in, .param .u64 out) {
            .reg .b32 %t, %x; .reg .b64 %i, %o;
            mov.u32 %t, %tid.x;
            ld.param.u64 %i, [in];
            ld.param.u64 %o, [out];
            mad.wide.u32 %i, %t, 32, %i;
            mad.wide.u32 %o, %t, 64, %o;
            ld.global.b32 %x, [%i];
            ld.global.b32 %x, [%o];
            st.global.b32 [%o], %x;
            ret;
        }
    """
    source, out = np.zeros(256, np.float32), np.zeros(512, np.float32)
    costs = sim.launch(text, "k", (1, 1, 1), (32, 1, 1), [source, out], costs=True)
    assert [row.half_lines for row in costs.memory] == [16, 32, 0]
    assert [row.sectors for row in costs.memory] == [32, 32, 32]
    assert costs.excess_half_lines == 48 - 4
    (line,) = [line for line in report(costs).splitlines() if "halves" in line]
    assert "loads touch 48 halves of lines" in line
    assert line.endswith("12.0× the least")


def test_nothing_is_counted_without_the_option(run):
    assert run("", []) is None
    assert run("", [], costs=True).memory == ()
