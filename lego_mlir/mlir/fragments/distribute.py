"""The distribution of operations on tiles in fragments over the threads.

It collects the values that are connected with a contraction (`fragments.connected_values`), and
rewrites each, in program order, for a thread's fragment. No element moves between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf, ub, vector
from lego_mlir.mlir.fragments.carriers import LoopCarrier, PackedPairCarrier, PairCarrier
from lego_mlir.mlir.fragments.connected_values import ConnectedValues, T, rank, splat_value
from lego_mlir.mlir.fragments.thread_fragment import (
    PAIR,
    FragmentValue,
    RestartedPairs,
    ThreadFragment,
    as_vector,
)
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import tile_of
from lego_mlir.mlir.tiles.structure import is_zero

ContractionLowering: TypeAlias = Callable[[FragmentValue], FragmentValue]
"""Makes the instructions of a contraction, from the old to the new accumulator."""


class TileDistribution:
    """The distribution of the values that are combined with one contraction's accumulator.

    Args:
        step: the transform step, for errors and to erase operations.
        thread: the position of the thread.
        shape: the tile's rows and columns.
        warps: the layout of the warps over the tile.
    """

    def __init__(
        self, step: TransformStep, thread: Thread, shape: tuple[int, int], warps: Layout
    ) -> None:
        self._step = step
        self._thread = thread
        self._shape = shape
        self._warps = warps
        self._thread_fragments: dict[int, ThreadFragment] = {}
        self._connected = ConnectedValues(step)
        self._fragment_values: dict[Any, FragmentValue] = {}
        self._replaced: list[Any] = []

    def collect(self, contract: Any, candidates: Mapping[Any, T]) -> list[T]:
        """Collect all values to distribute with a contraction; see `ConnectedValues.collect`."""
        return self._connected.collect(contract, candidates)

    @property
    def stores(self) -> list[Any]:
        """The stores to distribute."""
        return [op for op in self._connected.ops if op.name == dialect.STORE]

    @property
    def reductions(self) -> list[Any]:
        """The reductions over CTAs to distribute."""
        return [op for op in self._connected.ops if op.name == dialect.REDUCE_SCATTER_COLUMNS]

    def rewrite(
        self,
        lowerings: Mapping[Any, ContractionLowering],
        stores: Mapping[Any, Callable[[FragmentValue], None]] | None = None,
        reductions: Mapping[Any, Callable[[FragmentValue], FragmentValue]] | None = None,
        carrier: LoopCarrier | None = None,
    ) -> None:
        """Replace all collected operations.

        Args:
            lowerings: the lowering of each contraction.
            stores: the lowerings of the stores in which threads cooperate.
            reductions: the lowering of each lego.reduce_scatter.
            carrier: how a loop carries an accumulator that only contractions use; by default as
                one value for each element.

        Raises:
            LegoError: a reduction over CTAs has no lowering.
        """
        self._lowerings = list(lowerings.items())
        self._stores = list((stores or {}).items())
        self._reductions = list((reductions or {}).items())
        self._carrier = carrier
        first = next(iter(lowerings))
        body = first
        while body.parent.name not in ("gpu.launch", "gpu.func"):
            body = body.parent.operation
        self._visit(body.block)
        read = {o.owner.operation for op in lowerings for o in list(op.operands)[:2]}
        # Values with other uses stay: another contraction's accumulator may start with one.
        for op in (*reversed(self._replaced), *read):
            if not any(True for result in op.results for _ in result.uses):
                self._step.erase(op)

    def _visit(self, block: Any) -> None:
        for op in [o.operation for o in block.operations]:
            if op in self._connected.ops:
                with ir.InsertionPoint(op), op.location:
                    self._replace(op)
                self._replaced.append(op)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self._visit(inner)

    def _replace(self, op: Any) -> None:
        match op.name:
            case "scf.for":
                self._loop(op)
            case "vector.contract":
                lowering = _lookup(self._lowerings, op)
                self._fragment_values[op.results[0]] = lowering(
                    self._fragment_values[op.operands[2]]
                )
            case "arith.constant":
                kind = ir.VectorType.get([PAIR], ir.VectorType(op.results[0].type).element_type)
                splat = ir.DenseElementsAttr.get_splat(kind, splat_value(op))
                pair = arith.ConstantOp(kind, splat).result
                self._fragment_values[op.results[0]] = FragmentValue({(0, 0): pair}, (False, False))
            case "ub.poison":
                kind = ir.VectorType.get([PAIR], ir.VectorType(op.results[0].type).element_type)
                self._fragment_values[op.results[0]] = FragmentValue(
                    {(0, 0): ub.PoisonOp(kind).result}, (False, False)
                )
            case dialect.LOAD:
                tile = tile_of(op, self._step.pass_context)
                thread_fragment, axes = (
                    self._thread_fragment(op.results[0]),
                    self._connected.axes[op.results[0]],
                )
                self._fragment_values[op.results[0]] = thread_fragment.load(tile, axes)
            case dialect.STORE:
                fragment = self._fragment_values[op.operands[0]]
                own = _lookup(self._stores, op)
                if own is not None:
                    own(fragment)
                else:
                    self._thread_fragment(op.operands[0]).store(
                        fragment, tile_of(op, self._step.pass_context)
                    )
            case dialect.REDUCE_SCATTER_COLUMNS:
                own = _lookup(self._reductions, op)
                if own is None:
                    raise self._connected.unsupported(op.results[0], f"is made by '{op.name}'")
                self._fragment_values[op.results[0]] = own(self._fragment_values[op.operands[0]])
            case "vector.broadcast" | "vector.shape_cast":
                self._fragment_values[op.results[0]] = self._of(op.operands[0])
            case "arith.select" if _is_restart(op):
                start, before = (self._of(o) for o in list(op.operands)[1:])
                pairs = RestartedPairs(op.operands[0], start, before)
                self._fragment_values[op.results[0]] = FragmentValue(pairs, before.varies)
            case _:
                self._elementwise(op)

    def _thread_fragment(self, value: Any) -> ThreadFragment:
        """Return the thread's fragment of tiles with the columns of `value`.

        After a reduction over a cluster some tiles are a slice of the columns.
        """
        columns = self._shape[1]
        if rank(value):
            sizes = zip(ir.VectorType(value.type).shape, self._connected.axes[value], strict=True)
            columns = next((n for n, axis in sizes if axis == 1 and n != 1), columns)
        if columns not in self._thread_fragments:
            shape = self._shape[0], columns
            has_stmatrix = self._step.pass_context.target.capability >= (9, 0)
            thread_fragment = ThreadFragment(
                self._thread, shape, self._warps, has_stmatrix=has_stmatrix
            )
            self._thread_fragments[columns] = thread_fragment
        return self._thread_fragments[columns]

    def _of(self, value: Any) -> FragmentValue:
        """Return the fragment of an operand; a scalar is the same for all elements."""
        if value in self._fragment_values:
            return self._fragment_values[value]
        kind = ir.VectorType.get([PAIR], value.type)
        return FragmentValue({(0, 0): vector.BroadcastOp(kind, value).result}, (False, False))

    def _elementwise(self, op: Any) -> None:
        fragment = [self._of(o) if isinstance(o.type, ir.VectorType) else o for o in op.operands]
        fragments = [h for h in fragment if isinstance(h, FragmentValue)]
        varies = (any(h.varies[0] for h in fragments), any(h.varies[1] for h in fragments))
        kind = ir.VectorType.get([PAIR], ir.VectorType(op.results[0].type).element_type)
        attributes = named_attributes(op)
        pairs = {}
        for position in self._thread_fragment(op.results[0]).positions(varies):
            operands = [
                as_vector(h.at(*position)) if isinstance(h, FragmentValue) else h for h in fragment
            ]
            made = ir.Operation.create(
                op.name, results=[kind], operands=operands, attributes=attributes
            )
            pairs[position] = made.results[0]
        self._fragment_values[op.results[0]] = FragmentValue(pairs, varies)

    def _loop(self, op: Any) -> None:
        """Replace a loop by one that carries fragments."""
        old = op.regions[0].blocks[0]
        carriers = [self._carrier_of(op, number) for number in range(len(op.results))]
        inits: list[Any] = []
        for value, carrier in zip(list(op.operands)[3:], carriers, strict=True):
            inits += carrier.flatten(self._fragment_values[value]) if carrier else [value]
        lower, upper, stride = list(op.operands)[:3]
        loop = scf.ForOp(lower, upper, stride, inits)
        for name, attribute in named_attributes(op).items():
            loop.operation.attributes[name] = attribute
        if dialect.BOUNDS in op.attributes:
            loop.operation.attributes[dialect.BOUNDS] = _bounds(
                op.attributes[dialect.BOUNDS], carriers
            )
        old.arguments[0].replace_all_uses_with(loop.induction_variable)
        for o in [o.operation for o in old.operations]:
            loop.body.append(o)
        self._map_carried(list(old.arguments)[1:], list(loop.inner_iter_args), carriers)
        self._visit(loop.body)
        end = [o.operation for o in loop.body.operations][-1]
        with ir.InsertionPoint(end), end.location:
            ends: list[Any] = []
            for value, carrier in zip(end.operands, carriers, strict=True):
                ends += carrier.flatten(self._fragment_values[value]) if carrier else [value]
            scf.YieldOp(ends)
        self._replaced.append(end)
        self._map_carried(list(op.results), list(loop.results), carriers)

    def _carrier_of(self, loop: Any, number: int) -> LoopCarrier | None:
        """Return how a loop carries one of its values, `None` if it is not distributed."""
        value = loop.results[number]
        if value not in self._connected.axes:
            return None
        if self._carrier is not None and self._only_accumulates(loop, number):
            return self._carrier
        positions = list(self._thread_fragment(value).positions())
        return PackedPairCarrier(positions) if _is_packed(value) else PairCarrier(positions)

    def _only_accumulates(self, loop: Any, number: int) -> bool:
        """Return whether contractions are the only uses of a carried value in the loop's body."""
        body = loop.regions[0].blocks[0]
        uses = [(u.owner.operation, u.operand_number) for u in body.arguments[1 + number].uses]
        if len(uses) == 1 and _is_restart(uses[0][0]):
            ((restart, _),) = uses
            uses = [(u.owner.operation, u.operand_number) for u in restart.results[0].uses]
        end = list(body.operations)[-1].operation.operands[number]
        if isinstance(end, ir.BlockArgument) or not uses:
            return False
        return _lookup(self._lowerings, end.owner.operation) is not None and all(
            k == 2 and _lookup(self._lowerings, user) is not None for user, k in uses
        )

    def _map_carried(
        self, old: list[Any], new: list[Any], carriers: list[LoopCarrier | None]
    ) -> None:
        """Map the old loop's values to those of the new one, several for each distributed one."""
        rest = iter(new)
        for value, carrier in zip(old, carriers, strict=True):
            if carrier is None:
                value.replace_all_uses_with(next(rest))
            else:
                self._fragment_values[value] = carrier.unflatten(rest)


def _bounds(known: Any, carriers: list[LoopCarrier | None]) -> Any:
    """Return the bounds of the carried indices, with 0 for each value of a fragment."""
    bounds: list[int] = []
    for bound, carrier in zip(known, carriers, strict=True):
        bounds += [0] * carrier.count if carrier else [bound]
    return ir.DenseI64ArrayAttr.get(bounds)


def _lookup(pairs: list[tuple[Any, Any]], op: Any) -> Any:
    """Return the entry of an operation, else `None`."""
    return next((entry for known, entry in pairs if known == op), None)


def _is_packed(value: Any) -> bool:
    """Return whether a pair of elements fits one register, and is carried as one value."""
    element = ir.VectorType(value.type).element_type if rank(value) else value.type
    return bool(getattr(element, "width", 32) <= 16)


def _is_restart(op: Any) -> bool:
    """Return whether an operation resets an accumulator to zero under a scalar condition."""
    return bool(
        op.name == "arith.select"
        and not isinstance(op.operands[0].type, ir.VectorType)
        and is_zero(op.operands[1])
    )
