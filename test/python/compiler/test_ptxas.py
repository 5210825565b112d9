"""PTX to cubin by ptxas, where a kernel moves registers from warp to warp."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lego_mlir.compiler.backend import nvjitlink, ptxas
from lego_mlir.compiler.backend.codegen import assemble
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target

SM_90A = Target.parse("sm_90a")

PTX = """.version 8.3
.target sm_90a
.address_size 64
.visible .entry roles(.param .u64 out) .maxntid 256 .minnctapersm 1
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 128;
    @%p1 bra consumer;
    setmaxnreg.dec.sync.aligned.u32 40;
    bra end;
consumer:
    setmaxnreg.inc.sync.aligned.u32 232;
    st.global.b32 [%rd1], %r1;
end:
    ret;
}
"""

PLAIN = "\n".join(line for line in PTX.splitlines() if "setmaxnreg" not in line)


def test_setmaxnreg_is_carried_out() -> None:
    made = assemble(PTX, SM_90A)
    assert made.warnings == ()
    assert made.code[:4] == b"\x7fELF"
    (roles,) = made.resources
    assert roles.kernel == "roles"
    assert roles.registers > 64  # those of a block's launch, not what the instructions use


def test_why_nvjitlink_does_not_do() -> None:
    (message,) = nvjitlink.assemble(PTX, SM_90A).warnings
    assert message.startswith("(C7504)")
    assert "'setmaxnreg' ignored" in message


def test_ptxas_goes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called = []
    for by in (ptxas, nvjitlink):
        name = by.__name__.rsplit(".", 1)[-1]
        original = by.assemble

        def made(*of: Any, name: str = name, original: Any = original) -> Any:
            called.append(name)
            return original(*of)

        monkeypatch.setattr(by, "assemble", made)
    in_comment = PLAIN.replace("ret;", "ret; // setmaxnreg.inc\n")
    for text in (PTX, PLAIN):
        assemble(text, SM_90A)
    assert called == ["ptxas"] * 2
    without_package(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    for text in (PLAIN, in_comment):
        assemble(text, SM_90A)
    assert called[2:] == ["ptxas", "nvjitlink"] * 2


def test_same_input_gives_the_same_code() -> None:
    assert assemble(PTX, SM_90A).code == assemble(PTX, SM_90A).code


def test_both_give_the_same_resources() -> None:
    linked, compiled = (by.assemble(PLAIN, SM_90A) for by in (nvjitlink, ptxas))
    assert linked.resources == compiled.resources
    assert linked.warnings == compiled.warnings == ()


def test_source_lines_are_kept() -> None:
    located = PTX.replace("    st.global", "    .loc 1 7 3\n    st.global") + '.file 1 "k.mlir"\n'
    assert b"k.mlir" in assemble(located, SM_90A).code


def test_a_warning_is_collected() -> None:
    unbounded = PTX.replace(" .maxntid 256 .minnctapersm 1", "")
    found = assemble(unbounded, SM_90A).warnings
    assert any(w.startswith("(C7508)") and "setmaxnreg" in w for w in found)


def test_an_error_names_the_line_and_shows_it() -> None:
    with pytest.raises(LegoError, match=r"\.globul") as caught:
        assemble(PTX.replace("st.global.b32", "st.globul.b32"), SM_90A)
    error = caught.value
    line = next(i for i, text in enumerate(PTX.splitlines(), 1) if "st.global" in text)
    assert error.location is not None
    assert (error.location.file, error.location.line) == ("<ptx>", line)
    assert "st.globul.b32 [%rd1], %r1;" in error.render()


def test_newer_ptx_than_the_assembler_knows() -> None:
    with pytest.raises(LegoError, match=r"Unsupported \.version 19\.0") as caught:
        assemble(PTX.replace(".version 8.3", ".version 19.0"), SM_90A)
    assert caught.value.hint == "pip install --upgrade nvidia-cuda-nvcc"


@pytest.mark.parametrize("text", ["", "hello", "no é PTX"])
def test_ptxas_refuses_what_is_no_ptx(text: str) -> None:
    with pytest.raises(LegoError):
        ptxas.assemble(text, SM_90A)


def test_wrong_target_for_the_module() -> None:
    with pytest.raises(LegoError, match="for sm_80") as caught:
        assemble(PTX, Target.parse("sm_80"))
    assert caught.value.hint is not None
    assert ".target" in caught.value.hint


def test_options_are_passed_to_ptxas() -> None:
    unoptimized = assemble(PTX, SM_90A, options=["-Xptxas=-O0"]).code
    assert unoptimized == ptxas.assemble(PTX, SM_90A, ["-O0"]).code != assemble(PTX, SM_90A).code
    with pytest.raises(LegoError, match="-bogus"):
        ptxas.assemble(PLAIN, SM_90A, ["-bogus"])


def test_a_target_that_it_does_not_know() -> None:
    unknown = SimpleNamespace(name="sm_999", static_shared_bytes=0)
    with pytest.raises(LegoError, match="cannot assemble") as caught:
        ptxas.assemble(PTX, unknown)  # type: ignore[arg-type]
    assert caught.value.hint == "pip install --upgrade nvidia-cuda-nvcc"


def test_that_of_the_package_goes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin", "exit 0")))
    assert Path(ptxas.find()).parts[-4:] == ("nvidia", "cu13", "bin", "ptxas")


def test_the_one_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_package(monkeypatch)
    folder = program(tmp_path / "bin", "exit 0")
    monkeypatch.setenv("PATH", str(folder))
    assert ptxas.find() == str(folder / "ptxas")


def test_a_missing_ptxas_is_an_error_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_package(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LegoError, match="setmaxnreg") as caught:
        assemble(PTX, SM_90A)
    assert caught.value.hint is not None
    assert "pip install nvidia-cuda-nvcc" in caught.value.hint
    assert assemble(PLAIN, SM_90A).warnings == ()


def test_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = program(tmp_path / "bin", "kill -9 $$")
    monkeypatch.setattr(ptxas, "find", lambda: str(folder / "ptxas"))
    with pytest.raises(LegoError, match="signal 9"):
        assemble(PTX, SM_90A)


def test_cannot_be_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ptxas, "find", lambda: str(tmp_path / "ptxas"))
    with pytest.raises(LegoError, match="cannot be run: No such file"):
        assemble(PTX, SM_90A)


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assemble(PTX, SM_90A)
    with pytest.raises(LegoError):
        assemble(PTX.replace("ret;", "rot;"), SM_90A)
    assert list(tmp_path.iterdir()) == []


def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def program(folder: Path, script: str) -> Path:
    """A folder with a program ptxas that does this."""
    shell = shutil.which("sh")
    assert shell is not None
    folder.mkdir()
    path = folder / "ptxas"
    path.write_text(f"#!{shell}\n{script}\n")
    path.chmod(0o755)
    assert subprocess.run([path], check=False).returncode in (0, -9)
    return folder


def test_divisions_do_not_serialize_wgmma() -> None:
    """Splits that the launch counts divide keys; nvJitLink would call a function for that."""
    from lego_mlir.kernels import attention

    kernel = attention(None, 8, None, 8, 64, heads_kv=1, target="sm_90a")
    ptx = kernel.compile("sm_90a").ptx
    assert "div.u64" in ptx
    assert "wgmma.mma_async" in ptx
    assert not assemble(ptx, Target.parse("sm_90a")).warnings
