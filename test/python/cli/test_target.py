"""What --run compiles for: the GPU that it found, unless --target names another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lego_mlir import Artifact, cli
from lego_mlir.kernels import transpose

EXAMPLE = (Path(__file__).parents[3] / "docs" / "examples" / "transpose.mlir").read_text()


class Ampere:
    """A device that transposes by itself and remembers what it was given."""

    name, reason, target = "cuda", "", "sm_80"

    def __init__(self) -> None:
        self.ran: list[Artifact] = []

    def describe(self) -> str:
        return self.name

    def run(self, artifact: Artifact, values: Sequence[Any], stream: Any = None) -> tuple[()]:
        self.ran.append(artifact)
        np.copyto(values[1], values[0].T)
        return ()


@pytest.fixture
def ampere(monkeypatch: pytest.MonkeyPatch) -> Ampere:
    device = Ampere()
    for room in ("runtime", "runtime.device"):
        monkeypatch.setattr(f"lego_mlir.{room}.select", lambda name, **_: device)
    return device


@pytest.mark.parametrize(("options", "target"), [([], "sm_80"), (["--target=sm_89"], "sm_89")])
def test_legoc_compiles_for_the_gpu_it_runs_on(
    ampere: Ampere, tmp_path: Path, options: list[str], target: str
) -> None:
    small = tmp_path / "small.mlir"
    small.write_text(EXAMPLE.replace("1024", "64"))
    assert cli.main([str(small), "--run", *options]) == 0
    (artifact,) = ampere.ran
    assert artifact.target == target
    assert f".target {target}" in artifact.ptx
    assert artifact.cubin is not None


def test_a_kernel_compiles_for_the_gpu_it_runs_on(ampere: Ampere) -> None:
    comparison = transpose(64, 64).run().comparison
    assert comparison is not None
    assert comparison.equal
    assert ampere.ran[0].target == "sm_80"
