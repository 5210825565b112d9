"""`.ci/mlir-opt` and `.ci/torch` install what tests want if they may, and never fail."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "mlir-opt"
TOOLS = ("env", "bash")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder for PATH with only the programs that start the script."""
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    return tmp_path


def put(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def run(programs: Path, script: Path = SCRIPT) -> str:
    """Run a script, which never fails; return what it prints."""
    done = subprocess.run(
        [script], env={"PATH": str(programs)}, capture_output=True, text=True, check=False
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
def test_without_a_network_it_goes_on(programs: Path, failing: str) -> None:
    put(programs, "id", "echo 0")
    put(programs, "apt-get", f'case "$*" in *{failing}*) exit 100;; esac')
    printed = run(programs)
    assert ("are skipped" in printed) == (failing == "install")


def test_others_than_root_go_on_without_it(programs: Path) -> None:
    put(programs, "id", "echo 1000")
    put(programs, "apt-get", f"touch '{programs}/log'")
    assert "only root may install mlir-22-tools; the tests" in run(programs)
    assert not (programs / "log").exists()


def test_systems_without_apt_go_on_without_it(programs: Path) -> None:
    put(programs, "id", "echo 0")
    assert "no apt-get" in run(programs)


def test_an_mlir_opt_on_the_path_is_kept(programs: Path) -> None:
    put(programs, "mlir-opt-21", "exit 1")
    assert run(programs) == f"mlir-opt: {programs}/mlir-opt-21\n"


def test_ci_installs_it_before_the_tests() -> None:
    steps = (SCRIPT.parent / "run").read_text().splitlines()
    assert steps.index("step .ci/mlir-opt") < steps.index("step poe test")


TORCH = SCRIPT.with_name("torch")


@pytest.mark.parametrize("is_served", [True, False])
def test_pytorch_is_the_build_for_cpus_or_none(programs: Path, is_served: bool) -> None:
    put(programs, "python", "exit 1")
    put(programs, "pip", f"echo \"$@\" >> '{programs}/log'; exit {0 if is_served else 1}")
    printed = run(programs, TORCH)
    assert ("installed now" in printed) == is_served
    assert ("are skipped" in printed) == (not is_served)
    (command,) = (programs / "log").read_text().splitlines()
    assert command.endswith("+cpu"), "PyPI serves no version with a local label"


def test_a_pytorch_that_is_there_is_kept(programs: Path) -> None:
    put(programs, "python", "exit 0")
    assert run(programs, TORCH) == "torch: installed already\n"


def test_ci_installs_pytorch_before_the_tests() -> None:
    steps = (SCRIPT.parent / "run").read_text().splitlines()
    install = steps.index("step pip install --quiet '.[test]'")
    assert install < steps.index("step .ci/torch") < steps.index("step poe test")
