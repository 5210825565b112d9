"""The values that options take: each function parses one form of text.

All raise `argparse.ArgumentTypeError`, which argparse reports with the name of the option.
"""

from __future__ import annotations

import argparse

from lego_mlir.compiler.stages import PIPELINED


def value(text: str) -> tuple[str, int | str]:
    """Return NAME=VALUE as a name and a number or a word."""
    name, equals, value = text.partition("=")
    is_number = value.isascii() and value.removeprefix("-").isdecimal() and len(value) < 19
    if not (name.isidentifier() and equals and (is_number or value.isidentifier())):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE with a number or a word")
    return name, int(value) if is_number else value


def size(text: str) -> tuple[str, int]:
    """Return NAME=N as a name and a positive integer of at most 64 bits."""
    name, _, value = text.partition("=")
    is_number = value.isdecimal() and len(value) < 19  # then it fits 64 bits
    if not (name.isidentifier() and is_number and int(value) > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=N with a positive integer")
    return name, int(value)


def dim3(text: str) -> tuple[int, int, int]:
    """Return X[,Y[,Z]] as three positive integers."""
    from lego_mlir.runtime.ptx_files import dim3

    try:
        return dim3(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def parameter(text: str) -> tuple[str, int]:
    """Return NAME=N as a name and an integer of at least 0."""
    name, _, value = text.partition("=")
    if not name.isidentifier() or not value.isdecimal() or len(value) > 18:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=N with an integer of at least 0")
    return name, int(value)


def count(text: str) -> int:
    """Return a positive integer."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive integer")
    return int(text)


def cells(text: str) -> tuple[int, int]:
    """Return ROWSxCOLUMNS as two positive integers of at most three digits."""
    rows, _, columns = text.partition("x")
    counts = [int(n) for n in (rows, columns) if n.isascii() and n.isdecimal() and len(n) < 4]
    if len(counts) < 2 or 0 in counts:
        raise argparse.ArgumentTypeError(f"'{text}' is not ROWSxCOLUMNS with numbers up to 999")
    return counts[0], counts[1]


def seed(text: str) -> int:
    """Return an integer of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer of at least 0")
    return int(text)


def pipeline(text: str) -> tuple[str, str]:
    """Return STAGE=PIPELINE as a stage that has a pass pipeline, and its text."""
    stage, _, pipeline = text.partition("=")
    if stage not in PIPELINED or not pipeline:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not STAGE=PIPELINE with a stage of {', '.join(PIPELINED)}"
        )
    return stage, pipeline
