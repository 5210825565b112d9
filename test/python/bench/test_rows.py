"""The kernels on rows of the bench: cases, errors, counts, turns, and the table of results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.measure.traffic import excess, traffic
from bench.rows.build import build
from bench.rows.cases import ARGUMENTS, CASES, RowsCase
from bench.rows.manifest import MANIFEST
from bench.rows.report import report
from lego_mlir import kernels
from lego_mlir.kernels.rows.config import RowsConfig

_SMALL = RowsCase("rmsnorm_backward", "bf16", 70, 256)

_TURNS = """
import sys, time
from pathlib import Path
from bench.measure.turns import Turns
name, alone, log = sys.argv[1], sys.argv[2] == "alone", Path(sys.argv[3])
turn = Turns(log.with_suffix(".lock")).turn(alone)
with turn:
    with log.open("a") as lines: lines.write(f"{name} begins\\n")
    time.sleep(0.3)
    with log.open("a") as lines: lines.write(f"{name} ends\\n")
"""


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_process_that_measures_is_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", _TURNS]
    kinds = {"a": "alone", "b": "alone", "c": "beside", "d": "beside"}
    started = [subprocess.Popen([*command, name, kinds[name], str(log)]) for name in kinds]
    assert [process.wait(60) for process in started] == [0] * 4
    running: set[str] = set()
    for line in log.read_text().splitlines():
        name, what = line.split()
        if what == "ends":
            running.remove(name)
            continue
        running.add(name)
        assert len(running) == 1 or all(kinds[n] == "beside" for n in running)


@pytest.mark.parametrize("count", [False, True])
def test_a_build_says_what_its_kernels_touch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, count: bool
) -> None:
    """Of persistent CTAs a smaller launch is counted, which divides rows in the same way."""
    case = RowsCase("rmsnorm", "bf16", 4096, 65536)
    monkeypatch.setattr("bench.rows.build.CASES", (case,))
    assert "persistent" in str(case.make().explain())
    assert build(tmp_path, [], "sm_90a", sweep=False, count=count) == 0
    made = json.loads((tmp_path / MANIFEST).read_text())["cases"][case.name]
    assert ("traffic" in made) is count
    if count:
        assert excess(made["traffic"], "sectors") == "1.00"


def test_counts_of_a_sample_of_ctas_that_share_a_workspace() -> None:
    """The sums of CTAs that did not run are missing, which is no error of the kernel."""
    found = traffic(_SMALL.make(RowsConfig(1, 2, ctas=20)).compile("sm_90a"))
    assert found["sectors"] == found["least_sectors"] > 0


def test_counts_of_accesses_off_sectors() -> None:
    found = traffic(kernels.permute((33, 65), (1, 0), "i8").compile("sm_90a"))
    assert found["sectors"] > found["least_sectors"]
    assert excess({}, "sectors") == ""


def test_the_table_of_results(tmp_path: Path) -> None:
    counted = {"sectors": 12, "least_sectors": 10, "wavefronts": 0, "least_wavefronts": 0}
    line = {
        "case": "softmax_bf16_2x8", "device": "a GPU", "bytes": 64, "wrong": {}, "absent": {},
        "us": {"ours": 2.0, "copy kernel": 1.5, "quack": 3.0},
        "rounds": {"ours": [2.0], "copy kernel": [1.5], "quack": [3.0]},
        "units": {"y": 0.5}, "errors": {}, "traffic": counted, "how": "rows", "commit": "0",
    }  # fmt: skip
    wide = line | {"case": "softmax_f32_2x8", "units": {}, "errors": {"ours": 1e-7, "torch": 2e-7}}
    lines = [line, wide, {"case": "rmsnorm_f32_2x8", "error": "memory", "commit": "0"}]
    results = tmp_path / "rows.jsonl"
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = [row for row in report(results).splitlines() if row.startswith("|")]
    assert len({row.count("|") for row in table}) == 1
    assert "| quack 3.0 | 1.50 | 0.75 | 1.20 |  | 0.50 | rows |" in table[2]
    assert "| 1e-07 / 2e-07 |" in table[3]


def test_errors_in_units_of_the_last_place() -> None:
    """Of results that round to nearest they are a half; of one that is off by a unit, more."""
    torch = pytest.importorskip("torch")
    from bench.rows.accuracy import error, units_in_last_place

    case = RowsCase("softmax", "bf16", 40, 96)
    x = torch.randn((40, 96), generator=torch.Generator().manual_seed(1)).bfloat16()
    y = x.double().softmax(-1).bfloat16()
    assert units_in_last_place(case, {"x": x, "y": y}, torch)["y"] <= 0.5
    y.view(torch.int16)[3, y[3].argmax()] += 1
    assert 0.5 < units_in_last_place(case, {"x": x, "y": y}, torch)["y"] <= 1.5
    y[7, 7] = float("nan")
    assert error(case, {"x": x, "y": y}, torch) == float("inf")


def test_errors_of_sums_of_columns_are_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from bench.rows import tensors
    from bench.rows.accuracy import error
    from bench.rows.references import reference

    monkeypatch.setattr(tensors, "_PART_BYTES", 8 * 256 * 16)  # 16 rows at a time
    generator = torch.Generator().manual_seed(2)
    found = {
        name: torch.randn(
            {"element": (70, 256), "column": (256,)}.get(role, (70,)), generator=generator
        )
        for name, role in ARGUMENTS[_SMALL.kernel].items()
    }
    inputs = {n: x for n, x in found.items() if n not in _SMALL.outputs}
    found |= reference(_SMALL.kernel, inputs, torch)
    assert error(_SMALL, found, torch) < 1e-12
    found["dw"] = found["dw"] + np.float64(found["dw"].abs().max()) * 1e-3
    assert 1e-4 < error(_SMALL, found, torch) < 2e-3


def test_few_elements_may_be_dropped() -> None:
    torch = pytest.importorskip("torch")
    from bench.rows.accuracy import error

    case = RowsCase("dropout_add", "bf16", 64, 512)
    generator = torch.Generator().manual_seed(3)
    x, residual = (torch.randn((64, 512), generator=generator).bfloat16() for _ in range(2))
    found = {"x": x, "bias": torch.ones(512).bfloat16(), "residual": residual, "seed": 1}
    found["y"] = (x.float() + 1 + residual.float()).bfloat16()
    assert error(case, found, torch) < 1e-2
    found["y"][5, 7] = residual[5, 7]
    assert error(case, found, torch) < 1e-2
    found["y"][:8] = residual[:8]
    assert error(case, found, torch) > 1e-2
