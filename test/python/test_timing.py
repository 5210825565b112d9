"""Stages and their times."""

from __future__ import annotations

import pytest

from lego_mlir import timing
from lego_mlir.mlir.pass_times import captured_report, parse_report
from lego_mlir.timing import Timings, recording, timed

REPORT = """\
===-------------------------------------------------------------------------===
                         ... Execution time report ...
===-------------------------------------------------------------------------===
  Total Execution Time: 0.0110 seconds

  ----Wall Time----  ----Name----
    0.0003 (  2.4%)  GpuKernelOutliningPass
    0.0042 ( 38.2%)  'gpu.module' Pipeline
    0.0001 (  1.0%)    ConvertVectorToSCF
    0.0000 (  0.0%)      (A) DominanceInfo
    0.0057 ( 51.8%)  Rest
    0.0110 (100.0%)  Total
"""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [10.0]
    monkeypatch.setattr(timing, "perf_counter", lambda: now[0])
    return now


def test_a_stage_has_the_time_of_itself_alone(clock: list[float]) -> None:
    ended: list[str] = []
    timings = Timings(lambda stage: ended.append(stage.name))
    with timings.recorded(), timed("outer"):
        clock[0] += 1
        with timed("inner"):
            clock[0] += 2
            with timed("innermost"):
                clock[0] += 4
        clock[0] += 8
    assert [(s.name, s.seconds) for s in timings.stages] == [
        ("innermost", 4.0),
        ("inner", 2.0),
        ("outer", 9.0),
    ]
    assert ended == ["innermost", "inner", "outer"]
    assert timings.table().splitlines()[-1].split() == ["total", "15000.00", "ms", "100.0%"]


def test_a_stage_that_fails_is_recorded(clock: list[float]) -> None:
    timings = Timings()

    @timed("failing")
    def fail() -> None:
        clock[0] += 3
        raise ValueError

    with timings.recorded(), pytest.raises(ValueError):  # noqa: PT011, ours
        fail()
    assert [(s.name, s.seconds) for s in timings.stages] == [("failing", 3.0)]


def test_nothing_is_recorded_unless_asked() -> None:
    timings = Timings()
    with timed("before"):
        assert recording() is None
    with timings.recorded():
        assert recording() is timings
    with timed("after"):
        pass
    assert timings.stages == []


def test_mlirs_report() -> None:
    rows, rest = parse_report("before\n" + REPORT + "    0.5 after\n")
    assert rows == [
        ("GpuKernelOutliningPass", 0.0003),
        ("'gpu.module' Pipeline", 0.0042),
        ("  ConvertVectorToSCF", 0.0001),
    ]
    assert rest == "before\n    0.5 after\n"


def test_other_text_on_stderr_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    import os

    with captured_report() as found:
        os.write(2, b"a warning\n" + REPORT.encode())
    assert len(found) == 3
    assert capfd.readouterr().err == "a warning\n"
