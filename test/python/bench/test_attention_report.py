"""The table of attention: ratios of what is timed, and the errors of hostile inputs apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.attention.report import report


def row(case: str, figure: str, **more: Any) -> str:
    common = {"commit": "c", "wrong": {}, "absent": {}, "work": 1e9, "unit": "TFLOP/s"}
    return json.dumps({"case": case, "figure": figure, **common, **more})


def test_errors_are_no_times(tmp_path: Path) -> None:
    lines = [
        row(
            "full",
            "forward",
            us={"ours": 10.0, "cuDNN": 12.0, "ours, else": 8.0},
            errors={"ours": 4e-3, "ours, else": 3e-3},
        ),
        row(
            "large", "errors", us={"ours": 9.0, "cuDNN": 1.0}, errors={"cuDNN": 1e-3, "ours": 2e-3}
        ),
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    text = report(tmp_path / "a.jsonl")
    assert "ours, else 8.0" in text  # shown, but no other's
    assert "forward: 1 cases, mean 1.200, least 1.200" in text
    assert "| full | 4.00e-03 | 3.00e-03 |" in text
    assert "| case | ours | cuDNN |" in text
    assert "| large | 2.00e-03 | 1.00e-03 |" in text
    assert "| large | 9.0" not in text
