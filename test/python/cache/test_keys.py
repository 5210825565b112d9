"""What a key depends on: every field, every build, and nothing that differs by process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from lego_mlir.cache import disabled, folder
from lego_mlir.cache.builds import builds
from lego_mlir.cache.keys import KernelKey, Key, ModuleKey
from lego_mlir.limits import Limits

COMMON: dict[str, Any] = {
    "builds": ("1", "2"),
    "limits": Limits(),
    "target": "sm_90a",
    "check": False,
    "strict": False,
}
MODULE = ModuleKey(
    **COMMON,
    product="bundle",
    is_assembled=True,
    file="k.mlir",
    text="module {}",
    sources=(),
    sizes=(("M", 1),),
    schedule=None,
    parameters=(),
    pipelines=(),
    exact_math=False,
)
KERNEL = KernelKey(**COMMON, is_assembled=True, kernel=("function", 1), python="3.11")


def other(value: Any) -> Any:
    """Return a value of a field that is not the one given."""
    match value:
        case bool():
            return not value
        case Limits():
            return Limits(ctas=7)
        case str():
            return "other"
    return ("other", "script")


@pytest.mark.parametrize("key", [MODULE, KERNEL], ids=["module", "kernel"])
def test_every_field_counts(key: Key) -> None:
    digests = {key.digest}
    for field in fields(key):
        value = getattr(key, field.name)
        digests.add(replace(key, **{field.name: other(value)}).digest)
    assert len(digests) == len(fields(key)) + 1
    assert all(len(digest) == 64 for digest in digests)


def test_fields_do_not_run_into_one_another() -> None:
    one = replace(MODULE, file="a", text="bc")
    assert one.digest != replace(MODULE, file="ab", text="c").digest
    assert replace(MODULE, sizes=(("M", 11),)).digest != replace(MODULE, sizes=(("M", 1), ("1", 1)))


def test_a_key_has_plain_values_only() -> None:
    with pytest.raises(AssertionError):
        _ = replace(KERNEL, kernel=object()).digest


def test_digests_are_those_of_every_process() -> None:
    code = "from cache.test_keys import *; print(MODULE.digest, KERNEL.digest, builds())"
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=Path(__file__).parent,  # what is imported is the installed package
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"{MODULE.digest} {KERNEL.digest} {builds()}"


def test_an_edited_file_of_the_compiler_is_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dialects", "transforms", "pipelines"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(f"lego_mlir.data.{name}", lambda name=name: tmp_path / name)
    found = set()
    for content, seconds in (("a", 1), ("ab", 1), ("ab", 2)):
        file = tmp_path / "transforms" / "x.mlir"
        file.write_text(content)
        os.utime(file, (seconds, seconds))
        found.add(builds.__wrapped__())
    assert len(found) == 3
    (tmp_path / "pipelines" / "__pycache__").mkdir()
    (tmp_path / "pipelines" / "__pycache__" / "x.pyc").write_text("")
    assert builds.__wrapped__() in found


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEGO_MLIR_CACHE", str(tmp_path))
    assert folder() == tmp_path
    with disabled():
        assert folder() is None
    for off in ("", "0"):
        monkeypatch.setenv("LEGO_MLIR_CACHE", off)
        assert folder() is None
    monkeypatch.delenv("LEGO_MLIR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "lego-mlir"
