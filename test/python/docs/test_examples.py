"""Every example of the docs runs, and the README shows what its command says."""

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
def test_mlir_example_runs_and_is_right(example: Path) -> None:
    """It is run as its first lines say."""
    command = re.search(r"legoc \S+\.mlir (.*--run)\b", example.read_text())
    assert command is not None
    said = run("-m", "lego_mlir.cli", example, *command[1].split(), "--device=sim")
    assert "device   sim" in said
    assert re.search("(equal to|agrees with) NumPy's", said)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_python_example_runs_and_is_right(example: Path) -> None:
    assert re.search("elements (equal|within rounding)", run(example))


@pytest.mark.parametrize(("name", "options"), [("transpose", []), ("matmul", ["--schedule=hmma"])])
def test_the_examples_are_one_kernel(name: str, options: list[str]) -> None:
    """The Python example says what the .mlir example says: the same PTX but for source lines."""
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


def test_readme_shows_what_the_command_says() -> None:
    said = run("-m", "lego_mlir.cli", EXAMPLES / "transpose.mlir", "--run", "--device=sim")
    readme = (ROOT / "README.md").read_text()
    for line in said.splitlines()[1:]:  # the first names the machine's device
        assert line in readme
