"""The tuner: which configs it times, what it remembers, and what it does without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm import tuner
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.heuristic import rank

PROBLEM = Problem(320, 192, 128, "f16", "f16")
CONFIGS = [found.config for found in rank(PROBLEM, Target.parse("sm_90a"))]
DEVICE = "NVIDIA Test"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEGO_MLIR_CACHE", str(tmp_path))
    monkeypatch.delenv("LEGO_MLIR_TUNE", raising=False)
    return tmp_path


def build(config: GemmConfig) -> Artifact:
    return (
        matmul(320, 192, 128, config=config, target="sm_90a").compilation().artifact(assemble=False)
    )


class Timer:
    """Says that the third config is the fastest."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __call__(self, artifacts: Sequence[Artifact]) -> list[float]:
        self.counts.append(len(artifacts))
        return [1.0 if k == 2 else 2.0 + k for k in range(len(artifacts))]


def test_the_fastest_of_five_is_chosen_and_remembered(cache: Path) -> None:
    timer = Timer()
    found = tuner.tuned_config(DEVICE, PROBLEM, CONFIGS, build, timer)
    assert found == CONFIGS[2]
    assert timer.counts == [5]
    assert tuner.remembered(DEVICE, PROBLEM) == found
    again = tuner.tuned_config(DEVICE, PROBLEM, CONFIGS, build, timer)
    assert again == found
    assert timer.counts == [5], "a known GEMM is not timed again"
    assert [file.name for file in (cache / "tuned").iterdir()] == ["nvidia-test.json"]


def test_configs_that_do_not_compile_are_left_out() -> None:
    def refuse(config: GemmConfig) -> Artifact:
        if config == CONFIGS[0]:
            raise LegoError("spills")
        return build(config)

    timer = Timer()
    assert tuner.tuned_config(DEVICE, PROBLEM, CONFIGS, refuse, timer) == CONFIGS[3]
    assert timer.counts == [4]


def test_the_first_error_is_raised_if_no_config_compiles() -> None:
    def refuse(config: GemmConfig) -> Artifact:
        raise LegoError(f"not {CONFIGS.index(config)}")

    with pytest.raises(LegoError, match="not 0"):
        tuner.tuned_config(DEVICE, PROBLEM, CONFIGS, refuse, Timer())


def test_a_folder_that_cannot_be_written_is_no_error(cache: Path) -> None:
    (cache / "tuned").write_text("a file")
    assert tuner.tuned_config(DEVICE, PROBLEM, CONFIGS, build, Timer()) == CONFIGS[2]


def test_a_corrupt_table_names_its_file(cache: Path) -> None:
    (cache / "tuned").mkdir()
    (cache / "tuned" / "nvidia-test.json").write_text("[{]")
    with pytest.raises(LegoError, match="cannot be read"):
        tuner.tuned_config(DEVICE, PROBLEM, CONFIGS, build, Timer())


def test_tuning_needs_a_gpu_if_the_caller_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LegoError, match="has no GPU of the target"):
        matmul(320, 192, 128, target="sm_80", tune=True)
    monkeypatch.setenv("LEGO_MLIR_TUNE", "1")
    kernel = matmul(320, 192, 128, target="sm_80")
    assert kernel.schedule == "cp_async"
