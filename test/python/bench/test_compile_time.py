"""Compile time: whole processes in turn, from cold, and told when they fail; variants by stage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench_command import ROOT

from bench.compile_time import measured
from bench.compile_variants import STAGES


def test_runs_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []

    def work() -> None:
        order.append("b")
        subprocess.run([sys.executable, "-c", "sum(range(300000))"], check=True)

    times = measured({"a": lambda: order.append("a"), "b": work}, 3)
    assert "".join(order) == "baabbaab"
    assert len(times["a"]) == len(times["b"]) == 3
    for wall, processor in times["b"]:
        assert processor > 0
        assert wall > 0.005


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench.compile_time", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_does_not_compile_is_told(tmp_path: Path) -> None:
    file = tmp_path / "bad.mlir"
    file.write_text("module {")
    said = command(file)
    assert said.returncode == 1
    assert "bad.mlir:1" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_python_without_triton_is_told(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho there is no Triton >&2\nexit 3\n")
    python.chmod(0o755)
    example = ROOT / "docs" / "examples" / "transpose.mlir"
    said = command(example, "--schedule=unroll", f"--triton={python}")
    assert said.returncode == 1
    assert "with_triton.py" in said.stderr
    assert "there is no Triton" in said.stderr


def test_variants_by_stage_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "times.jsonl"
    said = command("--variants", "--only=f16_1024", "--rounds=2", "-o", file)
    assert said.returncode == 0, said.stderr
    (line,) = file.read_text().splitlines()
    result = json.loads(line)
    assert result["case"] == "compile_f16_1024"
    assert result["schedule"] == "wgmma"
    assert result["cubin_bytes"] > 10000
    times = result["ms"]
    assert list(times) == ["cold", "warm", "again"]
    for state, stages in times.items():
        assert list(stages) == [*(["imports"] if state == "cold" else []), *STAGES]
        assert all(len(ms) == 2 and min(ms) > 0 for ms in stages.values())
        assert f"| f16_1024 | {state} |" in said.stdout
