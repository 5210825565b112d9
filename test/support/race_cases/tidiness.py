"""How soon the checks forget what they no longer need."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from lego_mlir.sim.checks import shadow_memory, vector_clocks


@contextmanager
def tidy(yes: bool) -> Iterator[None]:
    """Have everything forgotten as soon as it may be, or else as long as it may."""
    with (
        patch.object(shadow_memory, "_MAX_RECENT", 0 if yes else 1 << 16),
        patch.object(vector_clocks, "_MIN_ROWS", 2 if yes else 256),
    ):
        yield
