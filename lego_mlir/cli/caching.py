"""Says what the cache holds, and removes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir.cache.folders import VARIABLE
from lego_mlir.cache.store import Store, Usage, current_store
from lego_mlir.cli.streams import say, stdout
from lego_mlir.options import caching

_MIB = 1 << 20


def info(options: Any) -> int:
    """Print the folder of the cache, its entries and their size; return the exit status."""
    return _report("", Store.usage)


def clear(options: Any) -> int:
    """Remove all entries, print how many there were, and return the exit status."""
    return _report("removed ", Store.clear)


COMMANDS = dict(zip(caching.COMMANDS, (info, clear), strict=True))
"""The commands by the options that ask for them."""


def _report(done: str, act: Callable[[Store], Usage]) -> int:
    """Do something with the cache, and print what there was."""
    store = current_store()
    with stdout() as out:
        if store is None:
            say(f"cache    off: {VARIABLE} is empty or 0", out)
            return 0
        usage = act(store)
        size = f"{usage.bytes / _MIB:.1f} of {usage.max_bytes // _MIB} MiB"
        say(f"cache    {usage.folder}", out)
        say(f"entries  {done}{usage.entries}, {size}", out)
    return 0
