"""Every example of the docs runs, and the README shows what its command says."""

from __future__ import annotations

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
def test_mlir_example_runs_and_is_right(example: Path) -> None:
    said = run("-m", "lego_mlir.cli", example, "--run", "--device=sim")
    assert "device   sim" in said
    assert "equal to NumPy's" in said


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_python_example_runs_and_is_right(example: Path) -> None:
    assert "elements equal" in run(example)


def test_the_examples_are_one_kernel() -> None:
    """The Python example says what the .mlir example says: the same PTX but for source lines."""
    script = (
        "import runpy; k = runpy.run_path('docs/examples/transpose.py')['transpose'];"
        "print(k.compilation().text('ptx'))"
    )
    from_python = run("-c", script)
    from_mlir = run("-m", "lego_mlir.cli", EXAMPLES / "transpose.mlir", "--emit=ptx")

    def instructions(ptx: str) -> list[str]:
        lines = (line.strip() for line in ptx.splitlines())
        return [line for line in lines if line and not line.startswith((".loc", ".file", "//"))]

    assert instructions(from_python) == instructions(from_mlir)


def test_readme_shows_what_the_command_says() -> None:
    said = run("-m", "lego_mlir.cli", EXAMPLES / "transpose.mlir", "--run", "--device=sim")
    readme = (ROOT / "README.md").read_text()
    for line in said.splitlines()[1:]:  # the first names the machine's device
        assert line in readme
