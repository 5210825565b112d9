"""Garbage collection, which waits until the work that makes many objects is done.

A stage of a compilation makes tens of thousands of objects, nearly all of which are counted. Python
would look for cycles among them dozens of times, and now and then among all objects of the process.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_waits = 0
"""How much of the work is going on, in all threads."""
_is_enabled = False
"""Whether Python collected before that began."""


@contextmanager
def collected_later() -> Iterator[None]:
    """Let Python collect no cycles inside, also as a decorator; afterwards as it did before."""
    global _waits, _is_enabled
    with _lock:
        if not _waits:
            _is_enabled = gc.isenabled()
            gc.disable()
        _waits += 1
    try:
        yield
    finally:
        with _lock:
            _waits -= 1
            if not _waits and _is_enabled:
                gc.enable()
