"""A size as it stands in the text of a layout, before names have values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class WrittenSize:
    """A size as written: an operator with operands, a symbol or an integer.

    Attributes:
        op: the operator's name, `symbol` or `integer`.
        args: the operands, the symbol's name or the integer.
        at: where it begins in the text, from 0.
        nesting: how many operators stand inside one another; 0 of a symbol or an integer.
    """

    op: str
    args: tuple[Any, ...]
    at: int
    nesting: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        inner = max((x.nesting for x in self.args if isinstance(x, WrittenSize)), default=-1)
        object.__setattr__(self, "nesting", inner + 1)
