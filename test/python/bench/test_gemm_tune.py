"""The config search: which candidates are compiled and timed, and what enters the table."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from bench_command import bench

from bench.build import read_manifest
from bench.gemm import search as search_module
from bench.gemm import tune
from bench.gemm.cases import CUBLAS
from bench.gemm.references import GemmReference
from bench.gemm.search import FINALISTS, add_candidates, time_candidates
from bench.report.old_names import with_current_names
from bench.run import summary
from lego_mlir import Artifact
from lego_mlir.artifact import Argument, KernelLaunch
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem

REFERENCE = GemmReference(512, 256, 128, "f16", "f16", "row", "col")
PTX = ".visible .entry gemm(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }"
CONFIGS = [MmaConfig((128, 64, 64), (2, 2), stages) for stages in (2, 3, 4)]


class FakeKernel:
    """A kernel that compiles to an artifact without code."""

    def __init__(self, config: MmaConfig | None) -> None:
        self.config = config

    def compile(self, target: str) -> Artifact:
        if self.config == CONFIGS[1]:
            raise LegoError("too large")
        arguments = tuple(Argument(x, "f16", (8, 8)) for x in "abc")
        launch = KernelLaunch("gemm", (1, 1, 1), (32, 1, 1), (0, 1, 2))
        return Artifact("gemm", target, arguments, (launch,), PTX)


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(
        tune, "make_kernel", lambda reference, schedule, target, config=None: FakeKernel(config)
    )
    monkeypatch.setattr(tune, "candidates", lambda reference, search: CONFIGS)
    search = tune.Search(((512, 256, 128),), transposes=("NT",), schedule="cp_async")
    assert tune.build(tmp_path, search) == 1
    return read_manifest(tmp_path)


def test_a_bundle_contains_the_candidates_that_compile(
    bundle: dict[str, Any], tmp_path: Path
) -> None:
    entry = bundle["cases"]["gemm_f16_512x256x128_nt_cp_async"]
    assert GemmReference.from_json(entry["reference"]) == REFERENCE
    assert entry["peers"] == [CUBLAS]
    assert [x["name"] for x in entry["candidates"]] == [str(CONFIGS[0]), str(CONFIGS[2])]
    for candidate in entry["candidates"]:
        assert Artifact.load(tmp_path / candidate["file"]).name == "gemm"


def test_candidates_are_the_cost_models_best_and_other_raster_groups() -> None:
    found = tune.candidates(REFERENCE, tune.Search((), max_candidates=12))
    assert len(found) == len(set(found)) == 12
    assert {4, 16, 32} < {c.raster_group for c in found}
    for config in found:
        config.check(Problem(512, 256, 128, "f16", "f16", "row", "col"), 227 * 1024)


def result(*us: float, **changes: Any) -> dict[str, Any]:
    """Return the result of a search in which `ours` takes 10 µs and the candidates `us`."""
    names = [str(config) for config in CONFIGS]
    times = dict(zip(names, us, strict=False))
    found = {
        "case": "gemm",
        "commit": "c",
        "device": "NVIDIA H200",
        "variant": "cp_async",
        "reference": {x: getattr(REFERENCE, x) for x in REFERENCE.__dataclass_fields__},
        "verified": {"ours": True, **dict.fromkeys(times, True)},
        "us": {"ours": [10.0] * 3, **{name: [x] * 3 for name, x in times.items()}},
        "candidates": [
            {"name": name, "file": "", "config": asdict(config)}
            for name, config in zip(names, CONFIGS, strict=True)
        ],
    }
    return found | changes


def test_only_a_clearly_faster_candidate_wins() -> None:
    assert tune.winner(result(9.0, 8.0, 9.5)) == str(CONFIGS[1])
    assert tune.winner(result(9.95, 11.0)) is None
    assert tune.winner(result()) is None
    wrong = result(9.0, 8.0)
    wrong["verified"][str(CONFIGS[1])] = False
    assert tune.winner(wrong) == str(CONFIGS[0])


def test_the_summary_of_a_run_names_the_best_candidate() -> None:
    assert summary(result(9.0, 8.0)) == f"correct gemm  1.25 times as fast by {CONFIGS[1]}"


def test_the_winner_enters_the_tuned_table(tmp_path: Path) -> None:
    file, tables = tmp_path / "tune.jsonl", tmp_path / "tuned"
    file.write_text(json.dumps(result(9.0, 8.0)) + "\n")
    done = bench("tune", "write", file, "--tables", tables)
    assert done.returncode == 0, done.stderr
    best = with_current_names(str(CONFIGS[1]))
    assert done.stdout == f"gemm: {best}; 1.25 times as fast as the library's choice\n"
    (entry,) = json.loads(tuned_table.file_of("NVIDIA H200", tables).read_text())
    assert (entry["m"], entry["n"], entry["k"], entry["b"]) == (512, 256, 128, "col")
    assert (entry["tile"], entry["warps"], entry["stages"]) == ([128, 64, 64], [2, 2], 3)


def test_results_without_a_search_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text(json.dumps({"case": "a", "commit": "c", "verified": {}}) + "\n")
    done = bench("tune", "write", file)
    assert done.returncode == 2
    assert "a: this is not the result of a config search" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shapes", "64x64"], "'64x64' is not a shape MxNxK"),
        (["--shapes", "0"], "'0' is not a shape MxNxK"),
        (["--shapes", "64", "--transposes", "NX"], "'NX' is not one of NN, NT, TN, TT"),
    ],
)
def test_invalid_searches_are_errors(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = bench("tune", "build", tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


class FakeGraph:
    def destroy(self) -> None:
        pass


class FakeComparison:
    """Candidates take as many microseconds as their name says; odd ones are wrong."""

    def __init__(self) -> None:
        self.graphs: dict[str, Any] = {
            "ours": FakeGraph(),
            "peer": FakeGraph(),
            "wrong": FakeGraph(),
        }
        self.verdicts: dict[str, Any] = {}
        self.absent: dict[str, str] = {}
        self.rounds = 5
        self.timed: list[tuple[list[str], int]] = []
        for name in self.graphs:
            self.add(name, None)

    def add(self, name: str, call: Any) -> None:
        self.graphs[name] = FakeGraph()
        is_correct = name != "wrong" and not (name.isdecimal() and int(name) % 2)
        self.verdicts[name] = type("Verdict", (), {"is_correct": is_correct})

    def kernel_times(self, names: list[str], rounds: int) -> dict[str, list[float]]:
        self.timed.append((list(names), rounds))
        return {x: [float(x) if x.isdecimal() else 50.0] * rounds for x in names}


def test_the_fastest_correct_candidates_are_timed_in_all_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def bind(comparison: Any, file: Path) -> None:
        if file.name == "98":
            raise LegoError("too much shared memory")

    monkeypatch.setattr(search_module, "_bind", bind)
    comparison = FakeComparison()
    names = [str(n) for n in range(99, 70, -1)]
    candidates = [{"name": x, "file": x} for x in names]
    add_candidates(comparison, Path(), candidates)
    found = time_candidates(comparison, candidates)
    even = [x for x in names if int(x) % 2 == 0 and x != "98"]
    assert comparison.absent == {"98": "too much shared memory"}
    (screened, few), (finalists, rounds) = comparison.timed
    assert screened == ["ours", *even]
    assert finalists == ["ours", "peer", *sorted(even)[:FINALISTS]]
    assert few < rounds == 5
    assert found["screened"]["72"] == 72
    assert found["us"]["72"] == [72.0] * 5
    assert "99" not in comparison.graphs
