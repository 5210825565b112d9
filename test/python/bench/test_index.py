"""`bench index`: every expression is checked and counted; a wrong one has no figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def results_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_expression_is_correct_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "index.jsonl"
    ran = python("-m", "bench", "index", "--json", file)
    assert ran.returncode == 0, ran.stderr
    results = results_in(file)
    assert all(r["correct"] for r in results)
    assert len({r["name"] for r in results}) == len(results) > 25
    for r in results:
        assert r["commit"]
        assert r["seconds"] > 0
        # The MLIR code has as many operations, except for a square root's many steps.
        assert r["operations"] <= r["arith"] <= 2 * r["operations"], r["name"]
    assert file.with_suffix(".md").read_text() == ran.stdout
    assert "The 19 expressions of the reference take " in ran.stdout
    assert "| equation 7 | 8 | 8 | 8 | " in ran.stdout


def test_a_word_selects_expressions(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    ran = python("-m", "bench", "index", "--only", "Figure 9", "--json", file)
    assert ran.returncode == 0, ran.stderr
    assert [r["name"] for r in results_in(file)] == ["Figure 9"]


WRONG = """
import sys
from pathlib import Path
from bench.index import command, measure

derive = measure.derive
def off_by_one(row):
    layout, symbols, expressions = derive(row)
    return layout, symbols, [x + (row.name == "Figure 9") for x in expressions]
measure.derive = off_by_one
sys.exit(command.run("9", Path(sys.argv[1])))
"""


def test_wrong_expressions_have_no_figures(tmp_path: Path) -> None:
    file = tmp_path / "wrong.jsonl"
    ran = python("-c", WRONG, file)
    assert ran.returncode == 1, ran.stderr
    (wrong, correct) = results_in(file)
    assert (wrong["name"], wrong["correct"]) == ("Figure 9", False)
    assert "seconds" not in wrong
    assert "operations" not in wrong
    assert correct["correct"]
    assert "| Figure 9 | **wrong** |  |" in ran.stdout
    assert "**Wrong**: Figure 9." in ran.stdout


def test_a_longer_expression_is_named(tmp_path: Path) -> None:
    script = """
from dataclasses import replace
from bench.index.command import report
from bench.index.expressions import COMPARED
from bench.index.measure import measure
row = next(r for r in COMPARED if r.name == "equation 7")
print(report([{**measure(replace(row, operations=7)), "commit": "c"}]))
"""
    ran = python("-c", script)
    assert ran.returncode == 0, ran.stderr
    assert "Every count at most the reference's: no, equation 7 (8 to 7)." in ran.stdout
