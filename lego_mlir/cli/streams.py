"""What legoc reads and writes: files, the standard streams, and lines of text."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TextIO

from lego_mlir.diagnostics import LegoError, Location, printable
from lego_mlir.files import write_whole

BUNDLE = b"PK\x03\x04"  # a zip file
STDIN, STDOUT = "<stdin>", "<stdout>"


@contextlib.contextmanager
def stdout() -> Iterator[TextIO]:
    """Provide the standard output, and flush it at the end.

    Raises:
        BrokenPipeError: whoever reads it has gone.
        LegoError: it cannot be written.
    """
    try:
        if sys.stdout is None:  # closed by the caller, as by >&-
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        yield sys.stdout
        sys.stdout.flush()
    except OSError as e:
        sys.stdout = None  # else Python tries again when it exits
        if isinstance(e, BrokenPipeError):
            raise
        raise LegoError(f"cannot be written: {e.strerror}", location=Location(STDOUT)) from None


def read(file: str, what: str = "a .mlir file") -> tuple[str, str]:
    """Return the name and the text of the input, which should be `what`."""
    name = STDIN if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        if data.startswith(BUNDLE):
            raise LegoError(
                "the input is a bundle, compiled already",
                location=Location(name),
                hint="run it from its file: legoc FILE.lego --run",
            )
        text = data.decode("utf-8-sig")  # some editors put a byte-order mark first
        return name, text
    except OSError as e:
        raise LegoError(
            f"cannot read the input: {e.strerror}",
            location=Location(name),
            hint=f"give {what}, or - for stdin",
        ) from None
    except UnicodeDecodeError:
        raise LegoError(
            "the input is no text",
            location=Location(name),
            hint="legoc reads .mlir files, and with --run the bundles it makes",
        ) from None


def write(output: str | None, data: bytes) -> None:
    """Write the whole output, or nothing."""
    if output is None or output == "-":
        with stdout() as out:
            out.buffer.write(data)
        return
    try:
        write_whole(output, data)
    except LegoError as e:
        e.hint = e.hint or "-o names a file in a folder that exists; without it, stdout is written"
        raise


def say(text: str, out: IO[str], keep: str = "") -> None:
    """Print what may have names of a stranger's in it; `keep` is as `printable` takes it."""
    print(printable(text, keep), file=out)
