"""`bench run` without a GPU: a case that hangs, crashes or fails affects no other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import monotonic

import pytest
from bench_command import bench

from bench import run as run_module
from bench.build import FORMAT
from bench.report.results import Result
from bench.run import measured_cases, summary

# A worker that does what the names say.
WORKER = """
import json, os, subprocess, sys, time

for line in sys.stdin:
    name = line.strip()
    result = {"case": name, "verified": {"ours": True}, "process": os.getpid()}
    if name == "hang":
        subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"])
    elif name == "crash":
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(3)
    elif name == "babble":
        print("no JSON", flush=True)
        continue
    elif name == "fail":
        result = {"case": name, "verified": {"ours": False}, "error": "broken"}
    print(json.dumps(result), flush=True)
    if "error" in result:
        time.sleep(600)
"""


def measure(*names: str, limit_s: float = 60.0) -> dict[str, Result]:
    found = list(measured_cases([sys.executable, "-c", WORKER], names, limit_s))
    assert [r["case"] for r in found] == list(names)
    return {r["case"]: r for r in found}


def test_one_worker_serves_all_correct_cases() -> None:
    found = measure("a", "b")
    assert found["a"]["process"] == found["b"]["process"]


def test_a_hanging_case_is_killed_with_all_it_started() -> None:
    start = monotonic()
    found = measure("a", "hang", "b", limit_s=3.0)
    assert monotonic() - start < 60
    assert found["hang"]["error"] == "stopped after 3 s"
    assert found["hang"]["verified"] == {"ours": False}
    assert "error" not in found["b"]
    assert found["a"]["process"] != found["b"]["process"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("crash", "status 3: out of luck"), ("babble", "the process ended"), ("fail", "broken")],
)
def test_a_failing_case_affects_no_other(name: str, reason: str) -> None:
    found = measure("a", name, "b")
    assert reason in found[name]["error"]
    assert found[name]["verified"] == {"ours": False}
    assert found["b"]["verified"] == {"ours": True}
    assert found["a"]["process"] != found["b"]["process"]


def test_without_a_gpu_no_case_is_correct(tmp_path: Path) -> None:
    assert bench("build", tmp_path, "--only", "i8_96x160").returncode == 0
    ran = bench("run", tmp_path, "-o", tmp_path / "results.jsonl")
    assert ran.returncode == 1
    assert "0 of 1 cases are correct" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr
    (result,) = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert result["verified"] == {"ours": False}
    assert result["commit"]
    assert "us" not in result


def test_a_run_prints_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = {"format": FORMAT, "commit": "c", "cases": {"a": {}, "b": {}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    times = {"ours": [2.0] * 3, "memcpy": [1.0] * 3, "copy kernel": [0.5] * 3}
    absent = {"torch.compile": "Triton is not installed"}

    def fake_cases(command: object, names: list[str], limit_s: float) -> list[Result]:
        good = dict.fromkeys(times, True) | {"nvcc": False}
        return [{"case": n, "verified": good, "us": times, "absent": absent} for n in names]

    monkeypatch.setattr(run_module, "measured_cases", fake_cases)
    assert run_module.run(tmp_path, [], None) == 0
    output = capsys.readouterr().out
    assert output.count("skipped torch.compile: Triton is not installed") == 1
    assert "[1/2, 0 s left] correct a  WRONG nvcc  0.25 vs copy kernel\n" in output
    assert "[2/2, 0 s left] correct b" in output
    assert "2 of 2 cases are correct" in output


def test_the_summary_of_a_wrong_case_counts_errors() -> None:
    verdict = {"elements": 8, "differing": 3, "outside": 1}
    result = {"case": "a", "verified": {"ours": False}, "verdicts": {"ours": verdict}}
    assert summary(result) == (
        "WRONG a: 3 of 8 elements differ, 1 bytes outside the output are written"
    )
