"""test/strict_filecheck.py, PyPI's FileCheck, refuses checks that LLVM's refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FILECHECK = Path(__file__).resolve().parents[1] / "strict_filecheck.py"


def run(folder: Path, checks: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    file = folder / "checks"
    file.write_text(checks)
    return subprocess.run(
        [sys.executable, str(FILECHECK), *options, str(file)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("checks", "options"),
    [
        ("// CHECK: one\n// CHECK-NEXT: two\n", []),
        ("// A: one\n// B-NOT: three\n", ["--check-prefixes=A,B"]),
        ("// A: one\n// B: two\n", ["--check-prefix", "A", "--check-prefix=B"]),
        ("// CHECK: {{[a-z]+}}\n// CHECK-NOT: {{^}}three\n", []),
    ],
)
def test_checks_that_hold_pass(tmp_path: Path, checks: str, options: list[str]) -> None:
    answer = run(tmp_path, checks, "one\ntwo\n", *options)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("checks", "text", "options", "why"),
    [
        ("// CHECK: three\n", "one\n", [], ""),
        ("// A: one\n", "one\n", ["--check-prefixes=A,B"], "prefix B is never used"),
        ("// A: one\n", "one\n", [], "prefix CHECK is never used"),
        ("// CHECK: one\n", "one", [], "does not end in a newline"),
        ("// CHECK: [[#N:]]\n", "1\n", [], "numeric captures"),
        ("// CHECK: one\n", "one\n", ["--enable-var-scope"], "enable-var-scope"),
        ("// CHECK: one\n", "", [], ""),
    ],
)
def test_checks_that_do_not_hold_or_mean_nothing_fail(
    tmp_path: Path, checks: str, text: str, options: list[str], why: str
) -> None:
    answer = run(tmp_path, checks, text, *options)
    assert answer.returncode != 0
    assert why in answer.stderr
