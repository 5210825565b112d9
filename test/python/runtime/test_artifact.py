"""Artifacts on disk."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from lego_mlir.artifact import (
    Artifact,
    Constant,
    KernelLaunch,
    TensorMapParameter,
    TensorMapParameters,
)
from lego_mlir.diagnostics import LegoError


@pytest.mark.parametrize("cubin", [None, b"\x7fELF\0\xff"])
def test_round_trip(copy: Artifact, tmp_path: Path, cubin: bytes | None) -> None:
    original = replace(copy, cubin=cubin)
    original.save(tmp_path / "k.lego")
    assert Artifact.load(tmp_path / "k.lego") == original
    assert [p.name for p in tmp_path.iterdir()] == ["k.lego"]


def test_scalars_and_layouts_survive(transpose: Artifact, tmp_path: Path) -> None:
    transpose.save(tmp_path / "k.lego")
    loaded = Artifact.load(tmp_path / "k.lego")
    assert loaded.launches[0].parameters == transpose.launches[0].parameters
    assert loaded.arguments == transpose.arguments
    assert hash(loaded) == hash(transpose)


def test_missing_folder(copy: Artifact, tmp_path: Path) -> None:
    with pytest.raises(LegoError, match="cannot be written"):
        copy.save(tmp_path / "no" / "k.lego")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_unwritable_folder(copy: Artifact, tmp_path: Path) -> None:
    if os.geteuid() == 0:  # root writes anywhere but here
        with pytest.raises(LegoError, match="cannot be written"):
            copy.save("/proc/k.lego")
        return
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(LegoError, match="cannot be written"):
            copy.save(tmp_path / "k.lego")
    finally:
        tmp_path.chmod(0o700)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(
    copy: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.save(tmp_path / "k.lego")
    before = (tmp_path / "k.lego").read_bytes()

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(LegoError, match="No space left on device"):
        replace(copy, reference=None).save(tmp_path / "k.lego")
    assert (tmp_path / "k.lego").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["k.lego"]


def test_goal_is_a_folder(copy: Artifact, tmp_path: Path) -> None:
    (tmp_path / "k.lego").mkdir()
    with pytest.raises(LegoError, match="cannot be written"):
        copy.save(tmp_path / "k.lego")
    assert [p.name for p in tmp_path.iterdir()] == ["k.lego"]


@pytest.mark.parametrize("content", [b"", b"PK no zip", b"\0" * 100])
def test_what_is_no_artifact(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "k.lego").write_bytes(content)
    with pytest.raises(LegoError, match="no lego-mlir artifact"):
        Artifact.load(tmp_path / "k.lego")


def test_a_missing_bundle_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LegoError, match="cannot be read"):
        Artifact.load(tmp_path / "k.lego")


def test_zip_without_manifest(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "k.lego", "w") as archive:
        archive.writestr("other", "")
    with pytest.raises(LegoError, match="no lego-mlir artifact"):
        Artifact.load(tmp_path / "k.lego")


def test_another_format_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "k.lego", "w") as archive:
        archive.writestr("manifest.json", '{"format": 99}')
        archive.writestr("kernels.ptx", "")
    with pytest.raises(LegoError, match="format 99"):
        Artifact.load(tmp_path / "k.lego")


def test_what_kernels_rely_on_survives(copy: Artifact, tmp_path: Path) -> None:
    aligned = replace(copy, arguments=tuple(replace(a, alignment=16) for a in copy.arguments))
    aligned.save(tmp_path / "a.lego")
    assert Artifact.load(tmp_path / "a.lego") == aligned


@pytest.mark.parametrize("pdl", [False, True])
def test_tensor_maps_and_how_to_launch_survive(copy: Artifact, tmp_path: Path, pdl: bool) -> None:
    tiles = TensorMapParameter(1, (4, 3, 2), (16, 48), (4, 1, 1), 32)
    launch = KernelLaunch(
        "k",
        (2, 1, 1),
        (384, 1, 1),
        (0, tiles, Constant("i32", 3), TensorMapParameters((tiles, tiles))),
        1024,
        pdl=pdl,
    )
    parameters = ".u64 a, .param .align 64 .b8 b[128], .param .u32 c, .param .align 64 .b8 d[256]"
    original = replace(
        copy,
        launches=(*copy.launches, launch),
        ptx=f"{copy.ptx}.visible .entry k(.param {parameters}) {{ ret; }}",
    )
    original.save(tmp_path / "k.lego")
    loaded = Artifact.load(tmp_path / "k.lego")
    assert loaded == original
    assert hash(loaded) == hash(original)
    assert loaded.to_bytes() == original.to_bytes()
