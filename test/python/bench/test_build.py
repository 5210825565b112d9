"""`bench build`: bundles are made without a GPU, and their manifest tells all that `run` needs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench_command import bench

from bench import build as building
from bench.build import CASES, build, chosen, read_manifest
from bench.cases import Case, transposed
from bench.movement import Permute
from bench.peers import PEERS
from lego_mlir import Artifact
from lego_mlir.compiler import codegen, driver
from lego_mlir.compiler.assembly import Cubin
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target


def test_a_bundle_tells_all_of_its_cases(tmp_path: Path) -> None:
    built = bench("build", tmp_path, "--only", "i8_1000x1001", "--only", "i8_96x160")
    assert built.returncode == 0, built.stderr
    assert "2 of 2 cases" in built.stdout
    manifest = read_manifest(tmp_path)
    assert manifest["target"] == "sm_90a"
    assert manifest["commit"]
    assert list(manifest["cases"]) == ["transpose_i8_96x160", "transpose_i8_1000x1001"]
    entry = manifest["cases"]["transpose_i8_1000x1001"]
    artifact = Artifact.load(tmp_path / "transpose_i8_1000x1001.lego")
    assert artifact.cubin is not None
    assert entry["kernel"] == artifact.name
    assert entry["dtype"] == artifact.arguments[0].dtype == "i8"
    assert entry["layouts"] == {a.name: a.layout for a in artifact.arguments}
    (launch,) = entry["launch"]
    assert tuple(launch["grid"]) == artifact.launches[0].grid
    assert tuple(launch["block"]) == artifact.launches[0].block
    assert Permute.from_json(entry["reference"]) == Permute((1000, 1001))
    assert "torch.compile" in entry["peers"]


def test_what_does_not_compile_is_told_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(target: str) -> None:
        raise LegoError("no such kernel")

    bad = Case("bad", refused, "f32", Permute((32, 32)))
    monkeypatch.setattr(building, "CASES", (bad, transposed(64, 32)))
    assert build(tmp_path, [], "sm_90a") == 1
    assert "error: no such kernel" in capsys.readouterr().out
    assert list(read_manifest(tmp_path)["cases"]) == ["transpose_f32_64x32"]


def test_slow_machine_code_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def assemble(ptx: str, target: Target) -> Cubin:
        made = codegen.assemble(ptx, target)
        kernel = replace(made.resources[0], spill_store_bytes=16)
        return replace(made, resources=(kernel,))

    monkeypatch.setattr(driver, "codegen", SimpleNamespace(assemble=assemble))
    monkeypatch.setattr(building, "CASES", (transposed(64, 32),))
    assert build(tmp_path, [], "sm_90a") == 1
    assert "error: kernel 'transpose_kernel' spills 16 bytes" in capsys.readouterr().out
    assert read_manifest(tmp_path)["cases"] == {}


def test_cases_are_told_apart_and_their_peers_known() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {peer for case in CASES for peer in case.peers} <= PEERS.keys()


def test_words_choose_cases() -> None:
    assert chosen(["ab", "bc", "cd"], []) == ["ab", "bc", "cd"]
    assert chosen(["ab", "bc", "cd"], ["a", "d"]) == ["ab", "cd"]
    with pytest.raises(LegoError, match="no case has 'x' or 'y' in its name"):
        chosen(["ab"], ["x", "y"])


def test_no_bundle_is_said_so(tmp_path: Path) -> None:
    said = bench("run", tmp_path)
    assert said.returncode == 2
    assert said.stderr.startswith(f"error: '{tmp_path}' is no bundle")
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 0}))
    assert "has format 0, this bench reads 1" in bench("run", tmp_path).stderr
