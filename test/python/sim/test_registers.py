"""Reads of uninitialized registers."""

import numpy as np
import pytest

from lego_mlir import data, sim
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source
from lego_mlir.sim.ptx.dataflow import live
from lego_mlir.sim.ptx.program import decode

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
BEGIN = """
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %t, %r<8>; .reg .b64 %a, %d<4>;
    .shared .align 16 .b8 tile[2048];
    ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 16, %a;
    setp.lt.u32 %p0, %t, 8;
"""


@pytest.fixture
def go(run):
    """Run lines after `BEGIN` in a warp: `%p0` holds in the first 8, `%a` is an address to use."""

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
    "cvt.rn.f16x2.f32 %r1, %r2, %t; mov.b32 {_, %h0}, %r1; st.global.b16 [%a], %h0;": (
        "reads %h0, computed from %r2"
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
    "cvt.rn.f16x2.f32 %r1, %r2, %t; mov.b32 {%h0, _}, %r1; st.global.b16 [%a], %h0;",
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
def test_accumulators_of_a_first_wgmma_need_no_value(go, adds):
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


def decoded(lines):
    module = sim.parse(
        f"{HEADER}.visible .entry k(.param .u64 out) {{ .reg .pred %p; .reg .b32 %r<2>; "
        f".reg .b64 %a; ld.param.u64 %a, [out]; {lines} ret; }}"
    )
    return decode(module, module.kernels["k"])


def test_a_program_with_initialized_registers_has_no_checks():
    """No instruction is checked, and no register kept for it, unless one may be unwritten."""
    plain = decoded("mov.b32 %r0, 0; L: add.u32 %r1, %r0, 1; setp.lt.u32 %p, %r1, 9; @%p bra L;")
    assert len(plain.registers) == len(plain.kernel.registers) + 1
    marked = decoded("\n// implicit-def: %r0\nst.global.b32 [%a], %r0;")
    assert len(marked.registers) == len(marked.kernel.registers) + 1
    assert live(marked.basic_blocks)[0][0] == 0
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
    assert live(decode(sim.parse(llvm), sim.parse(llvm).kernels["vector"]).basic_blocks)[0][0]
    sim.launch(llvm, kernel, (1, 1, 1), (1, 1, 1), [np.ones(4, "i4"), np.int32(n)])


def test_an_undefined_value_of_the_program_is_found(llvm):
    with pytest.raises(LegoError, match=r"st\.\S* reads %r1, which has not been written"):
        sim.launch(llvm, "stored", (1, 1, 1), (1, 1, 1), [np.ones(4, "i4"), np.int32(0)])
