"""Which scalars are the same in CTAs of a cluster that run programs of their own.

The number of a CTA is `n * C + r` in cluster C of n CTAs, with the rank r. CTAs have a scalar in
common if its index expression is the same for their ranks, and if the bounds of the loops whose
variables it has do not depend on r. So the two CTAs of a cluster that compute tiles one below the
other load the same tile of operand B; of two by two, those of a row load one of operand A.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from lego_mlir.index import Int, Sym, construct, substitute, symbols
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import sizes_of, with_read_sizes

_LAUNCH, _LOOP, _FUNCTION = "gpu.launch", "scf.for", "func.func"


class ClusterValues:
    """The scalars of one kernel.

    Args:
        kernel: a kernel whose CTAs run programs of their own.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._reader = IndexReader()
        self._cluster = Sym("cluster", 0)
        self._rank = Sym("rank", 0, kernel.cluster - 1)
        number = construct.add(construct.mul(self._cluster, kernel.cluster), self._rank)
        self._reader.define(kernel.body.arguments[0], number)
        for op in operations_in(kernel.launch):
            if op.name == "gpu.block_id" and "dim x" in str(op.attributes["dimension"]):
                self._reader.define(op.results[0], number)
            elif op.name == dialect.INV:
                self._define_index(op)

    def _define_index(self, op: Any) -> None:
        """Read the index that a layout has at an offset.

        The offset is below the layout's size, so its sizes are positive, and the remainder by the
        size is the offset itself. Of both forms the one counts that fewer ranks tell apart.
        """
        layout = self._kernel.layouts.of(op)
        for value in sizes_of(op, layout).values() if layout.symbols else ():
            size = self._reader.read(value)
            if isinstance(size, Sym) and size.lo == 0:
                positive = self._reader.symbol(value, size.name, 1, size.hi, size.divisors)
                self._reader.define(value, positive)
        layout = with_read_sizes(op, layout, self._reader)

        @cache
        def index() -> list[Int]:
            offset = self._reader.read(op.operands[0])
            forms = [layout.inv(x) for x in (offset, construct.mod(offset, layout.size))]
            return [min(same, key=self._variants) for same in zip(*forms, strict=True)]

        def along(dim: int) -> Int:
            return index()[dim]

        for dim, result in enumerate(op.results):  # most decide about no copy
            self._reader.defer(result, partial(along, dim))

    def _variants(self, x: Int) -> int:
        """Return the number of different values of an expression in the CTAs of a cluster."""
        return len({substitute(x, {self._rank: rank}) for rank in range(self._kernel.cluster)})

    def is_common(self, value: Any) -> bool:
        """Return whether a scalar is known to be the same in all CTAs of a cluster."""
        return len(set(self.masks([value]))) == 1

    def is_rank(self, value: Any) -> bool:
        """Return whether a scalar is known to be the rank of the CTA in its cluster."""
        read = self._reader.read(value)
        return all(
            substitute(read, {self._rank: rank}) == rank for rank in range(self._kernel.cluster)
        )

    def masks(self, values: Sequence[Any]) -> tuple[int, ...]:
        """Return for each rank the mask of the CTAs in which scalars are known to be the same."""
        ranks = range(self._kernel.cluster)
        if not all(isinstance(value.type, ir.IndexType) for value in values):
            return tuple(1 << rank for rank in ranks)
        read = [self._reader.read(value) for value in values]
        found = {symbol for x in read for symbol in symbols(x)} - {self._rank}
        if not all(map(self._is_common, found)):
            return tuple(1 << rank for rank in ranks)
        own = [tuple(substitute(x, {self._rank: rank}) for x in read) for rank in ranks]
        return tuple(sum(1 << k for k in ranks if own[k] == own[rank]) for rank in ranks)

    def _is_common(self, symbol: Sym) -> bool:
        if symbol == self._cluster:
            return True
        value = self._reader.values.get(symbol)
        if not isinstance(value, ir.BlockArgument):
            return value is not None and value.owner.operation.parent == self._kernel.launch.parent
        owner, number = value.owner.owner.operation, value.arg_number
        if owner.name == _LOOP:
            return number == 0 and all(map(self.is_common, list(owner.operands)[:3]))
        # Clusters lie along x. What the host computes is the same for all CTAs.
        return bool(owner.name == _FUNCTION or (owner.name == _LAUNCH and number in (1, 2)))

    def uncommon_control(self, op: Any) -> Any | None:
        """Return the loop or branch around an operation that CTAs may not execute alike, if any."""
        around = op.parent.operation
        while around != self._kernel.launch:
            is_common = around.name == _LOOP and all(map(self.is_common, list(around.operands)[:3]))
            if len(around.operands) and not is_common:
                return around
            around = around.parent.operation
        return None
