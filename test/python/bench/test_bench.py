"""The bench without a GPU: bundles are built, what cannot run is no success, ratios are right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from lego_mlir import Artifact

ROOT = Path(__file__).resolve().parents[3]


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_build_and_run_without_a_gpu(tmp_path: Path) -> None:
    built = bench("build", tmp_path, "--only", "f16_96x160")
    assert built.returncode == 0, built.stderr
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (name,) = manifest["cases"]
    assert Artifact.load(tmp_path / f"{name}.lego").cubin is not None

    ran = bench("run", tmp_path, "-o", tmp_path / "results.jsonl")
    assert ran.returncode == 1
    assert "0 of 1 cases are right" in ran.stdout
    (result,) = (json.loads(x) for x in (tmp_path / "results.jsonl").read_text().splitlines())
    assert result["correct"] is False
    assert "us" not in result


def test_report_has_no_figure_for_what_is_wrong(tmp_path: Path) -> None:
    right = {
        "case": "good",
        "commit": "c",
        "device": "d",
        "correct": True,
        "bytes": 4_000_000,
        "us": [2.0, 1.0, 4.0],
        "peers": {"copy": [1.0, 1.0, 1.0]},
    }
    wrong = {"case": "bad", "commit": "c", "device": "d", "correct": False, "error": "e"}
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in (right, wrong)))
    said = bench("report", file).stdout
    assert "| good | yes | 2.00 | 2.00 | 0.50 |" in said
    assert "| bad | **no** |  |  |  |" in said
