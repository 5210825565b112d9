"""What a mutant is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

RIGHT = "right"
WRONG = "wrong result"
"""What is seen of a kernel that the simulator runs to its end without a word."""

RACE = "data race"
UNWRITTEN = "which nothing has written"
BOUNDS = "out of bounds"
FENCE = "no proxy fence"
DEADLOCK = "deadlock"
TOO_MANY = "has 0 arrivals pending"
EXIT = "exits while its shared memory is in use"
IN_FLIGHT = "until wgmma.wait_group has waited for it"
"""Parts of what the checks say."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A kernel with one mistake, made by replacing text of its PTX.

    Attributes:
        name: the mistake.
        old: the text, or a pattern for PTX that a compiler writes.
        new: what stands there instead; for a pattern its template.
        gpu: what a GPU does wrong then, under some timing at least.
        late, early: what is seen in that order: a part of the simulator's error, `WRONG`, or
            `RIGHT`; in early order the same as in late if it is None. In random order something
            is seen of every mutant, by one seed of a few.
        times: how often the text stands in the kernel.
    """

    name: str
    old: str | re.Pattern[str]
    new: str
    gpu: str
    late: str
    early: str | None = None
    times: int = 1

    def of(self, text: str) -> str:
        """The broken kernel.

        Raises:
            AssertionError: what is replaced is not there exactly `times` times.
        """
        pattern = self.old if isinstance(self.old, re.Pattern) else re.compile(re.escape(self.old))
        new = self.new if isinstance(self.old, re.Pattern) else self.new.replace("\\", r"\\")
        broken, found = pattern.subn(new, text)
        assert found == self.times, f"{self.name}: {found} places, {self.times} are meant"
        assert broken != text, self.name
        return broken


@dataclass(frozen=True, slots=True)
class Kernel:
    """A right kernel and its mutants.

    Attributes:
        text: makes its PTX.
        run: runs some PTX in its place, on random data of a seed, with options of `sim.launch`;
            whether the result is right.
    """

    name: str
    text: Callable[[], str]
    run: Callable[..., bool]
    mutants: tuple[Mutant, ...] = field(repr=False)
