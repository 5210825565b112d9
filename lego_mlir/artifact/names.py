"""The names that a module or a bundle gives: they are printed, and they become names of files."""

from __future__ import annotations

import re

MOST = 128
"""Bytes of a name, so that it fits a file's name with what stands around it."""

NAME_RULE = f"letters, digits, _, $, - and ., neither of the last two first, at most {MOST} bytes"
"""What a name consists of, for messages."""

_NAME = re.compile(r"[\w$][\w$.-]*")


def is_name(text: str) -> bool:
    """Return whether `text` is a name: it can stand in a message, and be a file's name, as it is.

    >>> is_name("a.0"), is_name("../a"), is_name("")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None and len(text.encode()) <= MOST
