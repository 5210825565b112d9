"""legoc -v and --timing, on stderr."""

import re
from pathlib import Path

import pytest

from lego_mlir.cli import main

EXAMPLE = str(Path(__file__).parents[3] / "docs/examples/transpose.mlir")


def test_verbose(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([EXAMPLE, "--emit=nvvm", "--no-cache", "-v", "--target=sm_80"]) == 0
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert lines[0].startswith("legoc: lego-mlir ")
    assert "legoc: target sm_80" in lines
    stages = [line.split()[1] for line in lines if line.endswith(" ms")]
    assert stages == ["imports", "parse", "index", "scheduled", "nvvm"]
    assert out.startswith("module"), "the output is the stage alone"


def test_a_table_of_stages_and_passes(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([EXAMPLE, "--emit=nvvm", "--timing"]) == 0
    out, err = capfd.readouterr()
    names = [re.sub(r" +[\d.]+ ms +[\d.]+%$", "", line) for line in err.splitlines()]
    assert names.index("nvvm") < names.index("  GpuKernelOutliningPass") < names.index("total")
    assert "    ConvertGpuOpsToNVVMOps" in names, "a pass inside of another one is indented"
    assert "Execution time report" not in err + out


def test_of_a_command_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([EXAMPLE, "--timing", "--set", "W=1"]) == 1
    err = capfd.readouterr().err
    assert "the module has no size 'W' to set" in err
    assert "index" in err


def test_without_them_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([EXAMPLE]) == 0
    assert capfd.readouterr().err == ""
