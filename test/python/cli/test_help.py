"""`legoc --help` fits a terminal, and its examples run as printed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from lego_mlir import cli
from lego_mlir.options import parser
from lego_mlir.runtime.device import missing_for_cuda

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def examples() -> list[str]:
    """Return the commands among the examples of the help, in order."""
    text = parser().format_help().partition("examples:\n")[2]
    return re.findall(r"^  legoc (.+?)(?:   .*)?$", text, re.M)


def test_the_examples_of_the_help_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("transpose.mlir", "matmul.mlir", "scale.ptx"):
        shutil.copy(EXAMPLES / name, tmp_path)
    np.save("a.npy", np.ones((1024, 1024), np.float32))
    np.save("x.npy", np.ones(1000, np.float32))
    commands = examples()
    assert len(commands) >= 8
    for command in commands:
        if "--device=cuda" in command and missing_for_cuda() is not None:
            command = command.replace("cuda", "sim")
        assert cli.main(shlex.split(command)) == 0, command
    assert {path.name for path in tmp_path.iterdir()} >= {"out", "steps", "t.lego"}
    assert (tmp_path / "out" / "b.npy").is_file()


def test_the_help_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert max(map(len, parser().format_help().splitlines())) <= 100
