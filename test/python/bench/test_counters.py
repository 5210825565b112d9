"""Hardware counters: reading Nsight Compute's pages, and their table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_command import bench

from bench.gemm.references import GemmReference
from bench.profile.counters import METRICS, counters, samples
from bench.report.command import write_report
from lego_mlir.diagnostics import LegoError

STATES = ("stall_barrier", "stall_long_sb", "stall_math", "stall_barrier (Not Issued)")


def page(*kernels: list[tuple[str, int, dict[str, int]]]) -> str:
    """Return the page `source` with the instructions of each kernel, their samples and states.

    Instructions are 16 bytes apart, from 0x7f0000000000 on.
    """
    lines = []
    for instructions in kernels:
        lines.append('"Kernel Name","gemm",')
        lines.append(",".join(f'"{x}"' for x in ("Address", "Source", "# Samples", *STATES)))
        for position, (text, count, states) in enumerate(instructions):
            cells = [hex(0x7F0000000000 + 16 * position), text, count]
            cells += [states.get(name.removeprefix("stall_"), 0) for name in STATES]
            lines.append(",".join(f'"{x}"' for x in cells))
    return "\n".join(lines) + "\n"


LOOP = [
    ("      LDC R1, c[0x0][0x28]", 9, {"long_sb": 9}),
    ("      HGMMA.64x256x16.F32 R24, gdesc[UR16].tnspB, R24", 5, {"math": 3, "long_sb": 1}),
    ("      WARPGROUP.DEPBAR.LE gsb0, 0x1", 40, {"barrier": 38}),
    ("@!P1  BRA 0x7f0000000060", 7, {"barrier": 7}),
    ("@P0   BRA 0x7f0000000010", 0, {}),
    ("      EXIT ", 3, {}),
    ("      SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR4], R3", 2, {"long_sb": 2}),
    ("      BRA 0x7f0000000040", 0, {}),
]
"""A loop that waits for a barrier inside its body and, out of line, for a tile."""


def test_stalls_of_the_main_loop_are_counted_by_state() -> None:
    (found,) = samples(page(LOOP))
    # DEPBAR's 40 samples, and HGMMA's one without a column, are waits for wgmma.
    assert found == {"barrier": 7, "long_sb": 3, "math": 3, "gmma": 41}


def test_samples_are_separated_by_kernel() -> None:
    other = [("      HMMA.16816.F32 R4, R8, R12, R4", 4, {"math": 4})]
    other += [("@P0   BRA 0x7f0000000000", 1, {})]
    first, second = samples(page(LOOP, other))
    assert first["gmma"] == 41
    assert second == {"barrier": 0, "long_sb": 0, "math": 4, "gmma": 1}


def test_an_unknown_line_of_the_listing_is_an_error() -> None:
    with pytest.raises(LegoError, match="'12' is not an instruction"):
        samples(page([("12", 0, {})]))


def test_counters_are_found_by_name() -> None:
    head = ["ID", *reversed(METRICS), "Kernel Name"]
    rows = [head, ["", *["byte"] * len(METRICS), ""], ["0", *["1,024.5"] * len(METRICS), "gemm"]]
    (found,) = counters("\n".join(",".join(f'"{x}"' for x in row) for row in rows))
    assert found == dict.fromkeys(METRICS, 1024.5)


def profile_result() -> dict[str, Any]:
    """Return the result of a GEMM of 2 GFLOP in 1000 clocks of 100 SMs, at 2 GHz."""
    reference = GemmReference(1000, 1000, 1000, "f16", "f16")
    values = (500.0, 1000.0, 90.0, 80.0, 2e6, 12.0, 3e8, 70.0, 4e7, 2e7, 60.0, 1e5, 250.0, 168, 100)
    return {
        "case": "gemm_f16_1000_nn",
        "commit": "c",
        "device": "d",
        "command": "python -m bench profile DIR",
        "reference": {x: getattr(reference, x) for x in reference.__dataclass_fields__},
        "verified": {},
        "counters": {"ours": dict(zip(METRICS, values, strict=True))},
        "samples": {"ours": {"gmma": 60, "math": 30, "long_sb": 6, "wait": 3, "drain": 1}},
    }


def test_the_table_converts_units(tmp_path: Path) -> None:
    file = tmp_path / "profile.jsonl"
    file.write_text(json.dumps(profile_result()) + "\n")
    text = write_report(file)
    assert "Commit c, d. Command: `python -m bench profile DIR`." in text
    row = text.splitlines()[-1].strip("| ").split(" | ")
    assert row[:6] == ["gemm_f16_1000_nn", "ours", "0.5", "2.000", "20000", "90.0 %"]
    assert row[6:13] == ["80.0 %", "2.0 M", "12 %", "168", "300", "70 %", "40"]
    assert row[13:16] == ["20", "60 %", "0.2"]
    assert row[16] == "wgmma 60%, tensor pipe busy 30%, long scoreboard 6%, fixed latency 3%"


def test_a_missing_profiler_is_an_error(tmp_path: Path) -> None:
    assert bench("build", tmp_path, "--only", "i8_96x160").returncode == 0
    done = bench("profile", tmp_path, "-o", tmp_path / "profile.jsonl")
    assert done.returncode == 2
    assert "ncu is not on the PATH" in done.stderr
