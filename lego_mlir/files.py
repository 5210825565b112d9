"""Writing files whole: nobody ever sees half of one, whatever happens meanwhile.

The data goes to a new file in the same folder, which then takes the name of the old one. Until then
the old file stays as it was, also if the process is killed or the disk is full.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from lego_mlir.diagnostics import LegoError, Location

Content = bytes | Callable[[IO[bytes]], object]
"""The bytes of a file, or a function that writes them to the open file."""


def write_whole(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file, or nothing at all.

    A link stays, and what it points at is written; a device, a pipe or /dev/stdout is written to.
    A file that is replaced keeps its permissions; a new one has those that the umask leaves.

    Raises:
        LegoError: the file cannot be written.
    """
    write_together({Path(path): content})


def write_together(contents: Mapping[Path, Content]) -> None:
    """Write several files as `write_whole` does; none is replaced before all are written.

    Raises:
        LegoError: one of them cannot be written; the error names it.
    """
    with ExitStack() as unfinished:
        ready: list[tuple[Path, Path, Path]] = []
        for path, content in contents.items():
            with _naming(path):
                if _is_stream(path):
                    with path.open("ab") as file:  # what is in it stays, as behind `>> log`
                        _write(file, content)
                    continue
                goal = Path(os.path.realpath(path))
                temporary = goal.with_name(f".{goal.name[:_MOST_KEPT]}.{os.urandom(6).hex()}")
                unfinished.callback(_discard, temporary)
                _write_new(temporary, content, goal)
                ready.append((path, temporary, goal))
        for path, temporary, goal in ready:
            with _naming(path):
                temporary.replace(goal)


def _discard(temporary: Path) -> None:
    """Remove what is left of a file; where there is nothing, there is nothing to do."""
    with suppress(OSError):
        temporary.unlink()


_MOST_KEPT = 48
"""Characters of a file's name that the name of the file beside it keeps: 255 bytes are possible."""


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an error of the system into one that names the file that the user asked for."""
    try:
        yield
    except OSError as e:
        reason = e.strerror or e
        raise LegoError(f"cannot be written: {reason}", location=Location(str(path))) from None


def _write_new(temporary: Path, content: Content, goal: Path) -> None:
    """Write a file that is not there yet, with the permissions of the one that it will replace."""
    try:
        mode = stat.S_IMODE(goal.stat().st_mode)
    except FileNotFoundError:
        mode = None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    # Never wider than in the end, not even for a moment.
    descriptor = os.open(temporary, flags, 0o666 if mode is None else mode & 0o666)
    with os.fdopen(descriptor, "wb") as file:
        _write(file, content)
        if mode is not None:
            with suppress(OSError):  # some file systems have no permissions
                os.fchmod(descriptor, mode)


def _write(file: IO[bytes], content: Content) -> None:
    if isinstance(content, bytes):
        file.write(content)
    else:
        content(file)


def _is_stream(path: Path) -> bool:
    """Return whether a path can only be written to: a device, a pipe, an open descriptor."""
    folder = str(Path.cwd().joinpath(path).parent)
    if path.is_symlink() and folder in ("/dev", "/dev/fd", "/proc/self/fd"):
        return True
    return path.exists() and not path.is_file()
