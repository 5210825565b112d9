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


@pytest.mark.parametrize("console", CONSOLES, ids=["race", "report"])
def test_commands_print_what_the_page_shows(console: str, tmp_path: Path) -> None:
    """A command may print more than the page shows."""
    lines = [line[4:] for line in console.splitlines()]
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    shown = [line for line in lines if not line.startswith("$ ")]
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    legoc = f'legoc() {{ "{sys.executable}" -m lego_mlir.cli "$@"; }}'
    script = "\n".join([legoc, *commands])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    printed = iter(stable(done.stdout + done.stderr).splitlines())
    for line in shown:
        assert stable(line) in printed, f"not printed, or not there: {line}\n{done}"


def stable(text: str) -> str:
    """Return a text without registers and lines of the PTX, which any change may change."""
    return re.sub(r"%\w+|\bline \d+", "…", text)


def test_the_reference_lists_what_is_not_supported() -> None:
    assert [name for name in NOT_MODELLED if f"`{name}`" not in REFERENCE] == []
