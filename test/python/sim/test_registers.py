"""Registers that are read but were never written, and more of them than `setmaxnreg` grants."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir import data, sim
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source
from lego_mlir.sim.dataflow import live
from lego_mlir.sim.pressure import at_entry, pressure
from lego_mlir.sim.program import decode

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
BEGIN = """
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %t, %r<8>; .reg .b64 %a, %d<4>;
    .shared .align 16 .b8 tile[2048];
    ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 16, %a;
    setp.lt.u32 %p0, %t, 8;
"""


@pytest.fixture
def go(run):
    """Run lines after `BEGIN` in 32 threads: `%p0` holds in the first 8, `%a` is a place to use."""

    def launch(lines, threads=32, **options):
        out = np.zeros(4 * threads, "u4")
        run(BEGIN + lines, [out], parameters=(("out", "u64"),), block=(threads, 1, 1), **options)
        return out

    return launch


def refused(go, lines, **options):
    with pytest.raises(LegoError) as caught:
        go(lines, **options)
    return str(caught.value)


# --- what is an error, and what is not ---

WRONG = {
    "st.global.b32 [%a], %r1;": "st.global.b32 reads %r1, which has not been written (nothing",
    "add.u32 %r2, %r1, 1; st.global.b32 [%a], %r2;": "reads %r2, computed from %r1, which has not",
    "ld.shared.b32 %r1, [%r2];": "ld.shared.b32 reads %r2",
    "st.shared.b32 [%r2], %t;": "st.shared.b32 reads %r2",
    "@%p1 mov.b32 %r1, 0;": "mov.b32 reads %p1",
    "@!%p1 bra NEXT; NEXT:": "bra reads %p1",
    "setp.eq.u32 %p1, %r1, 0; @%p1 exit;": "exit reads %p1, computed from %r1",
    "bar.sync %r1;": "bar.sync reads %r1",
    "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;": "shfl.sync.idx.b32 reads %r1",
    "atom.global.add.u32 %r2, [%a], %r1;": "atom.global.add.u32 reads %r1",
    "addc.u32 %r1, %t, 0; st.global.b32 [%a], %r1;": "computed from the carry flag",
    "selp.b32 %r1, %t, 0, %p1; st.global.b32 [%a], %t;": "selp.b32 reads %p1",
    "mov.b32 %r1, {%h0, %h1}; st.global.b32 [%a], %r1;": "reads %r1, computed from %h0",
    "mov.b16 %h0, 0; mov.b32 %r1, {%h0, %h1}; mov.b32 {_, %h2}, %r1; st.global.b16 [%a], %h2;": (
        "reads %h2, computed from %h1, which has not been written"
    ),
    "prmt.b32 %r1, %t, %r2, 0x7654; st.global.b32 [%a], %r1;": "reads %r1, computed from %r2",
    "and.b32 %r1, %t, %r2; st.global.b32 [%a], %r1;": "reads %r1, computed from %r2",
    "st.global.v2.b32 [%a], {%r0, %r1};": "st.global.v2.b32 reads %r0",
    "@%p0 mov.b32 %r1, 0; st.global.b32 [%a], %r1;": "(line 11 writes it), in thread (8, 0, 0)",
}

FINE = [
    # Nothing that shows.
    "mov.b32 %r1, %r2; add.u32 %r3, %r1, %r2;",
    # Guarded by what has guarded the write, also where only the value is known to be the same.
    "@%p0 mov.b32 %r1, 0; @%p0 st.global.b32 [%a], %r1;",
    "not.pred %p1, %p0; @!%p0 mov.b32 %r1, 0; @%p1 st.global.b32 [%a], %r1;",
    # A part of the value.
    "mov.b16 %h0, 0; mov.b32 %r1, {%h0, %h1}; st.global.b32 [%a], %r1;",
    "mov.b16 %h0, 0; mov.b32 %r1, {%h0, %h1}; mov.b32 {%h2, _}, %r1; st.global.b16 [%a], %h2;",
    "mov.b32 %r0, 0; st.global.v2.b32 [%a], {%r0, %r1};",
    "@%p0 mov.b32 %r0, 0; @!%p0 mov.b32 %r1, 0; st.global.v2.b32 [%a], {%r0, %r1};",
    "prmt.b32 %r1, %t, %r2, 0x3210; st.global.b32 [%a], %r1;",
    "prmt.b32 %r1, %t, %r2, 0x5410; st.global.b32 [%a], %r1;",
    # A value that is not picked, or overruled.
    "@%p0 mov.b32 %r1, 0; selp.b32 %r2, %r1, %t, %p0; st.global.b32 [%a], %r2;",
    "not.pred %p1, %p0; @%p0 mov.b32 %r1, 0; selp.b32 %r2, %t, %r1, %p1; st.global.b32 [%a], %r2;",
    "@%p0 setp.eq.u32 %p1, %t, 3; and.pred %p2, %p0, %p1; @%p2 st.global.b32 [%a], %t;",
    "@!%p0 setp.eq.u32 %p1, %t, 9; or.pred %p2, %p1, %p0; @%p2 st.global.b32 [%a], %t;",
    # Overwritten in time; a sum of an unwritten register that is dropped.
    "add.u32 %r1, %r1, 1; mov.b32 %r1, 0; st.global.b32 [%a], %r1;",
    # A mark of LLVM's.
    "// implicit-def: %r1\nst.global.b32 [%a], %r1;",
]


@pytest.mark.parametrize("lines", WRONG)
def test_a_missing_value_that_shows(go, lines):
    assert WRONG[lines] in refused(go, lines)


@pytest.mark.parametrize("lines", FINE)
def test_a_missing_value_that_does_not_matter(go, lines):
    go(lines)


def test_every_thread_for_itself(go):
    """The lanes of a warp that go one way have written what the others lack."""
    lines = """
        @%p0 bra ONE;
        mov.b32 %r1, 1; bra MEET;
    ONE:
        mov.b32 %r2, 2;
    MEET:
        {read}
    """
    out = go(lines.format(read="@%p0 mov.b32 %r1, %r2; st.global.b32 [%a], %r1;"))
    assert out[::4].tolist() == [2] * 8 + [1] * 24
    message = refused(go, lines.format(read="st.global.b32 [%a], %r2;"))
    assert (
        "reads %r2, which has not been written (line 15 writes it), in thread (8, 0, 0)" in message
    )


def test_a_loop_that_writes_before_it_reads_again(go):
    """In the first iteration nothing reads what the last one leaves."""
    lines = """
        mov.b32 %r0, 0; mov.b32 %r2, 0;
    LOOP:
        setp.eq.u32 %p1, %r0, {first};
        @%p1 bra SKIP;
        add.u32 %r2, %r2, %r1;
    SKIP:
        add.u32 %r1, %r0, 5; add.u32 %r0, %r0, 1;
        setp.lt.u32 %p1, %r0, 4; @%p1 bra LOOP;
        st.global.b32 [%a], %r2;
    """
    assert go(lines.format(first=0))[0] == 5 + 6 + 7
    assert "reads %r2, computed from" in refused(go, lines.format(first=1))


def test_an_address_of_a_row_that_is_not_loaded(go):
    """Of ldmatrix.x1 only the first eight lanes give an address."""
    fill = "mov.b32 %r1, tile; mad.lo.u32 %r3, %t, 4, %r1; st.shared.b32 [%r3], %t; bar.sync 0;"
    row = "@%p0 mad.lo.u32 %r2, %t, 16, %r1;"
    load = "ldmatrix.sync.aligned.m8n8.x{}.shared.b16 {}, [%r2];"
    go(fill + row + load.format(1, "{%r4}"))
    message = refused(go, fill + row + load.format(2, "{%r4, %r5}"))
    assert "reads %r2" in message
    assert "in thread (8, 0, 0)" in message


@pytest.mark.parametrize("adds", [0, 1])
def test_accumulators_of_a_first_product(go, adds):
    """Without the old values, accumulators need none."""
    lines = f"""
        .reg .f32 %f<4>;
        mov.b32 %r1, tile; mad.lo.u32 %r2, %t, 16, %r1; mov.b32 %r3, 0;
        st.shared.v4.b32 [%r2], {{%r3, %r3, %r3, %r3}}; fence.proxy.async; bar.sync 0;
        cvt.u64.u32 %d0, %r1; shr.u64 %d0, %d0, 4; or.b64 %d0, %d0, 0x1000080000;
        ld.global.b32 %r4, [%a]; setp.{"eq" if adds else "ne"}.u32 %p1, %r4, 0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
            {{%f0, %f1, %f2, %f3}}, %d0, %d0, %p1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
        st.global.v4.b32 [%a], {{%f0, %f1, %f2, %f3}};
    """
    if adds:
        assert "reads %f0, which has not been written" in refused(go, lines, threads=128)
    else:
        assert not go(lines, threads=128).any()


def test_a_mark_holds_on_its_way(go):
    lines = """
        @%p0 bra MEET;
        // implicit-def: %r1
        add.u32 %t, %t, 0;
    MEET:
        {read}
    """
    go(lines.format(read="@!%p0 st.global.b32 [%a], %r1;"))
    message = refused(go, lines.format(read="st.global.b32 [%a], %r1;"))
    assert (
        "reads %r1, which has not been written (nothing writes it), in thread (0, 0, 0)" in message
    )


def test_what_is_written_or_marked_in_time_costs_nothing():
    """No instruction is checked, and no register kept for it, unless one may be unwritten."""
    plain = decoded("mov.b32 %r0, 0; L: add.u32 %r1, %r0, 1; setp.lt.u32 %p, %r1, 9; @%p bra L;")
    assert len(plain.registers) == len(plain.kernel.registers) + 1
    marked = decoded("\n// implicit-def: %r0\nst.global.b32 [%a], %r0;")
    assert len(marked.registers) == len(marked.kernel.registers) + 1
    assert live(marked.blocks)[0][0] == 0
    unwritten = decoded("st.global.b32 [%a], %r0;")
    assert len(unwritten.registers) == len(unwritten.kernel.registers) + 2


def test_a_mark_holds_for_its_kernel_only():
    body = "{{ .reg .b32 %r<2>; .reg .b64 %a; ld.param.u64 %a, [out];\n{}\nret; }}"
    text = (
        HEADER
        + ".func f()\n{\n// implicit-def: %r1\nret;\n}\n"
        + ".visible .entry k(.param .u64 out)\n"
        + body.format("st.global.b32 [%a], %r1;")
    )
    with pytest.raises(LegoError, match="reads %r1"):
        sim.launch(text, "k", (1, 1, 1), (1, 1, 1), [np.zeros(1, "u4")])


def test_a_wait_that_an_unwritten_predicate_guards(go):
    lines = "mov.b32 %r1, tile; @%p1 mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;"
    assert "mbarrier.try_wait.parity.shared.b64 reads %p1" in refused(go, lines)


# --- real LLVM ---

UNDEFINED = """
module attributes {gpu.container_module} {
gpu.module @m {
llvm.func @vector(%p: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %u = llvm.mlir.undef : vector<4xi32>
  %v = llvm.insertelement %n, %u[%c0 : i32] : vector<4xi32>
  %w = llvm.insertelement %n, %v[%c2 : i32] : vector<4xi32>
  llvm.store %w, %p {alignment = 16} : vector<4xi32>, !llvm.ptr<1>
  llvm.return
}
llvm.func @half(%p: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %x = llvm.sitofp %n : i32 to f16
  %u = llvm.mlir.undef : vector<2xf16>
  %v = llvm.insertelement %x, %u[%c0 : i32] : vector<2xf16>
  %w = llvm.fadd %v, %v : vector<2xf16>
  llvm.store %w, %p : vector<2xf16>, !llvm.ptr<1>
  llvm.return
}
llvm.func @bytes(%p: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %x = llvm.trunc %n : i32 to i8
  %u = llvm.mlir.undef : vector<4xi8>
  %v = llvm.insertelement %x, %u[%c0 : i32] : vector<4xi8>
  %w = llvm.insertelement %x, %v[%c1 : i32] : vector<4xi8>
  %z = llvm.add %w, %w : vector<4xi8>
  llvm.store %z, %p : vector<4xi8>, !llvm.ptr<1>
  llvm.return
}
llvm.func @join(%p: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
  %u = llvm.mlir.undef : i32
  %c7 = llvm.mlir.constant(7 : i32) : i32
  %c = llvm.icmp "eq" %n, %c7 : i32
  llvm.cond_br %c, ^a, ^b(%u, %c7 : i32, i32)
^a:
  %l = llvm.load volatile %p : !llvm.ptr<1> -> i32
  llvm.br ^b(%l, %n : i32, i32)
^b(%q: i32, %r: i32):
  llvm.store volatile %r, %p : i32, !llvm.ptr<1>
  llvm.cond_br %c, ^d, ^e
^d:
  llvm.store volatile %q, %p : i32, !llvm.ptr<1>
  llvm.br ^e
^e:
  llvm.return
}
llvm.func @loop(%p: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
  %u = llvm.mlir.undef : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c5 = llvm.mlir.constant(5 : i32) : i32
  llvm.br ^b(%c0, %u, %c0 : i32, i32, i32)
^b(%i: i32, %q: i32, %s: i32):
  %z = llvm.icmp "eq" %i, %c0 : i32
  %q1 = llvm.add %q, %c5 : i32
  %s1 = llvm.select %z, %c0, %q1 : i1, i32
  %s2 = llvm.add %s, %s1 : i32
  %l = llvm.load volatile %p : !llvm.ptr<1> -> i32
  %i1 = llvm.add %i, %c1 : i32
  %d = llvm.icmp "slt" %i1, %n : i32
  llvm.cond_br %d, ^b(%i1, %l, %s2 : i32, i32, i32), ^e
^e:
  llvm.store %s2, %p : i32, !llvm.ptr<1>
  llvm.return
}
llvm.func @elements(%p: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
  %u = llvm.mlir.undef : vector<4xi32>
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  llvm.br ^b(%c0, %u : i32, vector<4xi32>)
^b(%i: i32, %q: vector<4xi32>):
  %l = llvm.load volatile %p : !llvm.ptr<1> -> i32
  %v = llvm.insertelement %l, %q[%i : i32] : vector<4xi32>
  %i1 = llvm.add %i, %c1 : i32
  %d = llvm.icmp "slt" %i1, %n : i32
  llvm.cond_br %d, ^b(%i1, %v : i32, vector<4xi32>), ^e
^e:
  llvm.store %v, %p : vector<4xi32>, !llvm.ptr<1>
  llvm.return
}
llvm.func @stored(%p: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
  %u = llvm.mlir.undef : i32
  llvm.store volatile %u, %p : i32, !llvm.ptr<1>
  llvm.return
}
}
}
"""


@pytest.fixture(scope="module", params=[0, 3])
def llvm(request):
    """PTX of the module above, as LLVM makes it with and without optimisation."""
    nvvm = (data.pipelines() / "nvvm.pipeline").read_text().replace("O=3", f"O={request.param}")
    return Compilation(Source("undefined.mlir", UNDEFINED), Options(pipelines={"nvvm": nvvm})).ptx


@pytest.mark.parametrize("n", [0, 3, 4, 7])
@pytest.mark.parametrize("kernel", ["vector", "half", "bytes", "join", "loop", "elements"])
def test_llvm_leaves_registers_unwritten(llvm, kernel, n):
    assert live(decode(sim.parse(llvm), sim.parse(llvm).kernels["vector"]).blocks)[0][0]
    sim.launch(llvm, kernel, (1, 1, 1), (1, 1, 1), [np.ones(4, "i4"), np.int32(n)])


def test_an_undefined_value_of_the_program_is_found(llvm):
    with pytest.raises(LegoError, match=r"st\.\S* reads %r1, which has not been written"):
        sim.launch(llvm, "stored", (1, 1, 1), (1, 1, 1), [np.ones(4, "i4"), np.int32(0)])


# --- any program, against an interpreter of single threads ---

THREADS = 8
FUEL = 7
WORDS, HALVES, PREDICATES = (
    [f"%{x}{i}" for i in range(n)] for x, n in (("r", 3), ("h", 2), ("p", 2))
)
word, half, predicate = (st.sampled_from(names) for names in (WORDS, HALVES, PREDICATES))
guard = st.none() | st.tuples(predicate, st.booleans())
operation = st.one_of(
    st.tuples(st.just("number"), word, st.sampled_from([0, 1, 0xFFFFFFFF])),
    st.tuples(st.just("input"), word),
    st.tuples(st.just("short"), half),
    st.tuples(st.just("move"), word, word),
    st.tuples(st.just("add"), word, word, word),
    st.tuples(st.sampled_from(["and", "or"]), word, word, word),
    st.tuples(st.just("pack"), word, half, half),
    st.tuples(st.just("unpack"), st.permutations(HALVES), word),
    st.tuples(st.just("swap"), word, word, word),
    st.tuples(st.just("select"), word, word, word, predicate),
    st.tuples(st.just("test"), predicate, word),
    st.tuples(st.just("store"), word),
    st.tuples(st.just("pair"), word, word),
)
end = st.tuples(
    st.none() | st.tuples(predicate, st.booleans()), st.integers(0, 9), st.integers(0, 9)
)
block = st.tuples(st.lists(st.tuples(guard, operation), max_size=5), end)
programs = st.lists(block, min_size=1, max_size=5)
inputs = st.lists(st.integers(0, 2**32 - 1), min_size=THREADS, max_size=THREADS)


def spelled(op):
    match op:
        case "number", d, value:
            return f"mov.b32 {d}, {value};"
        case "input", d:
            return f"mov.b32 {d}, %in;"
        case "short", d:
            return f"mov.b16 {d}, 3;"
        case "move", d, s:
            return f"mov.b32 {d}, {s};"
        case "add", d, a, b:
            return f"add.u32 {d}, {a}, {b};"
        case ("and" | "or") as name, d, a, b:
            return f"{name}.b32 {d}, {a}, {b};"
        case "pack", d, a, b:
            return f"mov.b32 {d}, {{{a}, {b}}};"
        case "unpack", (a, b), s:
            return f"mov.b32 {{{a}, {b}}}, {s};"
        case "swap", d, a, b:
            return f"prmt.b32 {d}, {a}, {b}, 0x1634;"
        case "select", d, a, b, p:
            return f"selp.b32 {d}, {a}, {b}, {p};"
        case "test", p, a:
            return f"setp.ne.u32 {p}, {a}, 0;"
        case "store", a:
            return f"st.global.b32 [%a], {a};"
        case "pair", a, b:
            return f"st.global.v2.b32 [%a], {{{a}, {b}}};"


def text_of(blocks):
    """PTX, and the line of each operation: (block, number) → line, the end being number None."""
    lines = [
        *HEADER.splitlines(),
        ".visible .entry k(.param .u64 out, .param .u64 in)",
        "{",
        ".reg .pred %p<2>, %q, %z; .reg .b16 %h<2>; .reg .b32 %r<3>, %in, %bits, %bit, %fuel, %t;",
        ".reg .b64 %a, %b; ld.param.u64 %a, [out]; ld.param.u64 %b, [in]; mov.u32 %t, %tid.x;",
        "mad.wide.u32 %a, %t, 8, %a; mad.wide.u32 %b, %t, 4, %b; ld.global.b32 %in, [%b];",
        f"mov.b32 %bits, %in; mov.b32 %fuel, {FUEL};",
    ]
    places = {}
    for b, (operations, (by, *targets)) in enumerate(blocks):
        lines.append(f"B{b}: setp.eq.u32 %z, %fuel, 0; @%z bra END; sub.u32 %fuel, %fuel, 1;")
        for i, (condition, op) in enumerate(operations):
            lines.append(guarded(condition) + spelled(op))
            places[b, i] = len(lines)
        lines.append("and.b32 %bit, %bits, 1; shr.u32 %bits, %bits, 1; setp.ne.u32 %q, %bit, 0;")
        first, second = (t % len(blocks) for t in targets)
        lines.append(f"{guarded(by or ('%q', False))}bra B{first};")
        places[b, None] = len(lines)
        lines.append(f"bra B{second};")
    return "\n".join([*lines, "END: ret;", "}"]), places


def guarded(condition):
    return "" if condition is None else f"@{'!' * condition[1]}{condition[0]} "


class Missing(Exception):
    """A value is needed that has not been written."""


class Thread:
    """One thread; a register is a list of bytes, of which those not written are None."""

    def __init__(self, number):
        self.input = number
        self.registers = {r: [None] * 4 for r in WORDS} | {h: [None] * 2 for h in HALVES}
        self.registers |= {p: [None] for p in PREDICATES}

    def needed(self, register):
        if all(byte is None for byte in self.registers[register]):
            raise Missing
        return self.value(register)

    def value(self, register):
        """Bytes that are not written are ones, as they are in the machine."""
        return sum(
            (255 if x is None else x) << 8 * i for i, x in enumerate(self.registers[register])
        )

    def lost(self, register):
        return all(byte is None for byte in self.registers[register])

    def holds(self, condition):
        return condition is None or bool(self.needed(condition[0])) != condition[1]

    def put(self, register, value):
        size = len(self.registers[register])
        self.registers[register] = (
            [None] * size
            if value is None
            else list((value % 2 ** (8 * size)).to_bytes(size, "little"))
        )

    def do(self, op):
        held = self.registers
        match op:
            case "number", d, value:
                self.put(d, value)
            case "input", d:
                self.put(d, self.input)
            case "short", d:
                self.put(d, 3)
            case "move", d, s:
                held[d] = held[s]
            case "add", d, a, b:
                gone = self.lost(a) or self.lost(b)
                self.put(d, None if gone else self.value(a) + self.value(b))
            case ("and" | "or") as name, d, a, b:
                decided = 0 if name == "and" else 2**32 - 1
                x, y = (None if self.lost(r) else self.value(r) for r in (a, b))
                if x is None or y is None:
                    self.put(d, decided if decided in (x, y) else None)
                else:
                    self.put(d, x & y if name == "and" else x | y)
            case "pack", d, a, b:
                held[d] = held[a] + held[b]
            case "unpack", (a, b), s:
                held[a], held[b] = held[s][:2], held[s][2:]
            case "swap", d, a, b:
                both = held[a] + held[b]
                held[d] = [both[4], both[3], both[6], both[1]]
            case "select", d, a, b, p:
                held[d] = held[a] if self.needed(p) else held[b]
            case "test", p, a:
                self.put(p, None if self.lost(a) else int(self.value(a) != 0))
            case "store", a:
                self.needed(a)
            case "pair", a, b:
                if self.lost(a) and self.lost(b):
                    raise Missing


def first_missing(blocks, places, number):
    """The line at which a thread with this input needs what it has not written; None for none."""
    thread = Thread(number)
    at, bits = 0, number
    for _ in range(FUEL):
        operations, (by, *targets) = blocks[at]
        try:
            for i, (condition, op) in enumerate(operations):
                line = places[at, i]
                if thread.holds(condition):
                    thread.do(op)
            line = places[at, None]
            goes = bool(bits & 1) if by is None else thread.holds(by)
        except Missing:
            return line
        bits >>= 1
        at = targets[not goes] % len(blocks)
    return None


@settings(max_examples=300, deadline=None)
@given(programs, inputs, st.sampled_from(["late", "random"]))
def test_any_program(blocks, numbers, order):
    text, places = text_of(blocks)
    want = [first_missing(blocks, places, n) for n in numbers]
    error = error_of(text, [np.zeros(2 * THREADS, "u4"), np.array(numbers, "u4")], order)
    if error is None:
        assert not any(want)
    else:
        thread = re.search(r"which has not been written .* in thread \((\d+), 0, 0\)", str(error))
        assert error.place.line == want[int(thread[1])]


def error_of(text, arguments, order):
    try:
        sim.launch(text, "k", (1, 1, 1), (THREADS, 1, 1), arguments, order=order)
    except LegoError as error:
        return error
    return None


@settings(max_examples=100, deadline=None)
@given(programs)
def test_liveness_is_a_way_to_a_read(blocks):
    """A register lives at an instruction if some way leads to a read of it and no write before."""
    module = sim.parse(text_of(blocks)[0])
    program = decode.__wrapped__(module, module.kernels["k"])
    points = {}
    for b, block_ in enumerate(program.blocks):
        for i, uses in enumerate(block_.uses):
            last = i + 1 == len(block_.uses)
            after = [(s, 0) for s in block_.successors] if last else [(b, i + 1)]
            points[b, i] = uses, after
    found = live(program.blocks)
    for start in points:
        for register in range(len(module.kernels["k"].registers)):
            seen, waiting, lives = set(), [start], False
            while waiting and not lives:
                at = waiting.pop()
                if at in seen or at not in points:
                    continue
                seen.add(at)
                uses, after = points[at]
                lives = register in (*uses.reads, *uses.decides)
                if uses.guard is not None or register not in uses.writes:
                    waiting += after
            assert (found[start[0]][start[1]] >> register & 1) == lives


# --- setmaxnreg ---

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
    assert (
        "for 224 registers a thread: it has 168, and of the 64512 of its block 512 are free"
        in message
    )


def test_registers_that_are_given_back_too_late(groups, order):
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
def test_what_setmaxnreg_forbids(groups, first, message):
    assert message in wrong(groups, first, dec(24), dec(24), record=False)


def test_a_block_without_a_warpgroup(groups):
    message = wrong(groups, "", "", dec(40), threads=288)
    assert "needs the 4 warps of a warpgroup, and the block has 288 threads" in message


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


def test_registers_at_entry_are_no_more_than_are_ever_asked_for():
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
def test_pressure_counts_what_lives(count):
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


def test_what_is_loaded_once_may_be_loaded_later(groups):
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
    assert (
        "30 registers of each thread hold values that are carried on at setmaxnreg.dec" in message
    )


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
