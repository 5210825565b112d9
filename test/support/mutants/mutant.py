"""Mutants: kernels with one mistake each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

RIGHT = "right"
WRONG = "wrong result"
"""The outcomes of a kernel that the simulator runs to its end without an error."""

RACE = "data race"
UNWRITTEN = "which nothing has written"
BOUNDS = "out of bounds"
FENCE = "no proxy fence"
DEADLOCK = "deadlock"
TOO_MANY = "has 0 arrivals pending"
EXIT = "exits while its shared memory is in use"
IN_FLIGHT = "until wgmma.wait_group has waited for it"
"""Parts of the checks' error messages."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A kernel with one mistake, made by replacing text of its PTX.

    Attributes:
        name: the mistake.
        old: the text, or a pattern for PTX that a compiler writes.
        new: the replacement; for a pattern its template.
        gpu: what goes wrong on a GPU, at least under some timing.
        late, early: the outcome in that completion order: a part of the simulator's error,
            `WRONG`, or `RIGHT`; None: early as late. In the random order every mutant is detected
            by one of a few seeds.
        times: how often the text occurs in the kernel.
    """

    name: str
    old: str | re.Pattern[str]
    new: str
    gpu: str
    late: str
    early: str | None = None
    times: int = 1

    def of(self, text: str) -> str:
        """Return the broken kernel.

        Raises:
            AssertionError: the text does not occur exactly `times` times.
        """
        pattern = self.old if isinstance(self.old, re.Pattern) else re.compile(re.escape(self.old))
        new = self.new if isinstance(self.old, re.Pattern) else self.new.replace("\\", r"\\")
        broken, found = pattern.subn(new, text)
        assert found == self.times, f"{self.name}: {found} occurrences, expected {self.times}"
        assert broken != text, self.name
        return broken


@dataclass(frozen=True, slots=True)
class Kernel:
    """A correct kernel and its mutants.

    Attributes:
        text: returns its PTX.
        run: runs PTX in its stead, on random data of a seed, with options of `sim.launch`; returns
            whether the result is correct.
    """

    name: str
    text: Callable[[], str]
    run: Callable[..., bool]
    mutants: tuple[Mutant, ...] = field(repr=False)
