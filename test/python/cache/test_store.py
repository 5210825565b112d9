"""Entries in files: damaged, removed, written by several processes, in folders that fail."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import warnings
from hashlib import sha256
from pathlib import Path

import pytest
from cache_stress import stress

from lego_mlir.cache.store import Store
from lego_mlir.diagnostics import LegoWarning
from lego_mlir.limits import Limits

KEY, OTHER = (sha256(name).hexdigest() for name in (b"a", b"b"))


def file_of(store: Store, key: str = KEY) -> Path:
    return store.folder / key[:2] / key[2:]


@pytest.mark.parametrize("payload", [b"", b"\n", b"code", bytes(range(256)) * 4096])
def test_what_is_put_is_got(store: Store, payload: bytes) -> None:
    assert store.get(KEY) is None
    store.put(KEY, payload)
    assert store.get(KEY) == payload
    assert Store(store.folder.parent).get(KEY) == payload
    assert store.get(OTHER) is None


def test_every_damage_is_noticed_and_removed(store: Store) -> None:
    store.put(KEY, b"payload")
    whole = file_of(store).read_bytes()
    damaged = [whole[:n] for n in range(len(whole))] + [whole + b"x"]
    damaged += [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(len(whole))]
    for content in damaged:
        file_of(store).write_bytes(content)
        assert store.get(KEY) is None, content
        assert not file_of(store).exists()


def test_an_entry_under_another_name_is_none(store: Store) -> None:
    store.put(KEY, b"payload")
    file_of(store, OTHER).parent.mkdir(exist_ok=True)
    file_of(store).rename(file_of(store, OTHER))
    assert store.get(OTHER) is None


@pytest.mark.parametrize("kind", ["pipe", "link", "dangling link", "folder"])
def test_what_is_no_file_is_no_entry(store: Store, kind: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    store.put(KEY, b"payload")
    path = file_of(store)
    path.rename(target)
    if kind == "dangling link":
        target.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(target)
    before = target.read_bytes() if target.exists() else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LegoWarning)  # a folder stays where it is
        assert store.get(KEY) is None
        store.put(KEY, b"other")
    assert store.get(KEY) == (None if kind == "folder" else b"other")
    assert (target.read_bytes() if target.exists() else None) == before, "no link is followed"


def test_an_entry_is_no_larger_than_a_bundle(store: Store) -> None:
    store.put(KEY, bytes(1000))
    with Limits(bundle_bytes=999).applied():
        assert store.get(KEY) is None


def test_what_was_used_longest_ago_is_removed_first(tmp_path: Path) -> None:
    store = Store(tmp_path, max_bytes=10_000)
    keys = [sha256(b"%d" % number).hexdigest() for number in range(12)]
    for age, key in enumerate(keys[:9]):
        store.put(key, bytes(1000 - 200))
        os.utime(file_of(store, key), (age, age))
    assert store.get(keys[0]) is not None, "it is the newest now"
    store.put(keys[9], bytes(1000))
    store.put(keys[10], bytes(1000))
    left = [file_of(store, key).exists() for key in keys]
    assert left[0], "it was used"
    assert not left[1]
    assert left[9:11] == [True, True]
    assert store.usage().bytes <= 10_000
    assert left == [True, *sorted(left[1:11]), False], "the oldest ones are missing"


def test_unfinished_files_are_removed_when_they_are_old(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, b"payload")
    old, new, foreign = (
        file_of(store).with_name(name)
        for name in (f".{KEY[2:50]}.0123456789ab", f".{KEY[2:50]}.ba9876543210", "notes.txt")
    )
    for path in (old, new, foreign):
        path.write_bytes(b"half")
        os.utime(path, (1, 1) if path != new else None)
    Store(tmp_path).put(OTHER, b"payload")
    assert [path.exists() for path in (old, new, foreign)] == [False, True, True]
    assert store.usage().entries == 2
    Store(tmp_path, max_bytes=1).put(OTHER, b"payload")
    store.clear()
    assert [path.exists() for path in (new, foreign)] == [True, True], "somebody writes it"


def test_clearing_leaves_what_is_no_entry(store: Store) -> None:
    store.put(KEY, b"payload")
    store.put(OTHER, b"payload")
    notes = [store.folder.parent / "notes.txt", store.folder / "notes", file_of(store).parent / "n"]
    for path in notes:
        path.write_text("mine")
    assert store.clear().entries == 2
    assert store.usage().entries == store.usage().bytes == 0
    assert store.get(KEY) is None
    assert all(path.exists() for path in notes)
    store.put(KEY, b"payload")
    assert store.get(KEY) == b"payload"


def test_a_folder_that_is_none_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file")
    with pytest.warns(LegoWarning, match=r"the cache cannot be .*Not a directory.*\n.*LEGO_MLIR"):
        store.put(KEY, b"payload")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put(KEY, b"payload")
        assert store.get(KEY) is None
        assert store.usage().entries == 0


def test_a_full_disk_is_told_once_and_leaves_nothing(store: Store) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.warns(LegoWarning, match="cannot be written.*File too large"):
            store.put(KEY, bytes(1000))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.put(OTHER, bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path for path in store.folder.glob("*/*") if path.is_file()] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_told(store: Store) -> None:
    store.folder.mkdir(parents=True)
    store.folder.chmod(0o500)
    with pytest.warns(LegoWarning, match="Permission denied"):
        store.put(KEY, b"payload")


def test_processes_that_are_killed_break_and_lose_nothing(tmp_path: Path) -> None:
    assert stress(tmp_path / "large", kills=20, processes=4) == []
    assert stress(tmp_path / "small", kills=20, processes=4, max_bytes=1 << 18) == []


def test_the_stress_finds_entries_that_are_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_slowly(path: Path, content: bytes) -> None:
        with path.open("wb", buffering=0) as file:
            file.write(content[: len(content) // 2])
            time.sleep(0.001)
            file.write(content[len(content) // 2 :])

    def read_all(self: Store, key: str) -> bytes | None:
        path = file_of(self, key)
        return path.read_bytes()[header:] if path.exists() else None

    Store(tmp_path).put(KEY, b"")
    header = file_of(Store(tmp_path)).stat().st_size
    monkeypatch.setattr("lego_mlir.cache.store.write_whole", write_slowly)
    monkeypatch.setattr(Store, "get", read_all)
    assert stress(tmp_path, kills=20, processes=4) != []


def test_an_entry_of_another_process_is_found(store: Store) -> None:
    code = f"from lego_mlir.cache.store import current_store; current_store().put('{KEY}', b'x')"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert store.get(KEY) == b"x"
