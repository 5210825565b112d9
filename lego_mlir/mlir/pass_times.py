"""The times of passes, as MLIR measures and prints them."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_ROW = re.compile(r"\s+(\d+\.\d+) \(\s*[\d.]+%\)  (\s*)(\S.*)")
"""A row of MLIR's report: seconds, the share of the whole, and the indented name."""

_FRAME = re.compile(r"===-+===|\s*\.\.\. Execution time report \.\.\.|\s*Total Execution Time: .*|"
                    r"\s*-+Wall Time-+\s+-+Name-+|\s*")  # fmt: skip

_STDERR = 2


@contextmanager
def captured_report() -> Iterator[list[tuple[str, float]]]:
    """Take MLIR's report on the times of passes from the standard error, where MLIR prints it.

    A pass manager prints when it is destroyed, which has to be inside of the block. What else is
    written there meanwhile is written at the end of the block.

    Returns:
        A list of names and seconds, which the end of the block fills. A name is indented by two
        spaces if it is a part of the one above.
    """
    found: list[tuple[str, float]] = []
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        before = os.dup(_STDERR)
        os.dup2(file.fileno(), _STDERR)
        try:
            yield found
        finally:
            os.dup2(before, _STDERR)
            os.close(before)
            file.seek(0)
            rows, rest = parse_report(file.read().decode(errors="replace"))
            found += rows
            sys.stderr.write(rest)


def parse_report(text: str) -> tuple[list[tuple[str, float]], str]:
    """Return the names and seconds in MLIR's report, and the lines that are no part of it.

    Analyses, and the time between passes, are left out.
    """
    rows, rest = [], []
    for line in text.splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            rest += [] if _FRAME.fullmatch(line) else [line + "\n"]
            continue
        seconds, indent, name = row.groups()
        if name not in ("Rest", "Total") and not name.startswith("(A) "):
            rows.append((indent + name, float(seconds)))
    return rows, "".join(rest)
