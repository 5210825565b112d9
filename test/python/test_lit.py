"""The lit tests as pytest cases: one for each .mlir file under test/, all run by one lit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TEST = Path(__file__).resolve().parents[1]
LIT = (sys.executable, "-c", "from lit.main import main; main()")
PASSED = {"PASS", "FLAKYPASS", "XFAIL"}


def lit_files() -> list[str]:
    """Return the .mlir files that lit should find, relative to test/."""
    files = (path.relative_to(TEST) for path in TEST.rglob("*.mlir"))
    return sorted(f.as_posix() for f in files if "Inputs" not in f.parts and f.parts[0] != "python")


@pytest.fixture(scope="session")
def lit_results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """Run lit once on all selected files, whether or not tests fail; return its results by file."""
    selected = [
        item.callspec.params["file"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_lit.__name__
    ]
    folder = tmp_path_factory.mktemp("lit")
    report = folder / "report.json"
    answer = subprocess.run(
        [
            *(*LIT, "-q", "-j2", "--timeout=300"),
            *("--param", f"exec_root={folder}", "-o", str(report)),
            *(str(TEST / file) for file in selected),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        pytest.fail(f"lit did not run:\n{answer.stdout}{answer.stderr}", pytrace=False)
    tests = json.loads(report.read_text())["tests"]
    return {test["name"].removeprefix("lego-mlir :: "): test for test in tests}


@pytest.mark.parametrize("file", lit_files())
def test_lit(
    file: str,
    lit_results: dict[str, dict[str, Any]],
    record_property: Callable[[str, object], None],
) -> None:
    assert file in lit_results, "lit did not run this file"
    result = lit_results[file]
    record_property("lit_cpu_seconds", result["metrics"]["cpu_seconds"])
    if result["code"] == "UNSUPPORTED":
        pytest.skip(result["output"].strip() or "unsupported here")
    if result["code"] not in PASSED:
        pytest.fail(f"{result['code']}: test/{file}\n{result['output']}", pytrace=False)


def test_lit_finds_every_mlir_file() -> None:
    """No .mlir file lies where lit would leave it out."""
    answer = subprocess.run(
        [*LIT, "--show-tests", str(TEST)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line.split(" :: ")[1] for line in answer.stdout.splitlines() if " :: " in line]
    assert sorted(found) == lit_files(), answer.stderr
