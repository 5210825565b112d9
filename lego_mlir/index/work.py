"""Counting the work of deriving index expressions, so that no short text takes hours.

`measured` begins a count, the outermost one; what the constructors and the prover do inside is
`charge`d to it, in terms of polynomials that they combine, and is an error beyond the limit
`index_steps`. The count depends on the expressions alone, so the answer is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lego_mlir.limits import current, limit_error


class _Work:
    """The steps that are left to the derivation that is going on."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


_work: ContextVar[_Work | None] = ContextVar("work", default=None)

SOLVER = 2_000
"""Steps that a proof by Z3 counts for, which takes some hundredths of a second."""


@contextmanager
def measured() -> Iterator[None]:
    """Hold what is derived in the block to the limit `index_steps`; part of an outer block's.

    Raises:
        LegoError: the derivation takes more steps.
    """
    if _work.get() is not None:
        yield
        return
    token = _work.set(_Work(current().index_steps))
    try:
        yield
    finally:
        _work.reset(token)


def charge(steps: int) -> None:
    """Count steps of the derivation that is going on.

    Raises:
        LegoError: there are more of them than the limit allows.
    """
    work = _work.get()
    if work is not None:
        work.left -= steps
        if work.left < 0:
            raise limit_error("index_steps", "the index expressions take too long to derive")
