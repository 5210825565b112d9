"""Errors before anything runs, with their locations."""

import os

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.limits import Limits
from lego_mlir.sim.ptx import table

HEADER = ".version 8.3\n.target sm_90a\n.address_size 64\n"
REGISTERS = """.reg .pred %p; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>;
.shared .align 16 .b8 tile[64];
"""


def kernel(line):
    """A kernel that stores 1, then has the line, which stands alone in line 8."""
    return f"""{HEADER}.visible .entry k(.param .u64 o) {{
{REGISTERS}ld.param.u64 %d0, [o]; st.global.b32 [%d0], 1;
  {line}
ret;
}}
"""


def refused(text, *, line=8):
    out = np.zeros(1, "u4")
    with pytest.raises(LegoError) as e:
        sim.launch(text, "k", (1, 1, 1), (1, 1, 1), [out], file="bad.ptx")
    assert e.value.location.file == "bad.ptx"
    assert e.value.location.line == line
    assert out[0] == 0, "the kernel has run"
    assert "^" in str(e.value)
    return str(e.value)


NOT_MODELLED = {
    "call.uni (%r0), sine, (%r1);": "9.7.12.5",
    "match.any.sync.b32 %r0, %r1, -1;": "9.7.13.10",
    "multimem.ld_reduce.weak.global.add.u32 %r0, [%d0];": "9.7.9.14",
    "st.bulk.weak.shared::cta [tile], 64, 0;": "9.7.9.13",
    "tensormap.replace.tile.rank.global.b1024.b32 [%d0], 2;": "9.7.9.26",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d0];": "9.7.16",
    "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0}, [tile];": "9.7.14",
    "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [tile, {%f0, %f1}];": "9.7.10",
}


@pytest.mark.parametrize("line", NOT_MODELLED)
def test_instructions_that_are_not_modelled(line):
    text = refused(kernel(line))
    assert f"the instruction {line.split()[0].rstrip(';')} is not modelled" in text
    assert f"PTX ISA {NOT_MODELLED[line]}" in text


def test_every_instruction_listed_as_unsupported_is_an_error():
    words = {word.split(".")[0] for word in table.NOT_MODELLED if "." not in word}
    assert not words & set(table.TABLE)


def test_an_instruction_nobody_knows():
    assert "frobnicate.b32 is no instruction" in refused(kernel("frobnicate.b32 %r0, %r1;"))


FORMS = {
    "add.sat.u32 %r0, %r1, %r2;": "9.7.1.1",
    "add.u32.sat %r0, %r1, %r2;": "9.7.1.1",
    "mov.b32.volatile %r0, %r1;": "9.7.9.3",
    "add.rn.ftz.f64 %d0, %d1, %d2;": "9.7.3.3",
    "mul.wide.u64 %d0, %d1, %d2;": "9.7.1.3",
    "ld.global.v3.b32 {%r0, %r1, %r2}, [%d0];": "9.7.9.8",
    "ld.surface.b32 %r0, [%d0];": "9.7.9.8",
    "setp.lt.b32 %p, %r0, %r1;": "9.7.6.2",
    "cvt.rn.e4m3x2.f32 %h0, %f0, %f1;": "9.7.9.21",
    "shfl.sync.rotate.b32 %r0, %r1, 1, 31, -1;": "9.7.9.6",
    "bar.red.min.u32 %r0, 0, %p;": "9.7.13.1",
    "mbarrier.arrive.acquire.shared.b64 _, [tile];": "9.7.13.15.13",
    "cp.async.ca.global.shared [%d0], [tile], 4;": "9.7.9.25.3.1",
}


@pytest.mark.parametrize("line", FORMS)
def test_forms_that_are_not_modelled(line):
    text = refused(kernel(line))
    assert f"is not modelled: {line.split()[0]}" in text
    assert FORMS[line] in text
    assert "hint: modelled are: " in text


OPERANDS = {
    "add.u32 %r0, %r1;": "2 operands where 3 should stand in add.u32 (PTX ISA 9.7.1.1)",
    "add.u32 %r0, %d1, %r2;": "the register %d1 is .b64 where .u32 should stand",
    "add.u64 %r0, %d1, %d2;": "the register %r0 is .b32 where .u64 should stand",
    "add.u32 %r0, %f1, %r2;": "the register %f1 is .f32 where .u32 should stand",
    "add.u32 %r0, %r1, %r9;": "%r9 is neither declared nor a special register",
    "mov.u32 %r0, %smid;": "%smid is neither declared nor a special register",
    "setmaxnreg.inc.sync.aligned.u32 20;": "where a constant from 24 to 256 should stand",
    "setmaxnreg.inc.sync.aligned.u32 28;": "28 registers, which is no multiple of 8",
    "cp.async.bulk.wait_group %r0;": "where a constant from 0",
    "mbarrier.arrive.shared::cluster.b64 %d1, [%r0];": "a state of an mbarrier in shared::cluster",
    "mapa.u32 %r0, %r1, 0;": "a 32-bit generic address in mapa.u32",
    "fence.proxy.tensormap::generic.acquire.gpu [%d0], 64;": "a constant from 128 to 128 should",
    "add.u32 %r0, %r1, {%r2, %r3};": "the operand {%r2, %r3} where",
    "add.u32 5, %r1, %r2;": "the operand 5 where a register should stand",
    "add.f32 %f0, %f1, 3;": "the operand 3 where",
    "@%r0 add.u32 %r0, %r1, %r2;": "the register %r0 is .b32 where .pred should stand",
    "bra NOWHERE;": "NOWHERE is no label of this kernel",
    "ld.global.b32 %r0, [tile];": "tile lies in shared memory, not global",
    "ld.global.b32 %r0, [%r1];": "the register %r1 is .b32 where an address should stand",
    "mov.b64 %d0, elsewhere;": "the name elsewhere is not declared",
    "ld.global.v4.b64 {%d0, %d1}, [%d2];": "where a vector of 4 should stand",
    "lop3.b32 %r0, %r1, %r2, %r3, 256;": "where a constant from 0 to 255 should stand",
    "cvt.f32.f64 %f0, %d1;": "no rounding mode where one should stand",
    "mov.b64 {%h0, %h1, %h2}, %d0;": "a .b64 has no 3 fields",
}


@pytest.mark.parametrize("line", OPERANDS)
def test_wrong_operands(line):
    assert OPERANDS[line] in refused(kernel(line))


def test_the_caret_points_at_the_operand():
    text = refused(kernel("add.u32 %r0, %r1, %r9;")).splitlines()
    assert text[1].index("%r9") == text[2].index("^")


def test_syntax():
    assert "begins nothing that PTX knows" in refused(kernel("add.u32 %r0, #1;"))
    assert "where ';' should" in refused(kernel("add.u32 %r0, %r1, %r2"), line=9)
    assert "the directive .branchtargets is not modelled" in refused(kernel(".branchtargets A;"))
    assert "registers of type .b128" in refused(kernel(".reg .b128 %big;"))
    assert "the label A stands twice" in refused(kernel("A: bra A; A:"))
    with pytest.raises(LegoError, match=r"begins with .version and .target"):
        sim.parse("add.u32 %r0, %r1, %r2;")
    with pytest.raises(LegoError, match=r"'{' is never closed"):
        sim.parse(HEADER + ".visible .entry k() {\nret;\n")
    with pytest.raises(LegoError, match=r"the directive .alias is not modelled"):
        sim.parse(HEADER + ".alias a, b;\n")
    with pytest.raises(LegoError, match=r"the kernel directive .abi_preserve is not modelled"):
        sim.parse(HEADER + ".visible .entry k() .abi_preserve 2 { ret; }\n")


def test_a_function_elsewhere_in_the_module_does_no_harm(run):
    text = """
    .extern .func (.param .b32 r) sine (.param .b32 a);
    .func (.param .b32 r) twice (.param .b32 a)
    { .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, %x; st.param.b32 [r], %x; ret; }
    .visible .entry k(.param .u64 o)
    { .reg .b64 %d; ld.param.u64 %d, [o]; st.global.b32 [%d], 3; ret; }
    .visible .entry other() { wgmma.fence.sync.aligned; ret; }
    """
    out = np.zeros(1, "u4")
    run(text, [out], block=(1, 1, 1))
    assert out[0] == 3


GOOD = (
    HEADER
    + """
.visible .entry scale(.param .u64 .ptr .global .align 4 x, .param .f32 by, .param .u32 n)
.maxntid 128, 1, 1
{ ret; }
.visible .entry fixed() .reqntid 32, 2, 1 { ret; }
.visible .entry big() { .reg .b32 %r; .shared .b8 x[50000]; ld.shared.b8 %r, [x]; ret; }
"""
)
X = np.zeros(4, "f4")


def launch(name="scale", grid=(1, 1, 1), block=(32, 1, 1), arguments=None, **options):
    if arguments is None:
        arguments = [X, np.float32(2), np.uint32(4)] if name == "scale" else []
    sim.launch(GOOD, name, grid, block, arguments, file="good.ptx", **options)


def test_a_good_launch():
    launch()
    launch("fixed", block=(32, 2, 1))


BAD = {
    "no such kernel": (
        {"name": "scael"},
        "good.ptx has no kernel named scael\nhint: its kernels are: scale, fixed, big",
    ),
    "too few": ({"arguments": [X]}, "scale takes 3 arguments, 1 were given"),
    "a list": ({"arguments": [[1.0], np.float32(2), np.uint32(4)]}, "list is neither a NumPy"),
    "a Python number": ({"arguments": [X, 2.0, np.uint32(4)]}, "float is neither a NumPy array"),
    "wrong size": (
        {"arguments": [X, np.float64(2), np.uint32(4)]},
        "argument 1 of scale (by): a float64 scalar has 8 bytes, the parameter 4",
    ),
    "wrong kind": (
        {"arguments": [X, np.int32(2), np.uint32(4)]},
        "argument 1 of scale (by): a int32 scalar where a .f32 should stand",
    ),
    "array for a scalar": (
        {"arguments": [X, X, np.uint32(4)]},
        "argument 1 of scale (by): an array where a .f32 by value should stand",
    ),
    "scalar for a buffer": (
        {"arguments": [np.uint64(0), np.float32(2), np.uint32(4)]},
        "argument 0 of scale (x): a uint64 scalar where a buffer should stand",
    ),
    "strided": (
        {"arguments": [np.zeros((4, 4), "f4").T, np.float32(2), np.uint32(4)]},
        "argument 0 of scale (x): its strides (4, 16) are not C-contiguous",
    ),
    "objects": (
        {"arguments": [np.array([None]), np.float32(2), np.uint32(4)]},
        "an array of object has no bytes",
    ),
    "over .maxntid": ({"block": (129, 1, 1)}, "a CTA of 129 threads where .maxntid allows 128"),
    "not .reqntid": (
        {"name": "fixed", "block": (64, 1, 1)},
        "a CTA of (64, 1, 1) where .reqntid asks for (32, 2, 1)",
    ),
    "over 1024": ({"name": "big", "block": (1024, 2, 1)}, "a CTA of 2048 threads: at most 1024"),
    "an empty grid": ({"grid": (0, 1, 1)}, "a grid of (0, 1, 1): each extent is at least 1"),
    "too flat a grid": ({"grid": (1, 70000, 1)}, "a grid of (1, 70000, 1)"),
    "static shared memory": ({"name": "big"}, "big has 50000 bytes of static shared memory"),
    "dynamic shared memory": ({"shared_bytes": 300000}, "300000 bytes of dynamic shared memory"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_launches(case):
    options, message = BAD[case]
    with pytest.raises(LegoError) as e:
        launch(**options)
    assert message in str(e.value)


def test_a_kernel_that_does_not_end():
    text = kernel("LOOP: add.u32 %r0, %r0, 1;\nbra LOOP;")
    with pytest.raises(LegoError) as e:
        sim.launch(
            text,
            "k",
            (1, 1, 1),
            (1, 1, 1),
            [np.zeros(1, "u4")],
            limits=Limits(wave_instructions=1000),
        )
    assert "has run 1000 instructions in thread (0, 0, 0) of CTA (0, 0, 0)" in str(e.value)
    assert e.value.location.line == 8


def test_a_trap_names_its_thread():
    text = kernel("mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 5; @%p trap;")
    with pytest.raises(LegoError, match=r"trapped in thread \(5, 0, 0\) of CTA \(0, 0, 0\)"):
        sim.launch(text, "k", (1, 1, 1), (32, 1, 1), [np.zeros(1, "u4")])


def trap(file, **sources):
    """The error of a kernel that says it was compiled from line 2 of a file."""
    text = f'{HEADER}.visible .entry k()\n{{\n.loc 1 2 3\ntrap;\n}}\n.file 1 "{file}"\n'
    with pytest.raises(LegoError) as e:
        sim.launch(sim.parse(text, **sources), "k", (1, 1, 1), (1, 1, 1), [])
    return e.value


def test_an_error_is_located_in_the_compiled_source():
    compiled = sim.Sources.of({"kernel.mlir": "module {\n  gpu.trap\n}\n"})
    found = trap("kernel.mlir", sources=compiled)
    assert found.location == Location("kernel.mlir", 2, 3)
    assert str(found).splitlines()[1:] == ["    gpu.trap", "    ^"]
    assert "; line 7 of the PTX: trap" in found.message


@pytest.mark.parametrize("text", ["module {}\n", None])
def test_an_error_without_the_line_that_was_compiled(text):
    """A text that is too short is not the one that was compiled."""
    found = trap("k.mlir", sources=sim.Sources.of({"k.mlir" if text else "l.mlir": text or ""}))
    assert (found.location.file, found.location.line) == ("<ptx>", 7)
    assert found.message.endswith("; compiled from k.mlir:2:3")


def test_names_of_files_open_no_files(tmp_path):
    """Who wrote the PTX wrote the name: no line is shown, and no pipe is waited for."""
    secret = tmp_path / "secret"
    secret.write_text("one\nthe password\n")
    assert "password" not in str(trap(secret))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert f"compiled from {fifo}:2:3" in str(trap(fifo))


def test_names_of_files_do_not_steer_the_terminal():
    said = str(trap("\x1b]0;owned\x07\u202e.mlir"))
    assert r"compiled from \x1b]0;owned\x07\u202e.mlir:2:3" in said


def test_a_name_that_llvm_has_escaped_is_the_name():
    name = 'a "b" \\ ä.mlir'
    compiled = sim.Sources.of({name: "\n\n"})
    assert trap('a \\"b\\" \\\\ \\303\\244.mlir', sources=compiled).location.file == name


@pytest.mark.parametrize(
    "line", ['.file one "a.mlir"', ".file 1 a.mlir", ".loc 1 x 3", ".loc 1 2, 3"]
)
def test_wrong_file_and_loc_directives_are_errors(line):
    assert "here stands" in refused(kernel(line + " "))
