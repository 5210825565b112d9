"""What a thread computes from its number, by layouts."""

from __future__ import annotations

from itertools import count
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.distributed import REPLICA, DistributedLayout, Place
from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.conversions.exchange import Choice
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect.pipeline_operations import role_warps
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import layout_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.exchanges import Exchanges


class Threads:
    """The threads of a kernel's CTAs, or of one of its roles: which elements they hold, who stores.

    What depends on the thread's number alone is built once, at the begin of the kernel or role.

    Args:
        kernel: the kernel.
        role: a lego.role with other warps than those of the kernel's tiles; `None` for these.

    Attributes:
        kernel: the kernel.
        warps: of a CTA.
        scatters: numbers the scatters.
        exchanges: between the CTAs of a cluster.
        taken_from: tiles that elements are taken from through shared memory, with the block of the
            kernel that stores each, and the buffer.
    """

    def __init__(self, kernel: TileKernel, role: Any = None) -> None:
        self.kernel = kernel
        if role is None:
            self.warps, self.thread = kernel.warps, kernel.thread
            operations = [op.operation for op in kernel.body.operations]
            is_made = not isinstance(kernel.thread, ir.BlockArgument)  # by a first operation
            made = operations.index(kernel.thread.owner.operation) + 1 if is_made else 0
            self._entry = operations[made]
        else:
            self.warps = len(role_warps(role))
            self._entry = role.regions[0].blocks[0].operations[0].operation
            with self.entry, role.location:
                self.thread = self._number_in(role)
        self._index: dict[tuple[DistributedLayout, Any], list[Any]] = {}
        self._built: dict[Any, Any] = {}
        self.scatters = count()
        self.exchanges = Exchanges(self)
        self.taken_from: list[tuple[Any, Any, Any]] = []

    @staticmethod
    def layout(tile: Any) -> DistributedLayout:
        """Return the layout of a tile."""
        layout = layout_of(tile)
        assert layout is not None  # the verifier has seen to it
        return layout

    def _number_in(self, role: Any) -> Any:
        """Build the number of the thread in a role, with its bound."""
        first = build.index(role_warps(role).start * WARP_THREADS)
        number = build.binary("subi", self.kernel.launch_thread, first)
        bounds = dialect.bounds_attribute([self.warps * WARP_THREADS])
        number.owner.attributes[dialect.BOUNDS] = bounds
        return number

    @property
    def entry(self) -> Any:
        """The insertion point at the begin of the kernel."""
        return ir.InsertionPoint(self._entry)

    def coordinates(self, layout: DistributedLayout, cta: Any = None) -> list[Any]:
        """Return the index of the first register's element in the thread, a value a dimension.

        Args:
            layout: of the tile, or of a piece of it.
            cta: the number of the CTA, by default that in the cluster if CTAs divide the tile.
        """
        return self._first(layout, cta)[: layout.rank]

    def copy(self, layout: DistributedLayout, cta: Any = None) -> Any:
        """Return which copy of its elements the thread holds; arguments as `coordinates`."""
        return self._first(layout, cta)[layout.rank] if layout.replicas > 1 else build.index(0)

    def is_first_copy(self, layout: DistributedLayout) -> Any | None:
        """Return whether the thread holds the first copy of its elements, an i1.

        `None` if no two threads hold the same element.
        """
        if not any(f.dim == REPLICA for place in layout.places[: Place.REGISTER] for f in place):
            return None
        key = ("first", layout)
        if key not in self._built:
            replica = self.copy(layout)
            with self.entry:
                self._built[key] = build.compare("eq", replica, build.index(0))
        return self._built[key]

    def is_first(self) -> Any:
        """Return whether the thread is the first of its CTA, an i1."""
        if "thread" not in self._built:
            with self.entry:
                zero = build.index(0)
                self._built["thread"] = build.compare("eq", self.thread, zero)
        return self._built["thread"]

    def is_first_of_cluster(self) -> Any:
        """Return whether the thread is the first of its cluster, an i1."""
        if self.kernel.ctas == 1:
            return self.is_first()
        if "cluster" not in self._built:
            with self.entry:
                first = build.compare("eq", self.cta, build.index(0))
            is_first = self.is_first()
            with self.entry:
                self._built["cluster"] = build.binary("andi", first, is_first)
        return self._built["cluster"]

    @property
    def cta(self) -> Any:
        """The number of the CTA in its cluster, an index."""
        if "cta" not in self._built:
            with self.entry:
                x = ir.Attribute.parse("#gpu<dim x>")
                self._built["cta"] = build.make(
                    "gpu.cluster_block_id", ir.IndexType.get(), dimension=x
                )
        return self._built["cta"]

    def cta_digits(self, layout: Layout) -> list[Any]:
        """Return the digits of the CTA's number in its cluster, by a layout of them."""
        key = ("cta", layout)
        if key not in self._built:
            cta = self.cta
            with self.entry:
                self._built[key] = dialect.inv(layout_attribute(layout), layout.rank, [cta])
        return list(self._built[key])

    def digit(self, digit: Digit) -> Any:
        """Return a digit of the warp's or lane's number, an index."""
        if digit.place is Place.CTA:
            rest = self.kernel.ctas // (digit.weight * digit.size)
            return self.cta_digits(OrderBy(Row(rest, digit.size, digit.weight)))[1]
        if digit not in self._built:
            weight = digit.weight * (WARP_THREADS if digit.place is Place.WARP else 1)
            rest = self.warps * WARP_THREADS // (weight * digit.size)
            layout = layout_attribute(OrderBy(Row(rest, digit.size, weight)))
            with self.entry:
                self._built[digit] = dialect.inv(layout, 3, [self.thread])[1]
        return self._built[digit]

    def warp_digit(self, digit: Digit) -> Any:
        """Return a digit of the warp's number, an index that the assembler knows to be uniform."""
        key = ("uniform", digit)
        if key not in self._built:
            number = self.digit(digit)
            with self.entry:
                word = build.make("arith.index_cast", build.i32(), number)
                zero, last = (build.constant(build.i32(), n) for n in (0, WARP_THREADS - 1))
                word = nvvm.shuffle(build.constant(build.i32(), -1), word, zero, last)
                found = build.make("arith.index_cast", ir.IndexType.get(), word)
            found.owner.attributes[dialect.BOUNDS] = dialect.bounds_attribute([digit.size])
            self._built[key] = found
        return self._built[key]

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

    def _first(self, layout: DistributedLayout, cta: Any = None) -> list[Any]:
        """Return the index of the thread's first register's element, and which copy it is."""
        if layout.ctas > 1 and cta is None:
            assert layout.ctas == self.kernel.ctas
            cta = self.cta
        key = layout, cta
        if key not in self._index:
            rank = layout.rank + (layout.replicas > 1)
            position = OrderBy(Row(layout.ctas, self.warps * WARP_THREADS, layout.registers))
            with self.entry:
                first = self.thread
                if cta is not None:
                    at = [cta, first, build.index(0)]
                    first = dialect.apply(layout_attribute(position), at)
                elif layout.registers > 1:
                    first = build.binary("muli", first, build.index(layout.registers))
                attribute = layout_attribute(layout.layout)
                self._index[key] = dialect.inv(attribute, rank, [first])
        return self._index[key]
