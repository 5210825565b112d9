"""Artifacts with mistakes planted in their PTX, which the simulator has to find."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError


def is_caught(
    artifact: Artifact,
    mutant: tuple[str, str],
    is_right: Callable[[Artifact, str], bool],
    orders: Iterable[str],
) -> bool:
    """Return whether the simulator refuses a mutant, or its result is wrong, in some order.

    Args:
        artifact: the correct kernel.
        mutant: a pattern of its PTX, which has to occur, and what replaces each occurrence.
        is_right: runs an artifact in an order, and returns whether the result is right.
        orders: of the simulator.
    """
    ptx, count = re.subn(*mutant, artifact.ptx)
    assert count, mutant
    wrong = replace(artifact, ptx=ptx)

    def fails(order: str) -> bool:
        try:
            return not is_right(wrong, order)
        except LegoError:
            return True

    return any(fails(order) for order in orders)
