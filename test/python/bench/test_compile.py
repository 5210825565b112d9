"""`bench compile`: interleaved whole processes, their failures, and variants by stage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench_command import ROOT, bench

from bench.compile.processes import interleaved_times
from bench.compile.variants import STAGES


def test_runs_alternate_and_the_first_round_is_not_counted() -> None:
    order: list[str] = []

    def work() -> None:
        order.append("b")
        subprocess.run([sys.executable, "-c", "sum(range(300000))"], check=True)

    times = interleaved_times({"a": lambda: order.append("a"), "b": work}, 3)
    assert "".join(order) == "baabbaab"
    assert len(times["a"]) == len(times["b"]) == 3
    for wall, processor in times["b"]:
        assert processor > 0
        assert wall > 0.005


def test_an_input_that_does_not_compile_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "bad.mlir"
    file.write_text("module {")
    done = bench("compile", file)
    assert done.returncode == 1
    assert "bad.mlir:1" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_python_without_triton_is_an_error(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho there is no Triton >&2\nexit 3\n")
    python.chmod(0o755)
    example = ROOT / "docs" / "examples" / "transpose.mlir"
    done = bench("compile", example, "--schedule=unroll", f"--triton={python}")
    assert done.returncode == 1
    assert "with_triton.py" in done.stderr
    assert "there is no Triton" in done.stderr


def test_times_of_variants_by_stage_are_written(tmp_path: Path) -> None:
    file = tmp_path / "times.jsonl"
    done = bench("compile", "--variants", "--only=f16_1024", "--rounds=2", "-o", file)
    assert done.returncode == 0, done.stderr
    (line,) = file.read_text().splitlines()
    result = json.loads(line)
    assert result["case"] == "compile_f16_1024"
    assert result["schedule"] == "persistent"
    assert result["cubin_bytes"] > 10000
    times = result["ms"]
    assert list(times) == ["cold", "warm", "again"]
    for state, stages in times.items():
        assert list(stages) == [*(["imports"] if state == "cold" else []), *STAGES]
        assert all(len(ms) == 2 and min(ms) > 0 for ms in stages.values())
        assert f"| f16_1024 | {state} |" in done.stdout
