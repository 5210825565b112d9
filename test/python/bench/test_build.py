"""`bench build` makes bundles without a GPU; their manifest holds all that `run` needs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench_command import bench

from bench import build as build_module
from bench.build import CASES, FORMAT, build, read_manifest, select
from bench.case import Case
from bench.peers import PEERS
from bench.permute.cases import transpose_case
from bench.permute.reference import PermuteReference
from lego_mlir import Artifact
from lego_mlir.compiler import driver
from lego_mlir.compiler.backend import codegen
from lego_mlir.compiler.backend.assembly import Cubin
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target


def test_a_bundle_describes_its_cases(tmp_path: Path) -> None:
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
    assert PermuteReference.from_json(entry["reference"]) == PermuteReference((1000, 1001))
    assert "torch.compile" in entry["peers"]


def test_cases_that_do_not_compile_are_reported_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(target: str) -> None:
        raise LegoError("no such kernel")

    bad = Case("bad", fails, "f32", PermuteReference((32, 32)))
    monkeypatch.setattr(build_module, "CASES", (bad, transpose_case(64, 32)))
    assert build(tmp_path, [], "sm_90a") == 1
    assert "error: no such kernel" in capsys.readouterr().out
    assert list(read_manifest(tmp_path)["cases"]) == ["transpose_f32_64x32"]


def test_spills_fail_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def assemble(ptx: str, target: Target) -> Cubin:
        made = codegen.assemble(ptx, target)
        kernel = replace(made.resources[0], spill_store_bytes=16)
        return replace(made, resources=(kernel,))

    monkeypatch.setattr(driver, "codegen", SimpleNamespace(assemble=assemble))
    monkeypatch.setattr(build_module, "CASES", (transpose_case(64, 32),))
    assert build(tmp_path, [], "sm_90a") == 1
    assert "error: kernel 'transpose_kernel' spills 16 bytes" in capsys.readouterr().out
    assert read_manifest(tmp_path)["cases"] == {}


def test_case_names_are_unique_and_peers_exist() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {peer for case in CASES for peer in case.peers} <= PEERS.keys()


def test_words_select_cases() -> None:
    assert select(["ab", "bc", "cd"], []) == ["ab", "bc", "cd"]
    assert select(["ab", "bc", "cd"], ["a", "d"]) == ["ab", "cd"]
    with pytest.raises(LegoError, match="no case has 'x' or 'y' in its name"):
        select(["ab"], ["x", "y"])


def test_a_folder_that_is_not_a_bundle_is_an_error(tmp_path: Path) -> None:
    done = bench("run", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: '{tmp_path}' is not a bundle")
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 0}))
    assert f"has format 0, this bench reads {FORMAT}" in bench("run", tmp_path).stderr
