"""What the operations of a kernel access: bytes of shared memory, and buffers of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.index import Int, Sym, evaluate, symbols
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.buffer_users import users_of
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering.buffers import bytes_of, is_workgroup, sources_of
from lego_mlir.mlir.lowering.derivations import derive_index, derive_offset, located
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.lowering.parts_access.checks import check_registers
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.insert_barriers.elements import Elements, elements
from lego_mlir.mlir.tile_passes.insert_barriers.uniform import is_uniform

_OF_WARPS = (tiles.LOAD_MATRICES, tiles.STORE_MATRICES)
_READS = (
    tiles.LOAD_PARTS,
    tiles.LOAD_MATRICES,
    tiles.MATRIX_DESCRIPTOR,
    tiles.END_READS,
    dialect.LOAD,
    "memref.load",
    "vector.load",
    "nvvm.ldmatrix",
    "llvm.load",
)
_WRITES = (
    tiles.STORE_PARTS,
    tiles.STORE_MATRICES,
    dialect.STORE,
    "memref.store",
    "vector.store",
    "nvvm.stmatrix",
    "llvm.store",
)
_ATOMICS = (dialect.ATOMIC, "memref.atomic_rmw")
_FIRST_INDEX = {
    dialect.LOAD: 1,
    dialect.STORE: 2,
    dialect.ATOMIC: 2,
    **dict.fromkeys(dialect.PARTS_OPERATIONS, 1),
}
"""The operand that is the first index, of the operations whose elements are known."""
_VIEWS = ("memref.", "arith.", "llvm.inttoptr", "llvm.getelementptr", "llvm.addrspacecast")
_OF_MEMREF = ("memref.load", "memref.store", "memref.atomic_rmw")


_UNKNOWN = 1 << 31
"""The end of a buffer that may lie anywhere in shared memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A part of memory: bytes of shared memory, or a buffer that the host passes.

    Attributes:
        buffer: the buffer.
        first: its first byte in shared memory.
        end: the byte behind it.
        is_shared: whether it is in shared memory.
        may_overlap: whether the host may pass buffers that overlap.
    """

    buffer: Any
    first: int = 0
    end: int = 0
    is_shared: bool = False
    may_overlap: bool = False

    def meets(self, other: Region) -> bool:
        """Return whether the two may have bytes in common."""
        if self.is_shared or other.is_shared:
            both = self.is_shared and other.is_shared
            return both and self.first < other.end and other.first < self.end
        return self.may_overlap or self.buffer == other.buffer

    def has_offsets_of(self, other: Region) -> bool:
        """Return whether the same offset in both is the same byte."""
        both_known = _UNKNOWN not in (self.end, other.end)
        return self.buffer == other.buffer or (self.is_shared and both_known)


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One operation's access of one part of memory.

    Attributes:
        op: the operation.
        region: what it accesses.
        reads: whether it reads there.
        writes: whether it writes there.
        is_atomic: whether what it does is atomic.
        elements: which elements its threads access; `None` if that is unknown.
    """

    op: Any
    region: Region
    reads: bool
    writes: bool
    is_atomic: bool
    elements: Elements | None

    def conflicts(self, other: Access) -> bool:
        """Return whether the order of the two matters, if they access the same bytes."""
        if self.is_atomic and other.is_atomic:
            return False
        return (self.writes or other.writes) and self.region.meets(other.region)

    def is_of_scatter(self, other: Access) -> bool:
        """Return whether the two are parts of one lego.scatter, whose order does not matter."""
        number = tiles.scatter_number_of(self.op)
        return number is not None and number == tiles.scatter_number_of(other.op)


class Accesses:
    """The accesses of the operations of a kernel.

    Attributes:
        values: the SSA value of each symbol in the origins of elements.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._reader = IndexReader()
        self.values = self._reader.values
        self._threads = WARP_THREADS * kernel.warps
        thread = self._reader.read(kernel.thread)
        assert isinstance(thread, Sym), "a CTA has a warp at least"
        self._thread = thread
        self._found: dict[Any, list[Access]] = {}
        self._read_indices()
        self._collect()

    def of(self, op: Any) -> Sequence[Access]:
        """Return the accesses of an operation, without those inside it."""
        return self._found.get(op, ())

    def _read_indices(self) -> None:
        """Read what lego.inv and lego.apply compute as expressions."""
        layouts = self._kernel.layouts
        for op in operations_in(self._kernel.launch):
            if op.name not in (dialect.INV, dialect.APPLY):
                continue
            layout, xs = layouts.of(op), [self._reader.read(x) for x in op.operands]
            is_inv = op.name == dialect.INV
            inside, outside = (1, layout.rank) if is_inv else (layout.rank, 1)
            if layout.symbols or len(xs) != inside or len(op.results) != outside:
                continue  # its results stay unknown
            derive = partial(_derived, layout, tuple(xs), is_inv=is_inv)
            found = located(self._kernel.source, op, derive)
            for result, x in zip(op.results, found, strict=True):
                self._reader.define(result, x)

    def _collect(self) -> None:
        touched: dict[Any, list[tuple[Any, Region]]] = {}
        for root, region in self._regions():
            for op in users_of(root):
                if not self._is_view(op) and self._is_inside(op):
                    touched.setdefault(op, []).append((root, region))
        written = [
            region for op, regions in touched.items() for _, region in regions if _direction(op)[1]
        ]
        for op, regions in touched.items():
            for root, region in regions:
                if any(region.meets(other) for other in written):
                    reads, writes = _direction(op)
                    known = self._elements(op, root, region) if len(regions) == 1 else None
                    access = Access(op, region, reads, writes, op.name in _ATOMICS, known)
                    self._found.setdefault(op, []).append(access)

    # Memory.
    def _regions(self) -> Iterator[tuple[Any, Region]]:
        """Yield the buffers that operations of the kernel access, with the bytes that these are."""
        may_overlap = self._may_overlap()
        seen = set()
        for op in operations_in(self._kernel.launch):
            for operand in op.operands:
                if not isinstance(operand.type, ir.MemRefType):
                    continue
                for root in sources_of(operand):
                    if root in seen:
                        continue
                    seen.add(root)
                    if is_workgroup(root.type):
                        if not self._is_only_viewed(root) and not _is_guarded(root):
                            yield root, _shared(root)
                    elif not self._is_inside_value(root):
                        yield root, Region(root, may_overlap=may_overlap)

    def _may_overlap(self) -> bool:
        """Return whether buffers of the host function may overlap."""
        op = self._kernel.launch
        while op is not None:
            if dialect.IN_PLACE in op.attributes:
                return True
            op = op.parent
        return False

    def _is_only_viewed(self, root: Any) -> bool:
        return all(use.owner.name == "memref.view" for use in root.uses)

    def _is_inside(self, op: Any) -> bool:
        launch = self._kernel.launch.operation
        while op is not None and op != launch:
            op = op.parent and op.parent.operation
        return op is not None

    def _is_inside_value(self, value: Any) -> bool:
        """Return whether a buffer is made in the kernel: private memory, each thread's own."""
        if isinstance(value, ir.BlockArgument):
            return bool(value.owner == self._kernel.body)
        return self._is_inside(value.owner.operation)

    def _is_view(self, op: Any) -> bool:
        return op.name.startswith(_VIEWS) and op.name not in _OF_MEMREF

    # Elements.
    def _elements(self, op: Any, root: Any, region: Region) -> Elements | None:
        """Return the elements that the threads access by an operation, if they are known."""
        first = _FIRST_INDEX.get(op.name)
        if first is None or dialect.SLICE in op.attributes:
            return None
        layout, factors = self._kernel.layouts.of(op), []
        index = list(op.operands)[first:]
        if op.name in dialect.PARTS_OPERATIONS:
            check_registers(op, layout, self._kernel.source)
            index, factors = tiles.segments_of(op)[1], tiles.registers_of(op)
        if layout.symbols or layout.functions or len(index) != layout.rank:
            return None
        xs = [self._reader.read(i) for i in index]
        others = frozenset[Sym]().union(*map(symbols, xs)) - {self._thread}
        if not all(is_uniform(self._kernel, self.values[s]) for s in others):
            return None
        element = ir.MemRefType(root.type).element_type
        unit = max(1, getattr(element, "width", 64) // 8)
        active = self._active(op)
        return elements(
            layout,
            unit,
            region.first,
            xs,
            factors,
            self._thread,
            active,
            of_warps=op.name in _OF_WARPS,
        )

    def _active(self, op: Any) -> Any:
        """Return which threads may run an operation: those for which the branches around it go so.

        Conditions that are not comparisons of indices with the thread's number hold for all.
        """
        active = np.ones(self._threads, np.bool_)
        block, around = op.operation.block, op.parent
        while around is not None and around.operation != self._kernel.launch.operation:
            if around.name == "scf.if":
                holds = self._holds(around.operands[0])
                if holds is not None:
                    active &= holds if block == around.regions[0].blocks[0] else ~holds
            block, around = around.operation.block, around.parent
        return active

    def _holds(self, condition: Any) -> Any:
        """Return for which threads a condition holds; `None` if that is unknown."""
        if isinstance(condition, ir.BlockArgument):
            return None
        op = condition.owner
        if op.name in ("arith.andi", "arith.ori"):
            a, b = map(self._holds, op.operands)
            if a is None or b is None:
                return None
            return a & b if op.name == "arith.andi" else a | b
        if op.name != "arith.cmpi" or not isinstance(op.operands[0].type, ir.IndexType):
            return None
        sides = [self._reader.read(x) for x in op.operands]
        if not frozenset().union(*map(symbols, sides)) <= {self._thread}:
            return None
        threads = {self._thread.name: np.arange(self._threads, dtype=np.int64)}
        a, b = (evaluate(x, threads) for x in sides)
        compare = _PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        return np.broadcast_to(compare(a, b), (self._threads,))


_PREDICATES = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
)
"""By the number of an arith.cmpi predicate. The unsigned ones are of numbers that are not negative,
as thread numbers and digits of them are."""


def _derived(layout: Layout, xs: tuple[Int, ...], *, is_inv: bool) -> Sequence[Int]:
    """Return what a lego.inv or lego.apply computes."""
    return derive_index(layout, xs[0]) if is_inv else [derive_offset(layout, xs)]


def _direction(op: Any) -> tuple[bool, bool]:
    """Return whether an operation reads the memory that it is given, and whether it writes it."""
    if op.name in _READS:
        return True, False
    return op.name not in _WRITES, True


def _is_guarded(root: Any) -> bool:
    """Return whether mbarriers order the accesses of a buffer."""
    return not isinstance(root, ir.BlockArgument) and dialect.GUARDED in root.owner.attributes


def _shared(root: Any) -> Region:
    """Return the bytes of shared memory that a buffer is, all if they are not known."""
    kind = ir.MemRefType(root.type)
    if not isinstance(root, ir.BlockArgument) and root.owner.name == "memref.view":
        start = root.owner.operands[1].owner
        if start.name == "arith.constant":
            first = ir.IntegerAttr(start.attributes["value"]).value
            return Region(root, first, first + bytes_of(kind), is_shared=True)
    return Region(root, 0, _UNKNOWN, is_shared=True)
