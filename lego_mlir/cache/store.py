"""Entries in files: named by their keys, written whole, verified when they are read.

    FOLDER/kernels-1/ab/cdef…    the entry whose key is abcdef…

An entry has one line in ASCII, its header, and then its payload:

    lego-mlir-cache 1 KEY SHA256-OF-THE-PAYLOAD

Any number of processes may read and write at once, and may be killed at any moment. A file gets its
name when it is complete (`files.write_whole`). It is not synchronised with the disk: an entry that
a power failure leaves incomplete does not have the checksum that its header states, and is removed
like any other damaged entry. What a stranger wrote into a folder has a right checksum, too; so who
reads a payload checks it like any other file.

Entries that were used longest ago are removed when all together exceed a size. The time of use is
the file's modification time, which a reader sets; access times are off on many systems.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from lego_mlir.cache.folders import VARIABLE, folder
from lego_mlir.diagnostics import LegoError, LegoWarning, Location
from lego_mlir.files import write_whole
from lego_mlir.limits import current

FORMAT = 1
"""Of the files. Another format has another folder, so that versions can share a cache folder."""

MAX_BYTES = 1 << 30
"""The default limit for all entries together: several thousand kernels."""

_MAGIC = b"lego-mlir-cache"
_HEADER_BYTES = len(_MAGIC) + 1 + len(str(FORMAT)) + 2 * (1 + 64) + 1
_KEPT_FRACTION = 0.75
"""Of the limit, what is left by a removal, so that not each new entry has to remove one."""

_ABANDONED_SECONDS = 3600
"""The age from which an unfinished file is one of a process that was killed."""

_SHARD = re.compile(r"[0-9a-f]{2}")
_ENTRY = re.compile(r"[0-9a-f]{62}")
_UNFINISHED = re.compile(r"\.[0-9a-f]{48}\.[0-9a-f]{12}")  # as files.write_whole names them

_reported: set[Path] = set()
"""The folders of which a warning has said that they cannot be used."""


class File(NamedTuple):
    """A file of the store: its path, its size, and when it was used."""

    path: str
    bytes: int
    time: float

    @property
    def is_unfinished(self) -> bool:
        """Whether a process writes it, or was killed before it was complete."""
        return Path(self.path).name.startswith(".")

    @property
    def is_abandoned(self) -> bool:
        """Whether it is too old to be written still."""
        return self.time < time.time() - _ABANDONED_SECONDS


@dataclass(frozen=True, slots=True)
class Usage:
    """What a store holds.

    Attributes:
        folder: where.
        entries: how many.
        bytes: their sizes together.
        max_bytes: the limit of that.
    """

    folder: Path
    entries: int
    bytes: int
    max_bytes: int


class Store:
    """The entries below a folder.

    Args:
        base: the cache folder; the entries lie in a folder of the format below it.
        max_bytes: the size of all entries together from which the oldest are removed.
    """

    def __init__(self, base: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder = base / f"kernels-{FORMAT}"
        self.max_bytes = max_bytes
        self._unscanned: int | None = None

    def get(self, key: str) -> bytes | None:
        """Return the payload of an entry, and note that it was used; `None` if there is none.

        An entry that is damaged is removed. If the folder cannot be read, a warning says so once.

        Args:
            key: 64 hexadecimal digits.
        """
        path = self._path(key)
        try:
            content = _content(path)
        except FileNotFoundError:
            return None
        except OSError as e:
            self._report("read", e)
            return None
        header, payload = content[:_HEADER_BYTES], content[_HEADER_BYTES:]
        if header != _header(key, payload):  # damaged, or something else
            self.remove(key)
            return None
        with suppress(OSError):  # another's folder, or another process has just removed the entry
            os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Write an entry; an entry of the same key is replaced.

        If it cannot be written, a warning says so once in a process.

        Args:
            key: 64 hexadecimal digits, which determine the payload.
            payload: the entry's content.
        """
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, _header(key, payload) + payload)
        except OSError as e:
            self._report("written", e)
        except LegoError as e:  # as write_whole tells it, with the name of the file
            self._report("written", e)
        else:
            self._limit(_HEADER_BYTES + len(payload))

    def remove(self, key: str) -> None:
        """Remove an entry, if there is one and it can be removed."""
        with suppress(OSError):
            self._path(key).unlink()

    def usage(self) -> Usage:
        """Return how many entries there are, and their size."""
        files = [file for file in self._files() if not file.is_unfinished]
        return Usage(self.folder, len(files), sum(file.bytes for file in files), self.max_bytes)

    def clear(self) -> Usage:
        """Remove all entries, and nothing else that lies in the folder; return what there was.

        Files that other processes are writing stay.

        Raises:
            LegoError: an entry cannot be removed.
        """
        usage = self.usage()
        for file in self._files():
            if file.is_unfinished and not file.is_abandoned:
                continue
            try:
                Path(file.path).unlink(missing_ok=True)
            except OSError as e:
                raise LegoError(
                    f"the entry of the cache cannot be removed: {e.strerror}",
                    location=Location(file.path),
                ) from None
        return usage

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]

    def _limit(self, written: int) -> None:
        """Remove old entries if all together are too large, after `written` bytes were written.

        Finding their size means listing all of them, so it is done at a process's first entry, and
        then after each sixteenth of the limit.
        """
        if self._unscanned is not None:
            self._unscanned += written
            if self._unscanned < self.max_bytes // 16:
                return
        self._unscanned = 0
        files = sorted(self._files(), key=lambda file: file.time)
        left = total = sum(file.bytes for file in files)
        for file in files:
            is_old = total > self.max_bytes and left > self.max_bytes * _KEPT_FRACTION
            if file.is_abandoned if file.is_unfinished else is_old:
                with suppress(OSError):  # another process does the same
                    Path(file.path).unlink()
                left -= file.bytes

    def _files(self) -> Iterator[File]:
        """List entries and unfinished files; whatever else lies in the folder is left out."""
        for shard in self._shards():
            with suppress(OSError), os.scandir(shard) as inside:
                for file in inside:
                    if _ENTRY.fullmatch(file.name) or _UNFINISHED.fullmatch(file.name):
                        with suppress(OSError):  # it has just been removed
                            status = file.stat(follow_symlinks=False)
                            yield File(file.path, status.st_size, status.st_mtime)

    def _shards(self) -> list[str]:
        with suppress(OSError), os.scandir(self.folder) as inside:
            return [
                shard.path
                for shard in inside
                if _SHARD.fullmatch(shard.name) and shard.is_dir(follow_symlinks=False)
            ]
        return []

    def _report(self, verb: str, error: OSError | LegoError) -> None:
        """Warn, once for a folder, that it cannot be read or written."""
        if self.folder in _reported:
            return
        _reported.add(self.folder)
        reason = error.strerror if isinstance(error, OSError) else error.message
        reason = (reason or "unknown reason").removeprefix("cannot be written: ")
        warning = LegoError(
            f"the cache cannot be {verb} ({reason}), so kernels are compiled in every process",
            location=Location(str(self.folder)),
            hint=f"{VARIABLE} names another folder; {VARIABLE}=0 turns the cache off",
        )
        warnings.warn(LegoWarning(warning), stacklevel=2)


def current_store() -> Store | None:
    """Return the store in the cache folder; `None` if the cache is off."""
    base = folder()
    if base is None:
        return None
    return _stores.setdefault(base, Store(base))


_stores: dict[Path, Store] = {}


def _header(key: str, payload: bytes) -> bytes:
    return b"%s %d %s %s\n" % (_MAGIC, FORMAT, key.encode(), sha256(payload).hexdigest().encode())


def _content(path: Path) -> bytes:
    """Return the content of an entry's file; nothing if it is no file or too large to be an entry.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read.
    """
    try:
        # Somebody may have put a pipe there, which nobody ever writes to, or a link.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags)
    except OSError as e:
        if e.errno == errno.ELOOP:
            return b""
        raise
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _HEADER_BYTES + _max_payload():
            return b""
        return file.read(status.st_size)


def _max_payload() -> int:
    """Return the limit for the bytes of a payload: that of a bundle."""
    return current().bundle_bytes
