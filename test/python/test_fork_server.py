"""What lit's commands see of the server that runs them, in a process of their own: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fork_server
import psutil
import pytest

MODULE = "func.func @f(%a: index) -> index { return %a : index }"


@pytest.fixture(scope="module")
def server() -> str:
    return fork_server.start()


@pytest.fixture
def client(server: str) -> Callable[..., subprocess.Popen[str]]:
    def start(*command: str, **options: Any) -> subprocess.Popen[str]:
        environment = os.environ | {fork_server.ADDRESS: server} | options.pop("env", {})
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        words = [sys.executable, "-IS", str(fork_server.CLIENT), *command]
        return subprocess.Popen(words, **streams, text=True, env=environment, **options)

    return start


def program_of_legoc() -> psutil.Process:
    """The one process that the server has forked, once it is there."""
    for _ in range(1000):
        servers = [p for p in psutil.Process().children() if "fork_server" in str(p.cmdline())]
        if programs := [q for p in servers for q in p.children()]:
            return programs[0]
        time.sleep(0.01)
    raise AssertionError("the server has forked no program")


def test_streams_and_arguments(client: Callable[..., subprocess.Popen[str]]) -> None:
    out, err = (program := client("legoc", "-")).communicate(MODULE)
    assert (program.returncode, err) == (0, "")
    assert "@f(%arg0: index)" in out
    checks = client("FileCheck", "--check-prefix=", "a b", "")
    assert "a b" in checks.communicate("")[1]
    assert checks.returncode != 0


def test_folder_and_environment(
    client: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    (tmp_path / "ä b.mlir").write_text("func.func @f(")
    program = client("legoc", "ä b.mlir", cwd=tmp_path)
    assert program.communicate()[1].startswith("ä b.mlir:1:13: error: ")
    assert program.returncode == 1
    folder = {"LEGO_MLIR_CACHE": str(tmp_path / "cache\n=")}
    out, _ = client("legoc", "--cache-info", env=folder).communicate()
    assert str(tmp_path) in out


def test_a_program_that_a_signal_ends(client: Callable[..., subprocess.Popen[str]]) -> None:
    program = client("legoc", "-")
    program_of_legoc().send_signal(signal.SIGSEGV)
    program.communicate()
    assert program.returncode == -signal.SIGSEGV


def test_a_program_without_its_client_is_killed(
    client: Callable[..., subprocess.Popen[str]], server: str
) -> None:
    waiting = client("legoc", "-")
    program = program_of_legoc()
    before = fork_server.cpu_seconds(server)
    waiting.kill()
    assert waiting.wait() == -signal.SIGKILL
    program.wait(60)
    assert waiting.stdout is not None
    waiting.stdout.read()  # ends, because the program held its other end
    for _ in range(1000):  # the server adds its time when it has seen the end, which may be later
        if fork_server.cpu_seconds(server) > before:
            return
        time.sleep(0.01)
    raise AssertionError("the server has not counted the program's time")
