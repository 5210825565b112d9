"""Cards as data: every file is a card, a new card needs no code, and wrong files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware import specs
from lego_mlir.hardware.gemm_models import Correction
from lego_mlir.hardware.specs import FOLDER, defaults, read_card, spec_of
from lego_mlir.hardware.targets import TARGETS, Target
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.heuristic import choose, rank

H200 = FOLDER / "nvidia-h200.json"


def card(**changes: Any) -> dict[str, Any]:
    """Return the fields of the H200's file with some changed."""
    fields: dict[str, Any] = json.loads(H200.read_text())
    return {**fields, **changes}


def test_every_file_is_named_for_its_card() -> None:
    names = {file.stem: read_card(file).name for file in FOLDER.glob("*.json")}
    assert {stem: name.lower().replace(" ", "-") for stem, name in names.items()} == {
        stem: stem for stem in names
    }


def test_every_target_has_a_card() -> None:
    found = {name: spec_of(target).name for name, target in TARGETS.items()}
    assert found["sm_80"] == "NVIDIA A100-SXM4-80GB"
    assert found["sm_89"] == "NVIDIA L40S"
    assert found["sm_90a"] == found["sm_120"] == "NVIDIA H200"


def test_another_hopper_card_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = card(name="NVIDIA Test", multiprocessors=114)
    (tmp_path / "nvidia-test.json").write_text(json.dumps(entry))
    monkeypatch.setattr(specs, "FOLDER", tmp_path)
    target = Target.parse("sm_90a")
    assert spec_of(target).name == "NVIDIA Test"
    assert choose(Problem(8192, 8192, 8192, "f16", "f16"), target).persistent_ctas == 114


def test_a_card_without_wgmma_has_no_wgmma_configs() -> None:
    problem, target = Problem(512, 512, 512, "f16", "f16"), Target.parse("sm_80")
    assert rank(problem, target) == []
    with pytest.raises(LegoError, match=r"no cost model of wgmma on sm_80, .* A100"):
        choose(problem, target)


def without(field: str) -> dict[str, Any]:
    return {key: value for key, value in card().items() if key != field}


def with_model(**models: Any) -> dict[str, Any]:
    return card(gemm_model={**card()["gemm_model"], **models})


def with_correction(**changes: Any) -> dict[str, Any]:
    """Return a card that corrects `mma` by one feature, with some fields of that changed."""
    fields = {"features": {"memory": [0.5, 0.2]}, "weights": [0.1, 0.2, 0.3]}
    return card(gemm_corrections={"mma": {**fields, **changes}})


def test_a_card_may_correct_its_models(tmp_path: Path) -> None:
    file = tmp_path / "card.json"
    file.write_text(json.dumps(with_correction()))
    found = read_card(file).corrections
    assert found == {"mma": Correction(("memory",), (0.5,), (0.2,), (0.1, 0.2, 0.3))}
    file.write_text(json.dumps(without("gemm_corrections")))
    assert read_card(file).corrections == {}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([], "a card is an object"),
        (card(gemm_model=5), "'gemm_model', an object"),
        (without("sm_threads"), "lacks these fields.*: sm_threads"),
        (card(speed=5), "speed"),
        (card(name=5), "a card has a name"),
        (card(multiprocessors=0), "'multiprocessors' is a positive number, not 0"),
        (card(clock_ghz="fast"), "'clock_ghz' is a positive number, not 'fast'"),
        (card(default_for=["nine"]), "list of capabilities"),
        (with_model(mma={}), "cta_clocks"),
        (with_model(wgmma=5), "cluster_placement has the keys"),
        (with_model(wgmma={"cluster_placement": {"1": 1.0}}), "cluster_placement has the keys"),
        (card(gemm_corrections=[]), "gemm_corrections is an object"),
        (card(gemm_corrections={"unaligned": {}}), "fields of wgmma, gemv, mma"),
        (card(gemm_corrections={"mma": {}}), "mma has the fields 'features' and 'weights'"),
        (with_correction(features={"memory": [0.5]}), "has a mean and a deviation"),
        (with_correction(features={"memory": [0.5, "0.2"]}), "has a mean and a deviation"),
        (with_correction(features={"memory": [0.5, 0.0]}), "positive deviations"),
        (with_correction(weights=[0.1]), "3 weights for 1 features"),
    ],
)
def test_wrong_files_are_refused_with_their_location(
    entry: object, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "card.json"
    file.write_text(json.dumps(entry))
    with pytest.raises(LegoError, match=message) as caught:
        read_card(file)
    assert caught.value.location is not None
    assert caught.value.location.file == str(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "card.json"
    file.write_text("{")
    with pytest.raises(LegoError, match="cannot be read"):
        read_card(file)
    with pytest.raises(LegoError, match="there are no cards"):
        defaults(tmp_path / "empty")


def test_two_default_cards_for_one_capability_are_refused(tmp_path: Path) -> None:
    for name in ("NVIDIA One", "NVIDIA Two"):
        (tmp_path / f"{name[-3:]}.json").write_text(json.dumps(card(name=name)))
    with pytest.raises(LegoError, match=r"9\.0 has two default cards, NVIDIA One and NVIDIA Two"):
        defaults(tmp_path)
