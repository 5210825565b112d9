"""Dimensions of a tensor, and which element of the input each element of the output is.

Index i of the output is index `step * i + offset` of the input, with a boundary for those that the
input has not. Dimensions that are moved alike are one: padded rows of a matrix lie side by side in
memory, and are padding of one dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BOUNDARIES = ("zero", "clamp", "wrap")


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of input and output.

    Attributes:
        read: size of the input; `None` if each launch has its own, which is the output's, too.
        written: size of the output.
        offset: added to the output's index.
        step: 1, or -1 for a dimension that is reversed.
        boundary: of indices that the input has not; `inside` if there are none.
    """

    read: int | None
    written: int | None
    offset: int = 0
    step: int = 1
    boundary: str = "inside"

    @property
    def is_kept(self) -> bool:
        """Whether the output's index is the input's, over the whole of it."""
        return self.read == self.written and self.offset == 0 and self.step == 1

    def index(self, i: object) -> object:
        """Return the input's index of an output's one."""
        if self.is_kept:
            return i
        return self.step * i + self.offset  # type: ignore[operator]  # a kernel's value


def merged(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the same movement of fewer dimensions."""
    found: list[Axis] = []
    for inner in axes:
        outer = found[-1] if found else None
        joined = None if outer is None else _joined(outer, inner)
        if joined is None:
            found.append(inner)
        else:
            found[-1] = joined
    return tuple(found)


def _joined(outer: Axis, inner: Axis) -> Axis | None:
    """Return two neighbouring dimensions as one; `None` if they cannot be."""
    if inner.read is None or not inner.is_kept or outer.read is None or outer.written is None:
        return None
    if outer.step != 1 or outer.boundary == "clamp":
        return None
    n = inner.read
    return Axis(outer.read * n, outer.written * n, outer.offset * n, 1, outer.boundary)
