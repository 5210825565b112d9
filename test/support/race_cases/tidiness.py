"""How early the checks free what they no longer need."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from lego_mlir.sim.checks.races import access_log, vector_clocks


@contextmanager
def tidy(yes: bool) -> Iterator[None]:
    """Free everything as early as possible, or as late as possible."""
    with (
        patch.object(access_log, "_MAX_RECENT", 0 if yes else 1 << 20),
        patch.object(vector_clocks, "_MIN_ROWS", 2 if yes else 256),
    ):
        yield
