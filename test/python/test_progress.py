"""Bars appear on terminals, after two seconds, and nowhere else."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import Any

import pytest

from lego_mlir import progress
from lego_mlir.progress import Bar, track

PROGRAM = """
import sys
from lego_mlir import progress
progress.DELAY = DELAY
for step in progress.track("counting", range(200)):
    print(step)
"""


class Drawn:
    """A display that records what it shows."""

    task_ids = (0,)

    def __init__(self) -> None:
        self.shown: list[int] = []
        self.is_stopped = False

    def update(self, task: int, *, completed: int) -> None:
        self.shown.append(completed)

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [50.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def displays(monkeypatch: pytest.MonkeyPatch) -> list[Drawn]:
    """The displays that were made, as on a terminal."""
    made: list[Drawn] = []
    monkeypatch.setattr(progress, "_is_terminal", lambda: True)

    def draw(bar: Bar) -> Any:
        made.append(Drawn())
        return made[-1]

    monkeypatch.setattr(progress, "_drawn", draw)
    return made


def test_short_work_has_no_bar(clock: list[float], displays: list[Drawn]) -> None:
    for _ in track("work", range(10)):
        clock[0] += 0.19
    assert displays == []


def test_long_work_has_one_until_it_ends(clock: list[float], displays: list[Drawn]) -> None:
    for _ in track("work", range(10)):
        clock[0] += 1
    (display,) = displays
    assert display.shown == list(range(2, 11))
    assert display.is_stopped


def test_it_vanishes_with_an_error(clock: list[float], displays: list[Drawn]) -> None:
    def fail() -> None:
        for step in track("work", range(10)):
            clock[0] += 1
            if step == 5:
                raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011, ours
        fail()
    assert [display.is_stopped for display in displays] == [True]


def test_of_nested_work_the_outer_one_has_a_bar(clock: list[float], displays: list[Drawn]) -> None:
    with Bar("outer", 3) as outer:
        for _ in range(3):
            clock[0] += 3
            outer.advance()
            with Bar("inner", 1) as inner:
                clock[0] += 3
                inner.advance()
                assert not inner.is_shown
        assert outer.is_shown
    assert len(displays) == 1
    with Bar("next", 1) as following:
        clock[0] += 3
        following.check()
        assert following.is_shown


@pytest.mark.parametrize("delay", [0, 1000])
def test_on_a_terminal(delay: int) -> None:
    pytest.importorskip("rich")
    pty = pytest.importorskip("pty")
    terminal, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    program = PROGRAM.replace("DELAY = DELAY", f"DELAY = {delay}")
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=end, env=environment
    ) as child:
        os.close(end)
        shown = ""
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while found := os.read(terminal, 1 << 16):
                shown += found.decode(errors="replace")
        out, _ = child.communicate(timeout=60)
    os.close(terminal)
    assert out.decode().split() == [str(n) for n in range(200)], "the output has no bar"
    assert ("counting" in shown) == (delay == 0)


def test_captured_output_has_none() -> None:
    program = PROGRAM.replace("DELAY = DELAY", "DELAY = 0")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stderr == b""
