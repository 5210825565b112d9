"""What a thread computes from its number, by layouts."""

from __future__ import annotations

from itertools import count
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.analysis.distributed import REPLICA, DistributedLayout, Place
from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.conversions.exchange import Choice
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import layout_of
from lego_mlir.mlir.tile_passes.lower_tiles import build


class Threads:
    """The threads of a kernel's CTAs: which elements they hold, and who stores.

    What depends on the thread's number alone is built once, at the begin of the kernel.

    Args:
        kernel: the kernel.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self.kernel = kernel
        self.warps = kernel.warps
        is_made = not isinstance(kernel.thread, ir.BlockArgument)  # by the first operation
        self._entry = kernel.body.operations[int(is_made)].operation
        self._index: dict[DistributedLayout, list[Any]] = {}
        self._built: dict[Any, Any] = {}
        self.scatters = count()

    def layout(self, tile: Any) -> DistributedLayout:
        """Return the layout of a tile.

        Raises:
            LegoError: CTAs of a cluster divide it.
        """
        layout = layout_of(tile)
        assert layout is not None  # the verifier has seen to it
        if layout.ctas > 1:
            raise LegoError(
                f"'{layout}' is held by {layout.ctas} CTAs, and no tile is divided among the CTAs "
                "of a cluster yet",
                hint="give each CTA a tile of its own: a layout Row(warps, 32, registers)",
            )
        return layout

    @property
    def entry(self) -> Any:
        """The insertion point at the begin of the kernel."""
        return ir.InsertionPoint(self._entry)

    def coordinates(self, layout: DistributedLayout) -> list[Any]:
        """Return the index of the first register's element in the thread, a value a dimension."""
        return self._first(layout)[: layout.rank]

    def is_first_copy(self, layout: DistributedLayout) -> Any | None:
        """Return whether the thread holds the first copy of its elements, an i1.

        `None` if no two threads hold the same element.
        """
        if not any(f.dim == REPLICA for place in layout.places[: Place.REGISTER] for f in place):
            return None
        key = ("first", layout)
        if key not in self._built:
            replica = self._first(layout)[layout.rank]
            with self.entry:
                self._built[key] = build.compare("eq", replica, build.index(0))
        return self._built[key]

    def is_first(self) -> Any:
        """Return whether the thread is the first of its CTA, an i1."""
        if "thread" not in self._built:
            with self.entry:
                zero = build.index(0)
                self._built["thread"] = build.compare("eq", self.kernel.thread, zero)
        return self._built["thread"]

    def digit(self, digit: Digit) -> Any:
        """Return a digit of the warp's or lane's number, an index."""
        if digit not in self._built:
            weight = digit.weight * (WARP_THREADS if digit.place is Place.WARP else 1)
            rest = self.warps * WARP_THREADS // (weight * digit.size)
            layout = layout_attribute(OrderBy(Row(rest, digit.size, weight)))
            with self.entry:
                self._built[digit] = dialect.inv(layout, 3, [self.kernel.thread])[1]
        return self._built[digit]

    def is_digit(self, digit: Digit, value: int) -> Any:
        """Return whether a digit of the thread's number has a value, an i1."""
        key = (digit, value)
        if key not in self._built:
            number = self.digit(digit)
            with self.entry:
                self._built[key] = build.compare("eq", number, build.index(value))
        return self._built[key]

    def number(self, choice: Choice) -> Any:
        """Return a number that the thread computes from its digits, an i32."""
        if choice not in self._built:
            digits = {digit: self.digit(digit) for _, digit, _ in choice.terms}
            with self.entry:
                total = build.index(choice.base)
                for weight, digit, flip in choice.terms:
                    x = digits[digit]
                    if flip:
                        x = build.binary("xori", x, build.index(flip))
                    total = build.binary(
                        "addi", total, build.binary("muli", x, build.index(weight))
                    )
                self._built[choice] = build.make("arith.index_cast", build.i32(), total)
        return self._built[choice]

    def _first(self, layout: DistributedLayout) -> list[Any]:
        """Return the index of the thread's first register's element, and which copy it is."""
        if layout not in self._index:
            rank = layout.rank + (layout.replicas > 1)
            with self.entry:
                first = self.kernel.thread
                if layout.registers > 1:
                    first = build.binary("muli", first, build.index(layout.registers))
                attribute = layout_attribute(layout.layout)
                self._index[layout] = dialect.inv(attribute, rank, [first])
        return self._index[layout]
