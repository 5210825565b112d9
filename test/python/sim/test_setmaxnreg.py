"""`setmaxnreg`: registers moved within a CTA, and more values than registers."""

import re

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.checks.setmaxnreg_checks import at_entry, pressure
from lego_mlir.sim.ptx.program import decode

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"

LAUNCH = ".maxntid 384 .minnctapersm 1"  # 168 registers a thread


@pytest.fixture
def groups(run):
    """Run three warpgroups, each with lines of its own; all store their number at the end."""

    def launch(*lines, directives=LAUNCH, threads=384, before="", **options):
        ways = "".join(f"setp.eq.u32 %p, %g, {k}; @%p bra W{k};" for k in range(len(lines)))
        parts = "".join(f"W{k}: {text} bra END;\n" for k, text in enumerate(lines))
        text = f"""
            .visible .entry k(.param .u64 out) {directives} {{
            .reg .pred %p, %q; .reg .b32 %t, %g, %w, %r<240>; .reg .b64 %a, %d<8>;
            .reg .f32 %f<240>; .reg .b16 %h<8>;
            ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; shr.u32 %g, %t, 7; shr.u32 %w, %t, 5;
            mad.wide.u32 %a, %t, 4, %a; {before}
            {ways}
            {parts}
            END: st.global.b32 [%a], %g; ret; }}
        """
        out = np.zeros(threads, "u4")
        run(text, [out], block=(threads, 1, 1), **options)
        assert np.array_equal(out, np.arange(threads) // 128)

    return launch


def inc(count):
    return f"setmaxnreg.inc.sync.aligned.u32 {count};"


def dec(count):
    return f"setmaxnreg.dec.sync.aligned.u32 {count};"


def wrong(groups, *lines, **options):
    with pytest.raises(LegoError) as caught:
        groups(*lines, **options)
    return str(caught.value)


def test_registers_go_from_the_producer_to_the_consumers(groups, order):
    groups(dec(40), inc(232), inc(232), **order)


def test_registers_that_nobody_gives_back(groups):
    """(80 + 224 + 224) * 128 registers are too many: two warps wait for ever."""
    message = wrong(groups, dec(80), inc(224), inc(224))
    assert "deadlock" in message
    assert "64 wait at `setmaxnreg.inc.sync.aligned.u32 224`" in message
    for words in ("224 registers a thread", "it has 168", "of its CTA 512 are free"):
        assert words in message


def test_registers_that_are_released_too_late(groups, order):
    """The producer keeps its own until the consumers have come, who wait for them."""
    meet = "bar.sync 1, 384;"
    groups(dec(40) + meet, inc(232) + meet, inc(232) + meet, **order)
    assert "deadlock" in wrong(groups, meet + dec(40), inc(232) + meet, inc(232) + meet, **order)


def test_registers_that_go_round(groups, order):
    """What a consumer gives back, another takes."""
    meet = "bar.sync 1, 256;"
    groups(dec(24), inc(232) + dec(168) + meet, meet + inc(240), **order)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("setp.eq.u32 %q, %w, 3; @%q bra END;" + dec(40), "dec.sync.aligned.u32 1 times, and thr"),
        ("setp.ne.u32 %q, %w, 3; @%q bra END;" + dec(40), "dec.sync.aligned.u32 0 times, and thr"),
        (inc(232) + dec(240), "setmaxnreg.dec.sync.aligned.u32 to 240 registers where the thread"),
        (inc(232) + inc(200), "setmaxnreg.inc.sync.aligned.u32 to 200 registers where the thread"),
    ],
)
def test_a_wrong_setmaxnreg_is_an_error(groups, first, message):
    assert message in wrong(groups, first, dec(24), dec(24), record=False)


def test_a_block_without_a_warpgroup(groups):
    message = wrong(groups, "", "", dec(40), threads=288)
    assert "needs the 4 warps of a warpgroup, and the CTA has 288 threads" in message


@pytest.mark.parametrize("directives", ["", ".maxntid 384", ".minnctapersm 1"])
def test_without_a_number_at_entry_it_has_no_effect(groups, directives):
    groups(inc(232), inc(232), inc(232), directives=directives, record=False)


@pytest.mark.parametrize(
    ("directives", "count"),
    [
        (".maxntid 384 .minnctapersm 1", 168),
        (".reqntid 384 .minnctapersm 1", 168),
        (".maxntid 300 .minnctapersm 1", 168),
        (".maxntid 330 .minnctapersm 1", 168),
        (".maxntid 1024 .minnctapersm 1", 64),
        (".maxntid 100 .minnctapersm 1", 255),
        (".maxntid 100 .minnctapersm 4", 128),
        (".maxntid 128 .maxnreg 96", 96),
        (".maxnreg 100", 100),
        (".maxnreg 300", 255),
        (".maxntid 384 .minnctapersm 1 .maxnreg 96", 96),
        (".maxntid 384 .minnctapersm 1 .maxnreg 200", 168),
        (".minnctapersm 1", None),
        (".maxntid 384", None),
    ],
)
def test_registers_at_entry_are_those_of_the_assembler(directives, count):
    """As `ptxas -v` of CUDA 13.0 reports them."""
    text = f"{HEADER}.visible .entry k() {directives} {{ {{}} ret; }}"
    (kernel,) = sim.parse(text.replace("{}", dec(24))).kernels.values()
    assert at_entry(kernel) == count
    (kernel,) = sim.parse(text.replace("{}", "")).kernels.values()
    assert at_entry(kernel) is None


def test_registers_at_entry_do_not_exceed_the_largest_request():
    text = f"{HEADER}.visible .entry k() .maxntid 256 .minnctapersm 1 {{ {inc(232)} ret; }}"
    (kernel,) = sim.parse(text).kernels.values()
    assert at_entry(kernel) == 232


def holding(count, between=""):
    """Load so many numbers, then add them up."""
    loads = "".join(f"ld.global.f32 %f{i}, [%a];\n" for i in range(count))
    sums = "".join(f"add.f32 %f0, %f0, %f{i};\n" for i in range(1, count))
    return f"\n{loads} {between} {sums} st.global.f32 [%a], %f0;"


def decoded(lines, directives=LAUNCH):
    text = f"""
        {HEADER}.visible .entry k(.param .u64 out) {directives} {{
        .reg .pred %p; .reg .b16 %h<4>; .reg .b32 %t, %r<240>; .reg .f32 %f<240>;
        .reg .b64 %a, %d<9>;
        ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 4, %a;
        {lines} ret; }}
    """
    module = sim.parse(text)
    return decode(module, module.kernels["k"])


@pytest.mark.parametrize("count", [1, 7, 100])
def test_pressure_counts_live_registers(count):
    """The numbers, and two words of address."""
    found = pressure(decoded(holding(count)))
    assert found.registers == count + 2


def test_pressure_of_types():
    """Words for 64 bits count twice, halves share, predicates and what is uniform are free."""
    lines = """
        ld.global.b64 %d0, [%a]; ld.global.b16 %h0, [%a]; ld.global.b16 %h1, [%a];
        ld.global.b16 %h2, [%a]; setp.eq.u16 %p, %h0, 0;
        mov.u32 %r0, %ctaid.x; add.u32 %r1, %r0, 5; ld.param.u64 %d1, [out];
        st.global.b64 [%a], %d0; st.global.b16 [%a], %h0; st.global.b16 [%a], %h1;
        st.global.b16 [%a], %h2; @%p st.global.b32 [%a], %r1; st.global.b64 [%d1], %d1;
    """
    found = pressure(decoded(lines))
    assert found.registers == 2 + 2 + 2
    assert found.instruction.opcode == "ld.global.b16"


def test_pressure_where_nothing_is_read():
    assert pressure(decoded("", directives="")).registers == 3


def carrying(name, count, between=""):
    """A loop that adds to so many numbers, and the sum of all."""
    begin = "".join(f"ld.global.f32 %f{i}, [%a];\n" for i in range(count))
    adds = "".join(f"add.f32 %f{i}, %f{i}, 0f3F800000;\n" for i in range(count))
    sums = "".join(f"add.f32 %f0, %f0, %f{i};\n" for i in range(1, count))
    return f"""
        {begin} mov.b32 %r0, 0;
        {name}: {between} {adds}
        add.u32 %r0, %r0, 1; mov.u32 %r9, %nctaid.x; setp.lt.u32 %q, %r0, %r9; @%q bra {name};
        {sums} st.global.f32 [%a], %f0;
    """


def test_values_that_can_be_reloaded_do_not_count(groups):
    groups(dec(24) + holding(60), "", "")


def test_more_values_are_carried_than_registers_are_granted(groups):
    groups(dec(24) + carrying("A", 24), inc(240) + carrying("B", 200), "")
    message = wrong(groups, dec(24) + carrying("A", 25), inc(240), "")
    assert "25 registers of each thread hold values that are carried on at add.f32" in message
    assert "where `setmaxnreg.dec.sync.aligned.u32 24` (line" in message
    assert "leaves 24" in message
    both = carrying("A", 30) + inc(168) + carrying("B", 169)
    message = wrong(groups, "", dec(32) + both, "")
    assert "169 registers of each thread" in message
    assert "leaves 168" in message


def test_accumulators_that_do_not_fit(groups):
    """The products of a tile of 64×256 are 128 registers a thread, those of two too many."""
    mma = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
    tiles = [
        mma
        + "{"
        + ", ".join(f"%f{k * 110 + i}" for i in range(128))
        + "}, %d0, %d0, %q, 1, 1, 0, 0;"
        for k in range(2)
    ]
    lines = f"""
        mov.b64 %d0, 0; mov.b32 %r0, 0;
        LOOP: setp.ne.u32 %q, %r0, 0; wgmma.fence.sync.aligned; {" ".join(tiles)}
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
        add.u32 %r0, %r0, 1; setp.lt.u32 %q, %r0, 3; @%q bra LOOP;
    """
    stores = "".join(f"st.global.f32 [%a], %f{i};" for i in range(238))
    for text in (lines, lines.replace("@%q bra LOOP;", "")):
        message = wrong(groups, "", inc(232) + text + stores, "", record=False)
        assert "238 registers of each thread" in message
        assert "leaves 232" in message


def test_values_that_live_across(groups):
    """What is carried from before must still fit afterwards."""
    message = wrong(groups, carrying("A", 30, between=dec(24) + inc(168)), "", "")
    assert re.search(r"30 registers .* at setmaxnreg\.dec", message)


def test_values_that_are_new_since_then(groups):
    """What is loaded anew before `setmaxnreg` may as well be loaded after it."""
    again = "".join(f"add.f32 %f60, %f60, %f{i}; ld.global.f32 %f{i}, [%a];\n" for i in range(30))
    lines = carrying("A", 30, between=again + dec(24) + inc(168))
    groups("ld.global.f32 %f60, [%a];" + lines, "", "")


def test_a_grant_reaches_as_far_as_the_next(groups):
    """A loop, and a way round the second one."""
    lines = "mov.b32 %r1, 0; L: {first} {second} setp.lt.u32 %q, %t, 0; @%q bra L; {last}"
    last = carrying("A", 40)
    groups(lines.format(first=dec(24), second=inc(64), last=last), "", "")
    skip = "setp.lt.u32 %p, %t, 0; @%p bra SKIP;" + inc(64) + "SKIP:"
    message = wrong(groups, lines.format(first=dec(24), second=skip, last=last), "", "")
    assert "`setmaxnreg.dec.sync.aligned.u32 24`" in message


def test_more_values_than_at_the_launch(groups):
    options = {"before": carrying("A", 40), "directives": ".maxntid 384 .maxnreg 32"}
    assert "where k is launched with 32" in wrong(groups, dec(24), "", "", **options)
