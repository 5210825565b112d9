"""The simulator's pages are right: their Python runs, and their commands print what they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lego_mlir.sim.ptx.table import NOT_MODELLED

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "simulator.md").read_text()
REFERENCE = (ROOT / "docs" / "simulator-reference.md").read_text()
CONSOLES = re.findall(r"(?:^    .*\n)*^    \$ .*\n(?:^    .*\n)+", PAGE, re.M)


def test_the_python_of_the_page_runs() -> None:
    """All of it, one part after the other, as a reader would paste it."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("console", CONSOLES, ids=["race", "report"])
def test_commands_say_what_the_page_shows(console: str, tmp_path: Path) -> None:
    """Line by line; a command may say more than the page."""
    lines = [line[4:] for line in console.splitlines()]
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    shown = [line for line in lines if not line.startswith("$ ")]
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    legoc = f'legoc() {{ "{sys.executable}" -m lego_mlir.cli "$@"; }}'
    script = "\n".join([legoc, *commands])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    said = iter(stable(done.stdout + done.stderr).splitlines())
    for line in shown:
        assert stable(line) in said, f"not said, or not there: {line}\n{done.stdout}{done.stderr}"


def stable(text: str) -> str:
    """A text without what any change of the compiler changes: registers and lines of the PTX."""
    return re.sub(r"%\w+|\bline \d+", "…", text)


def test_the_reference_lists_what_is_not_supported() -> None:
    assert [name for name in NOT_MODELLED if f"`{name}`" not in REFERENCE] == []
