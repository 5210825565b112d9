"""What the operations of a kernel access: bytes of shared memory, and buffers of the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.insert_barriers.elements import Elements, elements
from lego_mlir.mlir.tile_passes.insert_barriers.regions import UNKNOWN, Access, Region
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
    tiles.SEND_PARTS,
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
_VIEWS = (
    *(dialect.PICK, "memref.", "arith."),
    *("llvm.inttoptr", "llvm.getelementptr", "llvm.addrspacecast"),
)
_OF_MBARRIERS = "nvvm.mbarrier."
"""Prefix of what is done to mbarriers: they are objects of their own, and their begin is ordered by
a barrier of the cluster."""
_OF_MEMREF = ("memref.load", "memref.store", "memref.atomic_rmw")


class Accesses:
    """The accesses of the operations of a kernel.

    Args:
        kernel: the kernel.
        inside: its operations.

    Attributes:
        values: the SSA value of each symbol in the origins of elements.
    """

    def __init__(self, kernel: TileKernel, inside: Sequence[Any]) -> None:
        self._kernel = kernel
        self._reader = IndexReader()
        self.values = self._reader.values
        self._threads = WARP_THREADS * kernel.warps
        thread = self._reader.read(kernel.thread)
        assert isinstance(thread, Sym), "a CTA has a warp at least"
        self._thread = thread
        self._cta = self._rank(inside)
        self._found: dict[Any, list[Access]] = {}
        self._read_indices(inside)
        self._collect(inside)

    def of(self, op: Any) -> Sequence[Access]:
        """Return the accesses of an operation, without those inside it."""
        return self._found.get(op, ())

    def _read_indices(self, operations: Sequence[Any]) -> None:
        """Read what lego.inv and lego.apply compute as expressions."""
        layouts = self._kernel.layouts
        for op in operations:
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

    def _collect(self, inside: Sequence[Any]) -> None:
        touched: dict[Any, list[tuple[Any, Region]]] = {}
        sent = set()
        for root, region in self._regions(inside):
            users = list(users_of(root))
            if any(op.name == tiles.SEND_PARTS and op.operands[0] == root for op in users):
                sent.add(root)
            for op in users:
                if op.name.startswith(_OF_MBARRIERS) or _is_signalled(op, root):
                    continue
                if not self._is_view(op) and self._is_inside(op):
                    touched.setdefault(op, []).append((root, region))
        all_of: dict[Any, list[tuple[Any, Access]]] = {}
        for op, regions in touched.items():
            for root, region in regions:
                kinds = _is_atomic(op), dialect.EXCLUSIVE in op.attributes, root in sent
                access = Access(op, region, *_direction(op, region), *kinds, None)
                all_of.setdefault(access.kind, []).append((root, access))
        firsts = [alike[0][1] for alike in all_of.values()]
        for number, (first, alike) in enumerate(zip(firsts, all_of.values(), strict=True)):
            if not any(first.conflicts(x) or x.conflicts(first) for x in firsts):
                continue  # so does none that is alike
            for root, access in alike:
                op = access.op
                known = self._elements(op, root, access.region) if len(touched[op]) == 1 else None
                found = replace(access, elements=known, group=number)
                self._found.setdefault(op, []).append(found)

    # Memory.
    def _regions(self, inside: Sequence[Any]) -> Iterator[tuple[Any, Region]]:
        """Yield the buffers that operations of the kernel access, with the bytes that these are."""
        may_overlap = self._may_overlap()
        seen: set[Any] = set()
        asked: set[Any] = set()
        for op in inside:
            for operand in op.operands:
                if operand in asked:
                    continue
                asked.add(operand)
                if not isinstance(operand.type, ir.MemRefType):
                    continue
                for root in sources_of(operand):
                    if root in seen:
                        continue
                    seen.add(root)
                    if is_workgroup(root.type):
                        if not self._is_only_viewed(root) and not _is(root, dialect.GUARDED):
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
        """Return whether a value is made in the kernel; such a buffer is each thread's own."""
        of_block = isinstance(value, ir.BlockArgument)
        return self._is_inside((value.owner.owner if of_block else value.owner).operation)

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
        if layout.functions or len(index) != layout.rank + len(layout.symbols):
            return None
        index, sizes = index[: layout.rank], index[layout.rank :]
        if any(self._is_inside_value(n) for n in sizes):
            return None  # they may change
        xs, ns = ([self._reader.read(i) for i in each] for each in (index, sizes))
        threads = self._numbers(region)
        others = frozenset[Sym]().union(*map(symbols, xs)) - threads.keys()
        if not all(is_uniform(self._kernel, self.values[s]) for s in others):
            return None
        element = ir.MemRefType(root.type).element_type
        unit = max(1, getattr(element, "width", 64) // 8)
        active = self._active(op, threads)
        return elements(
            layout,
            unit,
            region.first,
            xs,
            ns,
            factors,
            threads,
            active,
            of_warps=op.name in _OF_WARPS,
            cta_threads=self._threads,
        )

    def _rank(self, inside: Sequence[Any]) -> Sym | None:
        """Return the symbol of the CTA's number in its cluster, if the kernel reads it."""
        for op in inside:
            if op.name == "gpu.cluster_block_id":
                rank = self._reader.read(op.results[0])
                return rank if isinstance(rank, Sym) else None
        return None

    def _numbers(self, region: Region) -> dict[Sym, NDArray[np.int64]]:
        """Return the numbers of the threads that have a memory: of the CTA, or of the cluster."""
        threads = np.arange(self._threads, dtype=np.int64)
        if region.is_shared or self._kernel.ctas == 1:
            return {self._thread: threads}
        found = {self._thread: np.tile(threads, self._kernel.ctas)}
        if self._cta is not None:
            found[self._cta] = np.repeat(np.arange(self._kernel.ctas), self._threads)
        return found

    def _active(self, op: Any, threads: Mapping[Sym, NDArray[np.int64]]) -> Any:
        """Return which threads may run an operation: those for which the branches around it go so.

        Conditions that are not comparisons of indices with the thread's number hold for all.

        Args:
            op: the operation.
            threads: the numbers of the threads.
        """
        active = np.ones(len(threads[self._thread]), np.bool_)
        block, around = op.operation.block, op.parent
        while around is not None and around.operation != self._kernel.launch.operation:
            if around.name == "scf.if":
                holds = self._holds(around.operands[0], threads)
                if holds is not None:
                    active &= holds if block == around.regions[0].blocks[0] else ~holds
            block, around = around.operation.block, around.parent
        return active

    def _holds(self, condition: Any, threads: Mapping[Sym, NDArray[np.int64]]) -> Any:
        """Return for which threads a condition holds; `None` if that is unknown."""
        if isinstance(condition, ir.BlockArgument):
            return None
        op = condition.owner
        if op.name in ("arith.andi", "arith.ori"):
            a, b = (self._holds(x, threads) for x in op.operands)
            if a is None or b is None:
                return None
            return a & b if op.name == "arith.andi" else a | b
        if op.name != "arith.cmpi" or not isinstance(op.operands[0].type, ir.IndexType):
            return None
        sides = [self._reader.read(x) for x in op.operands]
        if not frozenset().union(*map(symbols, sides)) <= threads.keys():
            return None
        values = {symbol.name: numbers for symbol, numbers in threads.items()}
        a, b = (evaluate(x, values) for x in sides)
        compare = _PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        return np.broadcast_to(compare(a, b), threads[self._thread].shape)


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


def _is_signalled(op: Any, buffer: Any) -> bool:
    """Return whether an operation counts its bytes at an mbarrier in this buffer."""
    return bool(op.name == tiles.SEND_PARTS and op.operands[0] != buffer)


def _derived(layout: Layout, xs: tuple[Int, ...], *, is_inv: bool) -> Sequence[Int]:
    """Return what a lego.inv or lego.apply computes."""
    return derive_index(layout, xs[0]) if is_inv else [derive_offset(layout, xs)]


def _direction(op: Any, region: Region) -> tuple[bool, bool]:
    """Return whether an operation reads memory that it is given, and whether it writes it."""
    if op.name == tiles.COPY_PARTS:
        return not region.is_shared, region.is_shared
    if op.name in _READS:
        return True, False
    return op.name not in _WRITES or _is_atomic(op), True


def _is_atomic(op: Any) -> bool:
    """Return whether an operation updates memory atomically."""
    return op.name in _ATOMICS or (op.name in _WRITES and dialect.KIND in op.attributes)


def _is(root: Any, name: str) -> bool:
    """Return whether a buffer has an attribute of this name."""
    return not isinstance(root, ir.BlockArgument) and name in root.owner.attributes


def _shared(root: Any) -> Region:
    """Return the bytes of shared memory that a buffer is, all if they are not known."""
    kind, ordered = ir.MemRefType(root.type), _is(root, dialect.ORDERED)
    if not isinstance(root, ir.BlockArgument) and root.owner.name == "memref.view":
        start = root.owner.operands[1].owner
        if start.name == "arith.constant":
            first = ir.IntegerAttr(start.attributes["value"]).value
            end = first + bytes_of(kind)
            return Region(root, first, end, is_shared=True, is_ordered=ordered)
    return Region(root, 0, UNKNOWN, is_shared=True, is_ordered=ordered)
