"""The package finds its data files, installed or not, from any working directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lego_mlir import data
from lego_mlir.diagnostics import LegoError


@pytest.mark.parametrize("folder", [data.dialects, data.transforms, data.pipelines])
def test_the_folders_of_data_exist(folder) -> None:
    assert folder().is_absolute()
    assert folder().is_dir()


def test_the_dialect_is_in_its_folder() -> None:
    assert (data.dialects() / "lego.irdl.mlir").is_file()


def test_the_folder_does_not_depend_on_the_working_directory(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", "from lego_mlir import data; print(data.dialects())"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(answer.stdout.strip()) == data.dialects()


def test_a_missing_folder_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lego_mlir"
    package.mkdir()
    monkeypatch.setattr(data, "__file__", str(package / "data.py"))
    (tmp_path / "CMakeLists.txt").touch()
    with pytest.raises(LegoError, match=r"the folder of the pipelines is missing: .*pipelines"):
        data.pipelines()
