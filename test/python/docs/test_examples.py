"""Every kernel of docs/examples runs, and its result agrees with NumPy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "docs" / "examples"


def run(*arguments: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.mlir")), ids=lambda p: p.name)
def test_mlir_example_agrees_with_numpy(example: Path) -> None:
    """The command is the one in the file's first lines."""
    command = re.search(r"legoc \S+\.mlir (.*--run)\b", example.read_text())
    assert command is not None
    printed = run("-m", "lego_mlir.cli", example, *command[1].split(), "--device=sim")
    assert "device   sim" in printed
    assert re.search("(equal to|agrees with) NumPy's", printed)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_python_example_agrees_with_numpy(example: Path) -> None:
    assert re.search("elements (equal|within rounding)", run(example))


@pytest.mark.parametrize(
    ("name", "options"), [("transpose", []), ("matmul", ["--schedule=cp_async"])]
)
def test_python_and_mlir_examples_have_the_same_ptx(name: str, options: list[str]) -> None:
    """Their PTX is identical except for source lines."""
    script = (
        f"import runpy; k = runpy.run_path('docs/examples/{name}.py')['{name}'];"
        "print(k.compilation().text('ptx'))"
    )
    from_python = run("-c", script)
    from_mlir = run("-m", "lego_mlir.cli", EXAMPLES / f"{name}.mlir", "--emit=ptx", *options)

    def instructions(ptx: str) -> list[str]:
        lines = (line.strip() for line in ptx.splitlines())
        return [line for line in lines if line and not line.startswith((".loc", ".file", "//"))]

    assert instructions(from_python) == instructions(from_mlir)
