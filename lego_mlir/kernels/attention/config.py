"""How an attention kernel divides queries and keys among CTAs."""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.diagnostics import LegoError

_LEAST_TILE = 16


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """A choice of tiles.

    Attributes:
        rows: queries of a CTA.
        columns: keys of an iteration.
        warps: of a CTA; they divide the rows.
        packed: the rows of a CTA are queries of all heads that share a head of keys, so that keys
            are read once for them.
        splits: CTAs that divide the keys of a tile of queries; a second kernel combines them.
        reason: why it was chosen.
    """

    rows: int = 64
    columns: int = 64
    warps: int = 4
    packed: bool = False
    splits: int = 1
    reason: str = "given"

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "warps"):
            n = getattr(self, name)
            least = 1 if name == "warps" else _LEAST_TILE
            if type(n) is not int or n < least or n & (n - 1):
                raise LegoError(
                    f"AttentionConfig: {name} is a power of two from {least} on, not {n!r}"
                )
        if type(self.splits) is not int or self.splits < 1:
            raise LegoError(f"AttentionConfig: splits is at least 1, not {self.splits!r}")

    def describe(self) -> str:
        """Return a line for `explain`."""
        what = "queries of all heads of a group" if self.packed else "queries"
        split = f"; keys divided among {self.splits} CTAs" if self.splits > 1 else ""
        return (
            f"{self.rows} {what} × {self.columns} keys an iteration, {self.warps} warps{split} "
            f"({self.reason})"
        )
