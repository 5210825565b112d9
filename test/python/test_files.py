"""Files are written completely or not at all, several together, with the permissions they had."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_together, write_whole


def full(file: IO[bytes]) -> None:
    """Write some bytes, then fail as on a full disk."""
    file.write(b"half")
    file.flush()
    raise OSError(28, "No space left on device")


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "f"
    for mode in (0o600, 0o755, 0o444):
        file.write_bytes(b"old") if not file.exists() else None
        file.chmod(mode)
        write_whole(file, b"new")
        assert file.stat().st_mode & 0o7777 == mode


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "f", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o666 & ~mask


def test_no_file_is_replaced_before_all_are_written(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"old")
    with pytest.raises(LegoError, match=r"second: error: cannot be written: No space left"):
        write_together({first: b"new", second: full})
    assert first.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [first]


def test_a_process_that_is_killed_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    script = (
        "import os, sys; from lego_mlir.files import write_whole\n"
        "def half(f): f.write(b'half'); f.flush(); os.kill(os.getpid(), 9)\n"
        "write_whole(sys.argv[1], half)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == b"old"


def test_a_link_stays_a_link_and_a_long_name_fits(tmp_path: Path) -> None:
    goal, link = tmp_path / ("ä" * 120), tmp_path / "link"
    link.symlink_to(goal)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert goal.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["folder", "file/inside", "no/folder"])
def test_what_is_no_place_for_a_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(LegoError, match="cannot be written: ") as caught:
        write_whole(tmp_path / name, b"new")
    assert str(tmp_path / name) in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
