"""How a kernel on rows divides them among CTAs and threads."""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS


@dataclass(frozen=True, slots=True)
class RowsConfig:
    """A choice of tile and threads.

    Attributes:
        rows: rows that a CTA holds in registers at once.
        warps: of the CTA; they divide the rows first, then the columns.
        piece: vectors that a thread holds of a row that is read in pieces; 0 where a CTA holds
            whole rows.
        vector: elements of such a vector.
        reason: why it was chosen.
    """

    rows: int
    warps: int
    piece: int = 0
    vector: int = 1
    reason: str = "given"

    def __post_init__(self) -> None:
        for name in ("rows", "warps", "vector"):
            n = getattr(self, name)
            if type(n) is not int or n < 1 or n & (n - 1):
                raise LegoError(f"RowsConfig: {name} is a power of two, not {n!r}")
        if type(self.piece) is not int or self.piece < 0 or self.piece & (self.piece - 1):
            raise LegoError(f"RowsConfig: piece is 0 or a power of two, not {self.piece!r}")
        if self.piece and self.rows > 1:
            raise LegoError(
                f"RowsConfig: a CTA reads one row in pieces, not {self.rows}",
                hint="RowsConfig(rows=1, warps=8, piece=4, vector=4)",
            )

    @property
    def threads(self) -> int:
        """The threads of a CTA."""
        return self.warps * WARP_THREADS

    @property
    def columns(self) -> int:
        """The columns of a piece."""
        return self.piece * self.vector * self.threads

    def describe(self, columns: int) -> str:
        """Return a line for `explain`."""
        if self.piece:
            pieces = f"{columns // self.columns} pieces of {self.columns} columns"
            rest = columns % self.columns
            held = f"1 row a CTA, in {pieces}" + (f" and one of {rest}" if rest else "")
        else:
            held = f"{self.rows} row{'s' * (self.rows > 1)} a CTA, in registers"
        return f"{held}; {self.warps} warps ({self.reason})"
