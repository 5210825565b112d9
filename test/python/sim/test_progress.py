"""A launch that takes long says so, and Ctrl-C ends it with one line."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.sim import progress
from lego_mlir.sim.progress import Progress

LOOP = """.version 8.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 x)
{
    .reg .pred %p; .reg .b32 %i;
    mov.u32 %i, 0;
AGAIN:
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, COUNT; @%p bra AGAIN;
    ret;
}
"""


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(progress, "monotonic", found)
    return found


def test_a_short_launch_says_nothing(clock):
    said = []
    short = Progress("k", 20, said.append)
    for _ in range(20):
        clock.now += 0.5
        short.check()
        short.done += 1
    assert said == []


def test_a_long_launch_gives_an_estimate_at_once(clock):
    said = []
    long = Progress("gemm", 100, said.append)
    clock.now += 1
    long.check()
    assert said == []
    clock.now += 1.5
    long.check()
    assert said == [
        "the simulation of gemm takes more than 4 min: 0 of 100 waves of CTAs are done after 2 s; "
        "Ctrl-C ends it"
    ]
    clock.now += 1
    long.check()
    assert len(said) == 1
    long.done = 5
    clock.now += 60
    long.check()
    assert said[1].startswith("the simulation of gemm takes about 21 min: 5 of 100 waves")


def test_one_long_wave(clock):
    said = []
    one = Progress("k", 1, said.append)
    for _ in range(1000):
        clock.now += 0.1
        one.check()
    assert 1 <= len(said) <= 3
    assert "more than 3" in said[0]


def test_a_launch_reports(clock, caplog, monkeypatch):
    """Each look at the clock takes a second here."""
    monkeypatch.setattr(
        Clock, "__call__", lambda self: setattr(self, "now", self.now + 1) or self.now
    )
    sim.launch(LOOP.replace("COUNT", "100"), "spin", (64, 1, 1), (1024, 1, 1), [np.zeros(1)])
    assert "the simulation of spin takes" in caplog.text


def test_ctrl_c_ends_legoc_with_one_line(tmp_path):
    (tmp_path / "spin.ptx").write_text(LOOP.replace("COUNT", "1000000000"))
    command = [sys.executable, "-m", "lego_mlir.cli", "spin.ptx", "--run", "--block", "32", "f32:1"]
    command += ["--limit", "wave_instructions=100000000000"]
    running = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    time.sleep(2)
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert out == ""
    assert err == (
        "legoc: interrupted: the simulation of spin ended early: 0 of 1 waves of CTAs are done\n"
    )
