"""The tuner of permutations: what it times, what it remembers, and what it does without a GPU."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lego_mlir import OrderBy, Row, launch
from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import permute, transpose, tuning
from lego_mlir.kernels.permute import tuner
from lego_mlir.kernels.permute.heuristic import Config, choose_config, ranked
from lego_mlir.kernels.permute.problem import find_problem
from lego_mlir.kernels.permute.tuner import Moved

DEVICE = "NVIDIA Test"
TABLE = "permute-nvidia-test.json"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEGO_MLIR_CACHE", str(tmp_path))
    monkeypatch.delenv("LEGO_MLIR_TUNE", raising=False)
    return tmp_path


def moved(shape: Sequence[int], axes: Sequence[int], element_bytes: int) -> Moved:
    output = [shape[k] for k in axes]
    problem = find_problem(shape, axes, OrderBy(Row(*shape)), OrderBy(Row(*output)))
    assert problem is not None
    return Moved(problem, element_bytes, 16 // element_bytes)


TRANSPOSE = moved((96, 70), (1, 0), 2)


@functools.cache
def some_artifact() -> Artifact:
    return transpose(8, 8).compilation().artifact(assemble=False)


def build(_: Config) -> Artifact:
    return some_artifact()


class Timer:
    """Says that one of the configs is the fastest."""

    def __init__(self, best: int) -> None:
        self.best = best
        self.counts: list[int] = []

    def __call__(self, artifacts: Sequence[Artifact]) -> list[float]:
        self.counts.append(len(artifacts))
        return [1.0 if k == self.best else 2.0 + k for k in range(len(artifacts))]


@pytest.mark.parametrize(
    "found",
    [TRANSPOSE, moved((5, 40, 12, 3), (2, 1, 0, 3), 1), moved((9, 6, 64), (1, 0, 2), 4)],
    ids=["transpose", "bytes", "copy"],
)
def test_the_fastest_of_any_kind_is_chosen_and_remembered(cache: Path, found: Moved) -> None:
    configs = ranked(found.problem, found.element_bytes, found.max_width)
    for number, config in enumerate(configs):
        timer = Timer(number)
        assert tuner.tuned_config(DEVICE, found, build, timer) == config
        assert timer.counts == [len(configs)]
        assert tuner.tuned_config(DEVICE, found, build, timer) == config
        assert timer.counts == [len(configs)], "a known permutation is not timed again"
        (cache / "tuned" / TABLE).unlink()
        tuner._entries.cache_clear()


def test_a_table_has_several_permutations(cache: Path) -> None:
    other = moved((96, 70), (1, 0), 4)
    configs = [
        tuner.tuned_config(DEVICE, each, build, Timer(number))
        for number, each in enumerate((TRANSPOSE, other))
    ]
    assert len(json.loads((cache / "tuned" / TABLE).read_text())) == 2
    unused = Timer(3)
    found = [tuner.tuned_config(DEVICE, each, build, unused) for each in (TRANSPOSE, other)]
    assert found == configs
    assert unused.counts == []


@pytest.mark.parametrize(
    ("shape", "axes", "dtype"),
    [((33, 70), (1, 0), "i8"), ((7, 24, 3), (1, 2, 0), "f16"), ((5, 6, 12), (1, 0, 2), "f32")],
)
def test_what_is_timed_computes_the_permutation(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each config in turn is the one that `permute` takes, and it permutes."""
    numpy: Any = {"i8": np.int8, "f16": np.float16, "f32": np.float32}[dtype]
    found = moved(shape, axes, numpy().itemsize)
    configs = ranked(found.problem, found.element_bytes, found.max_width)
    assert configs[0] == choose_config(found.problem, found.element_bytes, found.max_width)
    x = np.random.default_rng(0).integers(-99, 99, prod(shape)).astype(numpy).reshape(shape)
    monkeypatch.setattr(tuner.runtime, "select", lambda: SimpleNamespace(model=DEVICE))
    monkeypatch.setattr(tuning, "folder", lambda: None)
    for number in range(len(configs)):
        timer = Timer(number)
        monkeypatch.setattr(
            tuning, "time_on_gpu", lambda name, artifacts, is_cold, timer=timer: timer(artifacts)
        )
        kernel = permute(shape, axes, dtype, tune=True)
        assert timer.counts == [len(configs)]
        y = np.full([shape[k] for k in axes], 55, numpy)
        launch(kernel.compile("sm_90a"), x, y, device="sim")
        np.testing.assert_array_equal(y, x.transpose(axes))


@pytest.mark.parametrize(
    "text",
    [
        "[{]",
        "[3]",
        '[{"modes": [[4, 1]], "element_bytes": 2, "max_width": 8, "kind": "copy"}]',
        '[{"modes": [[4, 1, 1]], "element_bytes": 2, "max_width": 8, "kind": "other"}]',
        '[{"modes": [[4, 1, 1]], "element_bytes": 2, "max_width": 8, "kind": "copy", "rows": 1}]',
        '[{"modes": [[4, 1, 1]], "element_bytes": 2, "max_width": 8, "kind": "copy", "rows": "1",'
        ' "columns": 1, "width": 1}]',
    ],
)
def test_a_corrupt_table_names_its_file(cache: Path, text: str) -> None:
    (cache / "tuned").mkdir()
    (cache / "tuned" / TABLE).write_text(text)
    with pytest.raises(LegoError, match="cannot be read") as error:
        tuner.tuned_config(DEVICE, TRANSPOSE, build, Timer(0))
    assert TABLE in str(error.value)


def test_a_folder_that_cannot_be_written_is_no_error(cache: Path) -> None:
    (cache / "tuned").write_text("a file")
    tuner.tuned_config(DEVICE, TRANSPOSE, build, Timer(1))


def test_tuning_needs_a_gpu_if_the_caller_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner.runtime, "select", lambda: SimpleNamespace(model=None))
    for made in (
        lambda tune: permute((8, 4, 3), (2, 0, 1), tune=tune),
        lambda tune: transpose(8, 4, tune=tune),
    ):
        with pytest.raises(LegoError, match="this machine has no GPU"):
            made(True)
        monkeypatch.setenv("LEGO_MLIR_TUNE", "1")
        made(None)
        monkeypatch.delenv("LEGO_MLIR_TUNE")
