"""PTX to cubin: results, resources, warnings, and errors that point into the PTX."""

from __future__ import annotations

import struct
import sys
from types import SimpleNamespace

import pytest

from lego_mlir.compiler.backend import ptxas
from lego_mlir.compiler.backend.assembly import AssemblerMissing
from lego_mlir.compiler.backend.codegen import assemble
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target

SM_90A = Target.parse("sm_90a")

PTX = """.version 8.3
.target sm_90a
.address_size 64
.visible .entry copy(.param .u64 a, .param .u64 b)
{
    .shared .align 4 .b8 tile[128];
    .reg .b32 %r<4>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.b32 %r2, [%rd4];
    st.shared.b32 [tile], %r2;
    bar.sync 0;
    ld.shared.b32 %r3, [tile];
    st.global.b32 [%rd5], %r3;
    ret;
}
"""


@pytest.fixture(autouse=True)
def without_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    """So nvJitLink stands in; test_ptxas.py is about the other."""

    def find() -> str:
        raise AssemblerMissing("there is no ptxas")

    monkeypatch.setattr(ptxas, "find", find)


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(PTX.splitlines(), 1) if text in line)


def test_cubin_resources_and_no_warnings() -> None:
    cubin = assemble(PTX, SM_90A)
    assert cubin.code[:4] == b"\x7fELF"
    (copy,) = cubin.resources
    assert copy.kernel == "copy"
    assert 4 <= copy.registers <= 32
    assert copy.shared_bytes == 128
    assert (copy.spill_store_bytes, copy.spill_load_bytes, copy.stack_bytes) == (0, 0, 0)
    assert cubin.warnings == ()
    assert "copy" in cubin.log


def test_same_input_gives_the_same_code() -> None:
    assert assemble(PTX, SM_90A).code == assemble(PTX, SM_90A).code


def test_two_kernels_have_two_resources() -> None:
    second = PTX[PTX.index(".visible") :].replace("copy", "again").replace("[128]", "[256]")
    found = {r.kernel: r.shared_bytes for r in assemble(PTX + second, SM_90A).resources}
    assert found == {"copy": 128, "again": 256}


def test_source_lines_are_kept() -> None:
    located = PTX.replace("    ld.global", "    .loc 1 7 3\n    ld.global") + '.file 1 "k.mlir"\n'
    assert b"k.mlir" in assemble(located, SM_90A).code
    assert b".debug_line" not in assemble(PTX, SM_90A).code


def test_source_lines_change_no_instruction() -> None:
    lines = PTX.splitlines(keepends=True)
    start, stop = line_of("ld.param") - 1, line_of("ret;")
    body = [f"    .loc 1 {n} 5\n{line}" for n, line in enumerate(lines[start:stop], 1)]
    located = "".join([*lines[:start], *body, *lines[stop:], '.file 1 "k.mlir"\n'])
    plain, with_lines = (sections(assemble(text, SM_90A).code) for text in (PTX, located))
    assert plain[".text.copy"] == with_lines[".text.copy"]
    assert {name for name in with_lines if name not in plain and "debug" not in name} == set()


def sections(image: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF image by name; of one without bytes in the file, nothing."""
    (table,) = struct.unpack_from("<Q", image, 40)
    count, names = struct.unpack_from("<HH", image, 60)
    heads = [struct.unpack_from("<IIQQQQ", image, table + 64 * i) for i in range(count)]
    found = {}
    for name, kind, _, _, offset, size in heads:
        start = heads[names][4] + name
        text = image[start : image.index(b"\0", start)].decode()
        found[text] = b"" if kind == _NOBITS else image[offset : offset + size]
    return found


_NOBITS = 8  # sh_type of what has no bytes in the file


def test_syntax_error_names_the_line_and_shows_it() -> None:
    broken = PTX.replace("ld.global.b32", "ld.globul.b32")
    with pytest.raises(LegoError, match=r"\.globul") as caught:
        assemble(broken, SM_90A)
    error = caught.value
    assert error.location is not None
    assert (error.location.file, error.location.line) == ("<ptx>", line_of("ld.global"))
    assert "ld.globul.b32 %r2, [%rd4];" in error.render()


def test_several_errors_are_counted() -> None:
    broken = PTX.replace("add.s64 %rd4, %rd1", "add.s64 %rd4, %nope")
    broken = broken.replace("add.s64 %rd5, %rd2", "add.s64 %rd5, %nope")
    with pytest.raises(LegoError, match=r"\(and \d+ more\)") as caught:
        assemble(broken, SM_90A)
    assert caught.value.location is not None
    assert caught.value.location.line == line_of("add.s64 %rd4")


def test_wrong_target_for_the_module() -> None:
    with pytest.raises(LegoError, match="for sm_80") as caught:
        assemble(PTX, Target.parse("sm_80"))
    assert caught.value.hint is not None
    assert ".target" in caught.value.hint


def test_newer_ptx_than_the_assembler_knows() -> None:
    with pytest.raises(LegoError, match=r"Unsupported \.version 19\.0") as caught:
        assemble(PTX.replace(".version 8.3", ".version 19.0"), SM_90A)
    assert caught.value.hint == "pip install --upgrade nvidia-nvjitlink"


@pytest.mark.parametrize("text", ["", "  \n", "hello", "\0", "no é PTX"])
def test_nvjitlink_refuses_what_is_no_ptx(text: str) -> None:
    with pytest.raises(LegoError):
        assemble(text, SM_90A)


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(LegoError, match="-bogus"):
        assemble(PTX, SM_90A, options=["-bogus"])


def test_too_much_static_shared_memory() -> None:
    """nvJitLink itself lets this pass for arch-specific targets; a launch would not."""
    with pytest.raises(LegoError, match="49156 bytes of static shared memory") as caught:
        assemble(PTX.replace("[128]", "[49156]"), SM_90A)
    assert caught.value.hint is not None
    assert "232448" in caught.value.hint
    assert assemble(PTX.replace("[128]", "[49152]"), SM_90A).resources[0].shared_bytes == 49152


def test_spills_are_warnings() -> None:
    n = 64
    loads = "".join(f"ld.volatile.global.f32 %f{i}, [%rd1+{4 * i}];\n" for i in range(n))
    stores = "".join(f"st.volatile.global.f32 [%rd1+{4 * i}], %f{i};\n" for i in range(n))
    ptx = (
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
        f".reg .b64 %rd<2>;\n.reg .f32 %f<{n}>;\nld.param.u64 %rd1, [p];\n"
        f"{loads}bar.sync 0;\n{stores}ret;\n}}\n"
    )
    assert assemble(ptx, SM_90A).warnings == ()
    spilled = assemble(ptx, SM_90A, options=["-maxrregcount=24"])
    assert spilled.resources[0].spill_store_bytes > 0
    assert any(w.startswith("k spills registers: ") for w in spilled.warnings)


def without_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    monkeypatch.delitem(sys.modules, "cuda.bindings.nvjitlink", raising=False)


def test_missing_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    without_binding(monkeypatch)
    with pytest.raises(LegoError) as caught:
        assemble(PTX, SM_90A)
    assert caught.value.hint is not None
    assert "pip install nvidia-nvjitlink" in caught.value.hint


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def version() -> None:
        raise RuntimeError('Failure finding "libnvJitLink.so"\nNo such file')

    import cuda.bindings

    fake = SimpleNamespace(version=version)
    monkeypatch.setattr(cuda.bindings, "nvjitlink", fake, raising=False)
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvjitlink", fake)
    with pytest.raises(LegoError, match=r"libnvJitLink\.so") as caught:
        assemble(PTX, SM_90A)
    assert caught.value.hint is not None
    assert "pip install nvidia-nvjitlink" in caught.value.hint


def test_library_too_old_for_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.bindings import nvjitlink

    def create(count: int, options: list[str]) -> int:
        raise nvjitlink.nvJitLinkError(17)

    monkeypatch.setattr(nvjitlink, "create", create)
    with pytest.raises(LegoError, match="cannot assemble for sm_90a") as caught:
        assemble(PTX, SM_90A)
    assert caught.value.hint == "pip install --upgrade nvidia-nvjitlink"
