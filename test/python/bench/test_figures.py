"""The figures: what is built without a GPU, and the table of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.contenders.case import build_case
from bench.figures.command import all_cases
from bench.figures.published import PUBLISHED
from bench.figures.report import report

CASES = {case.name: case for case in all_cases()}


def test_names_and_folders_are_different() -> None:
    assert len(CASES) == len(all_cases())
    assert len({case.folder for case in CASES.values()}) == len(CASES)


def test_what_is_published_has_a_case() -> None:
    assert set(PUBLISHED) <= set(CASES)


@pytest.mark.parametrize("name", ["transpose f32 2048", "softmax f32 32768×1024"])
def test_a_case_is_built(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    build_case(case, tmp_path, "sm_90a")
    files = {file.name for file in tmp_path.iterdir()}
    assert files == {*case.printed, "ours.lego"}
    assert all((tmp_path / file).read_text() for file in case.printed)


def test_every_template_is_filled(tmp_path: Path) -> None:
    """Printing alone: the kernels of ours are compiled by other tests."""
    from dataclasses import replace

    by_template = {t: case for case in CASES.values() for t, _ in case.printed.values()}
    for number, case in enumerate(by_template.values()):
        build_case(replace(case, kernels=dict), tmp_path / str(number), "sm_90a")


def test_a_report(tmp_path: Path) -> None:
    times = {"ours": 100.0, "printed": 150.0, "printed, naive": 400.0, "by hand": 151.0}
    line: dict[str, Any] = {
        "case": "transpose f32 8192",
        "figure": "LEGO 13",
        "commit": "abc",
        "device": "a GPU",
        "us": {**times, "PyTorch": 300.0},
        "work": 8.0 * 8192**2,
        "unit": "GB/s",
        "wrong": {},
    }
    results = tmp_path / "figures.jsonl"
    failed = {"case": "LU decomposition f32 4096", "figure": "LUD", "error": "no nvcc"}
    results.write_text("".join(json.dumps(each) + "\n" for each in (line, failed)))
    text = report(results)
    assert (tmp_path / "figures.md").read_text() == text
    (row,) = [row for row in text.splitlines() if "transpose" in row]
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[3] == "100.0 (5369 GB/s)"
    assert cells[4] == "printed 150.0, printed, naive 400.0, by hand 151.0"
    assert cells[5] == "PyTorch 300.0"
    assert cells[6] == "1.50"
    assert "0.707 ms by MLIR" in cells[7]
    assert "no nvcc" in text
