"""Samples and lists of GEMMs, their reports, and constants of a card fitted to results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import __main__ as command
from bench.gemm.references import GemmReference
from bench.sample.corrections import cross_validated, read_measured, regrets
from bench.sample.families import families, problem_of
from bench.sample.lists import LISTS
from bench.sample.shapes import ANY, FEW, random_gemms
from lego_mlir.hardware.specs import FOLDER, read_card

RESULTS = Path(__file__).parents[3] / "bench" / "results"


def main(*arguments: object) -> int:
    """Run the command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["bench", *map(str, arguments)])
        return command.main()


def test_a_seed_gives_the_same_gemms() -> None:
    assert list(random_gemms(7, 40)) == list(random_gemms(7, 40))
    assert list(random_gemms(7, 40)) != list(random_gemms(8, 40))


def test_few_rows_or_columns_are_few() -> None:
    found = list(random_gemms(3, 40, FEW))
    assert all(min(r.m, r.n) <= 32 and max(r.m, r.n) >= 512 for _, r in found)
    assert {which for which, _ in found} == {"aligned", ANY}
    assert {r.m < r.n for _, r in found} == {True, False}


@pytest.mark.parametrize("name", LISTS)
def test_lists_have_each_gemm_once(name: str) -> None:
    found = list(LISTS[name]())
    assert len(found) == len(set(found)) > 30


def test_one_column_of_c_counts_as_column_major() -> None:
    """As in `matmul`, which takes the order from the layout."""
    problem, layouts = problem_of(GemmReference(40, 1, 16, "f16", "f16", "row", "row"))
    assert (problem.b, problem.c) == ("col", "col")
    assert [tuple(layout.dims) for layout in layouts] == [(40, 16), (16, 1), (40, 1)]


def test_recorded_results_fit_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = tmp_path / "card.json"
    results = RESULTS / "gemm_sample_few.jsonl"
    options = ("--only", "gemv", "unaligned", "--steps", 40, "-o", card)
    assert main("calibrate", results, *options) == 0
    out = capsys.readouterr().out
    assert "gemv: 4" in out
    assert "regret after" in out
    old, new = read_card(FOLDER / "nvidia-h200.json"), read_card(card)
    assert new.gemv_model != old.gemv_model
    assert (new.wgmma_model, new.mma_model) == (old.wgmma_model, old.mma_model)
    known = {family.key: family.model_of(new) for family in families()}
    assert json.loads(card.read_text())["gemm_model"].keys() == known.keys()


def test_corrections_hold_for_sizes_that_they_are_not_fitted_to(tmp_path: Path) -> None:
    gpu = read_card(FOLDER / "nvidia-h200.json")
    gemms = read_measured([RESULTS / "gemm_random_1611.jsonl"], gpu)
    assert len(gemms) == 200
    by_models, others = regrets(gemms, {}), cross_validated(gemms, folds=4)
    assert np.log(others).mean() < 0.9 * np.log(by_models).mean()


def test_the_first_choice_is_near_the_best_of_gemms_in_no_fit() -> None:
    """By the corrections of the card, of the configs that were measured."""
    gpu = read_card(FOLDER / "nvidia-h200.json")
    gemms = read_measured([RESULTS / "gemm_random_1703.jsonl"], gpu)
    first, five = regrets(gemms, gpu.corrections), regrets(gemms, gpu.corrections, top=5)
    assert len(gemms) == 70
    assert np.exp(np.log(first).mean()) < 1.06
    assert np.exp(np.log(five).mean()) < 1.01


def test_copies_by_threads_have_estimates_near_what_was_measured() -> None:
    """Of 37 GEMMs off 16 bytes, in no fit of these copies."""
    gpu = read_card(FOLDER / "nvidia-h200.json")
    gemms = read_measured([RESULTS / "gemm_unaligned_1722.jsonl"], gpu)
    unaligned = [gemm for gemm in gemms if gemm.reference.m != 4320]
    first = regrets(unaligned, gpu.corrections)
    assert len(unaligned) == 37
    assert np.exp(np.log(first).mean()) < 1.05
    assert first.max() < 1.25


def test_corrections_are_written_and_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = tmp_path / "card.json"
    results = RESULTS / "gemm_random_1611.jsonl"
    assert main("calibrate", results, "--only", "corrections", "-o", card) == 0
    assert "corrections: 200 GEMMs, corrected without these sizes" in capsys.readouterr().out
    gpu = read_card(card)
    assert set(gpu.corrections) == {"wgmma", "gemv", "mma"}
    assert max(map(len, card.read_text().splitlines())) <= 100
    assert main("calibrate", results, "--only", "gemv", "--steps", 40, "-o", card) == 0
    assert set(read_card(card).corrections) == {"wgmma", "mma"}  # that of other constants is gone


def test_results_of_too_few_gemms_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.jsonl"
    lines = (RESULTS / "gemm_sample_few.jsonl").read_text().splitlines()[:3]
    few.write_text("\n".join(lines) + "\n")
    assert main("calibrate", few, "-o", tmp_path / "card.json") == 2
    assert "too few configs" in capsys.readouterr().err


def test_a_report_has_a_row_for_each_gemm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("sample", "report", RESULTS / "gemm_few.jsonl", "--each") == 0
    out = capsys.readouterr().out
    assert out == (RESULTS / "gemm_few.md").read_text()
    assert out.count("| few | ") == 36
    assert "read kernel, TB/s" in out
