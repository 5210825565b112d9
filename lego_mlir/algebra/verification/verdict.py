"""Verdicts: whether a property of layouts holds, how that was found, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Method: TypeAlias = Literal["construction", "enumeration", "proof"]
"""By the blocks alone, by looking at every element, or by a theorem prover."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Elements for which a property does not hold.

    Attributes:
        elements: their indices, one value a dimension.
        positions: the flat positions that they were found at.
        sizes: the values of symbolic sizes, by name.
    """

    elements: tuple[tuple[int, ...], ...]
    positions: tuple[int, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a property holds. True in a condition only if it is known to.

    Attributes:
        holds: `None` where that stays unknown.
        method: how it was found, or looked for.
        detail: one sentence that names what was looked at, and the values.
        counterexample: what speaks against it, if it does not hold.
    """

    holds: bool | None
    method: Method
    detail: str
    counterexample: Counterexample | None = None

    def __bool__(self) -> bool:
        return self.holds is True

    def __str__(self) -> str:
        head = {True: "holds", False: "does not hold", None: "unknown"}[self.holds]
        return f"{head} (by {self.method}): {self.detail}"
