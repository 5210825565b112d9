"""Some inputs of each fuzzer, by the command that the long runs use, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent


def fuzz(kind: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FUZZ), kind, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=FUZZ.parents[1],
    )


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("layouts", 2000),
        ("modules", 200),
        ("tiles", 25),
        ("placed_tiles", 100),
        ("bundles", 200),
        ("arrays", 1000),
        ("templates", 300),
    ],
)
def test_no_input_fails(kind: str, count: int) -> None:
    answer = fuzz(kind, "--count", str(count))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert f"{kind}: {count} inputs in " in answer.stdout


@pytest.mark.parametrize("kind", ["layouts", "modules", "tiles", "bundles", "arrays"])
def test_an_input_is_made_from_its_number_alone(kind: str) -> None:
    """What fails in a long run is seen again by one command."""
    first, second = (fuzz(kind, "--only", "7").stdout.rpartition(f"\n{kind}: ") for _ in range(2))
    assert first[0] == second[0] != ""
