"""What `.ci/run` installs besides packages of Python: a stock mlir-opt, where it may."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "mlir-opt"
TOOLS = ("env", "bash")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with nothing but what starts the script."""
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    return tmp_path


def put(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def run(programs: Path) -> str:
    """What the script says; it never fails."""
    done = subprocess.run(
        [SCRIPT], env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_root_installs_the_package(programs: Path) -> None:
    put(programs, "id", "echo 0")
    put(programs, "apt-get", f"echo \"$@\" >> '{programs}/log'")
    assert "installed now" in run(programs)
    update, install = (programs / "log").read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith(" install -y --no-install-recommends mlir-22-tools")


@pytest.mark.parametrize("failing", ["update", "install"])
def test_without_a_network(programs: Path, failing: str) -> None:
    put(programs, "id", "echo 0")
    put(programs, "apt-get", f'case "$*" in *{failing}*) exit 100;; esac')
    said = run(programs)
    assert ("are skipped" in said) == (failing == "install")


def test_others_than_root_go_on_without_it(programs: Path) -> None:
    put(programs, "id", "echo 1000")
    put(programs, "apt-get", f"touch '{programs}/log'")
    assert "only root may install mlir-22-tools; the tests" in run(programs)
    assert not (programs / "log").exists()


def test_systems_without_apt_go_on_without_it(programs: Path) -> None:
    put(programs, "id", "echo 0")
    assert "no apt-get" in run(programs)


def test_one_that_is_there_is_kept(programs: Path) -> None:
    put(programs, "mlir-opt-21", "exit 1")
    assert run(programs) == f"mlir-opt: {programs}/mlir-opt-21\n"


def test_ci_asks_for_it_before_the_tests() -> None:
    steps = (SCRIPT.parent / "run").read_text().splitlines()
    assert steps.index("step .ci/mlir-opt") < steps.index("step pytest")
