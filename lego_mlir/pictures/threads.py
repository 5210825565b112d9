"""Distributed layouts: from the physical space of a layout to CTA, warp, lane and register."""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.algebra import Layout, RegP
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS


@dataclass(frozen=True, slots=True)
class Threads:
    """The physical space of a distributed layout, `Row(warps, 32, registers)`.

    Attributes:
        registers: registers of a thread.
        warps: warps of a CTA.
        ctas: CTAs of a cluster.
    """

    registers: int
    warps: int = 1
    ctas: int = 1

    @staticmethod
    def of(layout: Layout) -> Threads:
        """Return the physical space that a distributed layout begins with.

        Raises:
            LegoError: the layout's first reordering is not `Row(warps, 32, registers)`, with the
                CTAs of a cluster before the warps if there are several.
        """
        blocks = layout.orders[0].blocks if layout.orders else ()
        dims = blocks[0].dims if len(blocks) == 1 and isinstance(blocks[0], RegP) else ()
        plain = blocks[0].perm == tuple(range(len(dims))) if dims else False  # type: ignore[attr-defined]
        if not plain or len(dims) not in (2, 3, 4) or dims[-2] != WARP_THREADS:
            raise LegoError(
                f"'{layout}' does not say which thread and register holds an element",
                hint="a distributed layout begins with its physical space: "
                "OrderBy(Row(warps, 32, registers)).OrderBy(...).GroupBy([rows, columns])",
            )
        sizes = [int(n) for n in dims]
        return Threads(sizes[-1], *reversed(sizes[:-2]))

    def split(self, flat: int) -> tuple[int, int, int, int]:
        """Return CTA, warp, lane and register of a flat position in the space."""
        thread, register = divmod(flat, self.registers)
        warp, lane = divmod(thread, WARP_THREADS)
        return (*divmod(warp, self.warps), lane, register)

    def text(self, flat: int) -> tuple[str, str]:
        """Return the thread and the register at a position: `w1 T5` and `r2`."""
        cta, warp, lane, register = self.split(flat)
        owner = (f"c{cta} " if self.ctas > 1 else "") + (f"w{warp} " if self.warps > 1 else "")
        return f"{owner}T{lane}", f"r{register}"
