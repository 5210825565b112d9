"""Where the cache lies, and whether there is one: `LEGO_MLIR_CACHE` names its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

VARIABLE = "LEGO_MLIR_CACHE"
_OFF = ("", "0")

_is_disabled: ContextVar[bool] = ContextVar("is_disabled", default=False)


def folder() -> Path | None:
    """Return the folder of everything that is kept between runs; `None` if nothing is kept.

    It is that of the environment variable `LEGO_MLIR_CACHE`, by default lego-mlir's in the user's
    cache folder. An empty variable, or 0, means none.
    """
    if _is_disabled.get():
        return None
    named = os.environ.get(VARIABLE)
    if named is not None:
        return None if named in _OFF else Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("lego-mlir")


@contextmanager
def disabled() -> Iterator[None]:
    """Neither read nor write the cache in the block."""
    token = _is_disabled.set(True)
    try:
        yield
    finally:
        _is_disabled.reset(token)
