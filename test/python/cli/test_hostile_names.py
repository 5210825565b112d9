"""A name in a module or a bundle decides nothing outside the folders that the user named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lego_mlir import cli
from lego_mlir.artifact import Artifact

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SMALL = (EXAMPLES / "transpose.mlir").read_text().replace("1024", "64")
OUTPUT = "%b: memref<64x64xf32> {lego.layout = #B}"


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run legoc: its status, stdout, and stderr."""
    status = cli.main([str(x) for x in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert OUTPUT in SMALL
    monkeypatch.chdir(tmp_path)
    return tmp_path / "m.mlir"


@pytest.mark.parametrize(
    "name", ['"../../x"', '"/tmp/x"', '"."', '"-x"', '""', r'"\1B]0;x\07"', '"a"', "3", '"a/b"']
)
def test_a_name_that_cannot_be_one(
    capsys: pytest.CaptureFixture[str], module: Path, name: str
) -> None:
    named = OUTPUT.replace("{", f"{{lego.name = {name}, ")
    module.write_text(SMALL.replace(OUTPUT, named))
    status, out, err = run(capsys, module, "--run", "--device=sim", "--save=out")
    assert (status, out) == (1, "")
    assert "m.mlir:16:3: error: argument 1 of @transpose has the name '" in err
    assert '\nhint: {lego.name = "x"} names an argument; a name has letters' in err
    assert all(c.isprintable() or c == "\n" for c in err)
    assert list(module.parent.iterdir()) == [module]


def test_a_good_name_names_the_file(capsys: pytest.CaptureFixture[str], module: Path) -> None:
    module.write_text(SMALL.replace(OUTPUT, OUTPUT.replace("{", '{lego.name = "größe.0-$", ')))
    status, out, err = run(capsys, module, "--run", "--device=sim", "--save=out")
    assert (status, err) == (0, "")
    assert "saved    out/größe.0-$.npy\n" in out
    assert np.load("out/größe.0-$.npy").shape == (64, 64)


def test_a_step_that_is_kept_names_no_other_folder(
    capsys: pytest.CaptureFixture[str], module: Path
) -> None:
    module.write_text(SMALL)
    Path("s.mlir").write_text(
        """
        module attributes {transform.with_named_sequence} {
          transform.named_sequence @__transform_main(%m: !transform.any_op {transform.consumed}) {
            "transform_lego.keep"(%m) {name = "../../x"} : (!transform.any_op) -> ()
            transform.yield
          }
        }
        """
    )
    status, _, err = run(capsys, module, "--schedule=s.mlir", "--keep=out", "--emit=scheduled")
    assert status == 1
    assert "keep: '../../x' cannot be the name of a step" in err
    assert not list(module.parent.rglob("x*"))


def test_names_of_files_are_printed_without_controls(
    capsys: pytest.CaptureFixture[str], module: Path
) -> None:
    module.write_text(SMALL)
    np.save("\x1b[2J.npy", np.ones((64, 64), np.float32))
    status, out, _ = run(capsys, module, "\x1b[2J.npy", "--run", "--device=sim", "--report")
    assert status == 0
    assert r"\x1b[2J.npy" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    "example",
    [
        ["transpose.mlir"],
        ["matmul.mlir", "--schedule=cp_async"],
        ["matmul.mlir", "--schedule=persistent"],
    ],
)
def test_what_is_compiled_can_be_loaded(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, example: list[str]
) -> None:
    file = tmp_path / "x.lego"
    status, _, err = run(capsys, EXAMPLES / example[0], *example[1:], "--emit=bundle", "-o", file)
    assert (status, err) == (0, "")
    loaded = Artifact.load(file)
    assert loaded.to_bytes() == file.read_bytes()


def test_outputs_are_whole_when_legoc_is_killed(module: Path) -> None:
    module.write_text(SMALL)
    Path("out").mkdir()
    old = Path("out", "b.npy")
    old.write_bytes(b"old")
    script = (
        "import os, sys, numpy; from lego_mlir import cli\n"
        "def half(file, *_, **__):\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), 9)\n"
        "numpy.save = half\n"
        "cli.main([sys.argv[1], '--run', '--device=sim', '--save=out'])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(module)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert old.read_bytes() == b"old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_an_error_in_words(capsys: pytest.CaptureFixture[str], module: Path) -> None:
    module.write_text(SMALL)
    status, _, err = run(capsys, module, "-o", "/dev/full")
    assert status == 1
    assert err.startswith("/dev/full: error: cannot be written: No space left on device")
