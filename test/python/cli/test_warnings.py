"""What the assembler warns of, legoc tells, and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lego_mlir import cli
from lego_mlir.artifact import Artifact
from lego_mlir.cache import entries
from lego_mlir.cache.store import Store

# 64 numbers that all live at once, in a kernel whose threads may have few registers each.
SPILLING = """
#V = #lego.layout<"OrderBy(Row(1024, 64))">
func.func @busy(%a: memref<65536xf32> {lego.layout = #V},
                %b: memref<65536xf32> {lego.layout = #V}) {
  %c1 = arith.constant 1 : index
  %threads = arith.constant 1024 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %x = "lego.load"(%a, %tx) {layout = #V, slice = array<i64: 1>}
        : (memref<65536xf32>, index) -> vector<64xf32>
    gpu.barrier
    %y = arith.mulf %x, %x : vector<64xf32>
    "lego.store"(%y, %b, %tx) {layout = #V, slice = array<i64: 1>}
        : (vector<64xf32>, memref<65536xf32>, index) -> ()
    gpu.terminator
  }
  return
}
"""


@pytest.mark.parametrize("stage", ["cubin", "bundle"])
def test_spills_are_reported_on_stderr(
    stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "k.mlir", tmp_path / "out"
    source.write_text(SPILLING)
    assert cli.main([str(source), f"--emit={stage}", "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("warning: busy_kernel spills registers: ")
    code = out.read_bytes() if stage == "cubin" else Artifact.load(out).cubin
    assert code is not None
    assert code[:4] == b"\x7fELF"


def test_a_word_of_the_assembler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lego_mlir.compiler import driver
    from lego_mlir.compiler.backend import codegen

    message = "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"

    def assemble(*arguments: Any) -> Any:
        made = codegen.assemble(*arguments)
        return type(made)(made.code, made.resources, (message,), made.log)

    monkeypatch.setattr(driver, "codegen", type("codegen", (), {"assemble": assemble}))
    source = tmp_path / "k.mlir"
    source.write_text(SPILLING)
    assert cli.main([str(source), "--emit=cubin", "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == f"warning: {message}\n"


def test_spills_are_reported_for_code_from_the_cache(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "k.mlir", tmp_path / "out"
    source.write_text(SPILLING)
    told = []
    for _ in range(2):
        assert cli.main([str(source), "--emit=cubin", "-o", str(out)]) == 0
        told.append(capsys.readouterr().err)
        entries.forget()
    assert store.usage().entries == 1
    assert told[0] == told[1]
    assert "warning: " in told[0]
