"""Errors of the simulator show lines of what was compiled, and of no file that a location names."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lego_mlir import cli
from lego_mlir.diagnostics import LegoError, printable

MODULE = """func.func @beyond(%out: memref<16xf32>) {
  %c1 = arith.constant 1 : index
  %c99 = arith.constant 99 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %zero, %out[%c99] : memref<16xf32> LOCATION
    gpu.terminator
  }
  return
}
"""


@pytest.fixture
def legoc(capsys: Any, monkeypatch: Any, tmp_path: Path) -> Any:
    """Run legoc in an empty folder: its status and stderr."""
    monkeypatch.chdir(tmp_path)
    for name in ("secret", "folder/secret"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("one\nthe password\nthree\n")
    os.mkfifo("fifo")

    def run(*arguments: str, stdin: str = "") -> tuple[int, str]:
        stream = SimpleNamespace(buffer=io.BytesIO(stdin.encode()))
        monkeypatch.setattr(sys, "stdin", stream)
        status = cli.main(arguments)
        return status, capsys.readouterr().err

    return run


@pytest.mark.parametrize("name", ["k.mlir", "./k.mlir", "ABSOLUTE", "folder/../k.mlir", "a b.mlir"])
def test_the_lines_of_the_input_are_shown(legoc: Any, tmp_path: Path, name: str) -> None:
    name = name.replace("ABSOLUTE", str(tmp_path / "k.mlir"))
    Path(name).write_text(MODULE.replace("LOCATION", ""))
    status, printed = legoc(name, "--run", "--device=sim")
    assert (status, printed.count("memref.store %zero")) == (1, 1), printed
    assert ":7:5: error: " in printed


def test_the_lines_of_stdin_are_shown(legoc: Any) -> None:
    status, printed = legoc("-", "--run", "--device=sim", stdin=MODULE.replace("LOCATION", ""))
    assert (status, printed.count("memref.store %zero")) == (1, 1), printed
    assert printed.startswith("<stdin>:7:5: error: ")


@pytest.mark.parametrize("name", ["secret", "folder/secret", "/etc/passwd", "fifo", "/dev/zero"])
@pytest.mark.parametrize("where", ["module", "bundle"])
def test_a_file_that_a_location_names_is_not_read(legoc: Any, where: str, name: str) -> None:
    located = MODULE.replace("LOCATION", f'loc("{name}":2:1)')
    Path("k.mlir").write_text(located)
    if where == "bundle":
        assert legoc("k.mlir", "--emit=bundle", "-o", "k.lego")[0] == 0
    input_file = {"module": "k.mlir", "bundle": "k.lego"}[where]
    status, printed = legoc(input_file, "--run", "--device=sim")
    assert status == 1
    assert f"; compiled from {name}:2" in printed
    assert not re.search("password|root:", printed)
    status, _ = legoc("k.mlir", "--emit=cubin", "-o", "k.cubin")
    assert status == 0


def test_a_bundle_shows_the_line_of_its_ptx(legoc: Any) -> None:
    """Also where a file of the name that it was compiled from is at hand."""
    Path("k.mlir").write_text(MODULE.replace("LOCATION", ""))
    assert legoc("k.mlir", "--emit=bundle", "-o", "k.lego")[0] == 0
    status, printed = legoc("k.lego", "--run", "--device=sim")
    assert status == 1
    assert re.match(r"<ptx>:\d+:\d+: error: .*; compiled from k.mlir:7:5\n +st.global", printed)


def test_the_report_escapes_control_characters_in_locations(legoc: Any, capsys: Any) -> None:
    Path("k.mlir").write_text(MODULE.replace("%c99]", "%c1]").replace("LOCATION", ""))
    assert legoc("k.mlir", "--emit=bundle", "-o", "k.lego")[0] == 0
    with zipfile.ZipFile("k.lego") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    ptx = parts["kernels.ptx"].replace(b'"k.mlir"', b'"\x1b[2J.mlir"')
    assert ptx != parts["kernels.ptx"]
    with zipfile.ZipFile("own.lego", "w") as archive:
        for name, data in {**parts, "kernels.ptx": ptx}.items():
            archive.writestr(name, data)
    assert cli.main(["own.lego", "--run", "--device=sim", "--report"]) == 0
    printed = capsys.readouterr().out
    assert r"\x1b[2J.mlir:7:5" in printed
    assert "\x1b" not in printed


def test_a_kernel_in_python_and_what_it_calls(tmp_path: Path, monkeypatch: Any) -> None:
    """The lines of all Python files that a kernel was traced through are shown."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helper_of_it.py").write_text(
        "def put(out, value):\n    out[0] = value  # in the helper\n"
    )
    (tmp_path / "kernel_of_it.py").write_text(
        "import lego_mlir.frontend as lg\n"
        "from lego_mlir import parse_layout\n"
        "from helper_of_it import put\n"
        "A = parse_layout('OrderBy(Row(1024))')\n"
        "@lg.kernel(grid=1, block=32)\n"
        "def racy(out: lg.Tensor['f32', A]):\n"
        "    tile = lg.shared('f32', A)\n"
        "    put(tile, 1.0)\n"
        "    out[lg.thread_id()] = tile[lg.thread_id() + 1]\n"
    )
    spec = importlib.util.spec_from_file_location("kernel_of_it", tmp_path / "kernel_of_it.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    texts = dict(module.racy.compile().sources.texts)
    assert "# in the helper" in texts["helper_of_it.py"]
    with pytest.raises(LegoError) as caught:
        module.racy(np.zeros(1024, "f4"), device="sim")
    assert caught.value.location is not None
    row = str(caught.value).splitlines()[1].strip()
    lines = [*texts["kernel_of_it.py"].splitlines(), *texts["helper_of_it.py"].splitlines()]
    assert row in map(str.strip, lines)


def test_control_characters_of_errors_are_written_out() -> None:
    assert printable("a\tb\x1b[0m\x9b\u202e ä×") == r"a\tb\x1b[0m\x9b\u202e ä×"
    assert str(LegoError("no\x07 \nline", hint="\x1bc")) == "error: no\\x07 \nline\nhint: \\x1bc"
