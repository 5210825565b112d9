"""Everything that is done with a tile whose elements lie in fragments, done by the threads.

From a contraction on, and back to where its sums begin, the values that are the tile, or that
meet it element by element, are gathered: loop-carried values, constants, arithmetic, broadcasts
of rows, columns and numbers, reads and writes of memory. Then each is rewritten, in the order of
the program, for a thread's share of it. Nothing moves between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from lego_mlir.algebra import Layout
from lego_mlir.mlir.bindings import arith, ir, scf, ub, vector
from lego_mlir.mlir.fragments.carriers import LoopCarrier, PackedPairCarrier, PairCarrier
from lego_mlir.mlir.fragments.thread_fragment import (
    PAIR,
    Axes,
    FragmentValue,
    RestartedPairs,
    ThreadFragment,
    as_vector,
)
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.lowering.index_reader import BOUNDS
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import tile_of
from lego_mlir.mlir.tiles.structure import is_zero

ContractionLowering: TypeAlias = Callable[[FragmentValue], FragmentValue]
"""Makes the instructions of a contraction: from the sums so far to the sums."""

_T = TypeVar("_T")

_KNOWN = (
    "arithmetic of arith and math, constants of one value, vector.broadcast, lego.load, "
    "lego.store, and values that an scf.for carries"
)


class _PendingValue(NamedTuple):
    """A value that is to be spread, along which axes, and whether sums of products went into it.

    Everything that is done with those that are sums is spread; of the others it is each time made
    anew what a sum is combined with.
    """

    value: Any
    axes: Axes
    is_accumulator: bool = False


class TileDistribution:
    """The values that lie in fragments along with one contraction's sums.

    Args:
        step: for errors, and to erase what is replaced.
        thread: that runs.
        shape: of the tile.
        warps: that share it.
    """

    def __init__(
        self, step: TransformStep, thread: Thread, shape: tuple[int, int], warps: Layout
    ) -> None:
        self._step = step
        self._thread = thread
        self._shape = shape
        self._warps = warps
        self._thread_fragments: dict[int, ThreadFragment] = {}
        self._axes: dict[Any, Axes] = {}
        # An operation's hash is made of its operands, and these change: so no sets, no keys.
        self._ops: list[Any] = []
        self._accumulators: set[Any] = set()
        self._fragment_values: dict[Any, FragmentValue] = {}
        self._replaced: list[Any] = []

    # Gathering.
    def collect(self, contract: Any, candidates: Mapping[Any, _T]) -> list[_T]:
        """Find all that has to be spread with a contraction.

        Args:
            contract: the contraction.
            candidates: the contractions that are to be replaced.

        Returns:
            Those of them that share sums with it.

        Raises:
            LegoError: something is done with the tile that cannot be spread.
        """
        self._known = candidates
        pending = [_PendingValue(contract.results[0], (0, 1), is_accumulator=True)]
        while pending:
            value, axes, is_accumulator = pending.pop()
            if value not in self._axes:
                self._axes[value] = axes
                pending += self._definitions(value, axes)
            elif self._axes[value] != axes:
                raise self._unsupported(value, "runs along rows here and along columns there")
            if is_accumulator and value not in self._accumulators:
                self._accumulators.add(value)
                pending += self._uses(value, axes)
        return [found for op, found in candidates.items() if op in self._ops]

    def _definitions(self, value: Any, axes: Axes) -> list[_PendingValue]:
        """What the value that is spread is made of."""
        if isinstance(value, ir.BlockArgument):
            loop = value.owner.owner.operation
            if loop.name != "scf.for":
                raise self._unsupported(value, f"is an argument of '{loop.name}'")
            return self._loop_carried(loop, value.arg_number - 1)
        op = value.owner.operation
        self._add_op(op)
        match op.name:
            case "scf.for":
                return self._loop_carried(op, list(op.results).index(value))
            case "vector.contract" if op in self._known:
                return [_PendingValue(op.operands[2], axes)]
            case "arith.constant" if _splat(op) is not None:
                return []
            case "ub.poison" | "lego.load":
                return []
            case "lego.reduce_scatter":
                return [_PendingValue(op.operands[0], axes)]
            case "vector.broadcast":
                source = op.operands[0]
                return [_PendingValue(source, axes[-_rank(source) :])] if _rank(source) else []
            case "vector.shape_cast":
                return [_PendingValue(op.operands[0], self._shape_cast_axes(op, axes))]
            case _ if _is_elementwise(op):
                return [_PendingValue(o, axes) for o in op.operands if _rank(o)]
        raise self._unsupported(value, f"is made by '{op.name}'")

    def _uses(self, value: Any, axes: Axes) -> list[_PendingValue]:
        """What is made of a value that sums went into."""
        found: list[_PendingValue] = []
        for use in value.uses:
            op, number = use.owner.operation, use.operand_number
            match op.name:
                case "scf.for":
                    found += self._loop_carried(op, number - 3)
                case "scf.yield" if op.parent.name == "scf.for":
                    found += self._loop_carried(op.parent.operation, number)
                case "vector.contract" if op in self._known and number == 2:
                    found.append(_PendingValue(op.results[0], axes, is_accumulator=True))
                case "lego.store" if number == 0:
                    self._add_op(op)
                case "lego.reduce_scatter":
                    found.append(_PendingValue(op.results[0], axes, is_accumulator=True))
                case _ if _is_elementwise(op):
                    found.append(_PendingValue(op.results[0], axes, is_accumulator=True))
                case _:
                    raise self._unsupported(value, f"is used by '{op.name}'", op)
        return found

    def _loop_carried(self, loop: Any, number: int) -> list[_PendingValue]:
        """A value that a loop carries: before, inside, at the end of the body, and after."""
        self._add_op(loop)
        body = loop.regions[0].blocks[0]
        end = list(body.operations)[-1].operation
        return [
            _PendingValue(loop.operands[3 + number], (0, 1)),
            _PendingValue(body.arguments[1 + number], (0, 1), is_accumulator=True),
            _PendingValue(end.operands[number], (0, 1)),
            _PendingValue(loop.results[number], (0, 1), is_accumulator=True),
        ]

    def _add_op(self, op: Any) -> None:
        if op not in self._ops:
            self._ops.append(op)

    def _shape_cast_axes(self, op: Any, axes: Axes) -> Axes:
        """The axes of what a shape_cast gives dimensions of size 1, or takes them from."""
        before, after = (list(ir.VectorType(v.type).shape) for v in (op.operands[0], op.results[0]))
        long = [axis for n, axis in zip(after, axes, strict=True) if n != 1]
        if [n for n in before if n != 1] != [n for n in after if n != 1]:
            raise self._unsupported(op.results[0], "is reshaped by 'vector.shape_cast'")
        rest = iter(long)
        return tuple(next(rest) if n != 1 else 0 for n in before)

    def _unsupported(self, value: Any, why: str, op: Any = None) -> Exception:
        at = op or (value.owner.owner if isinstance(value, ir.BlockArgument) else value.owner)
        return self._step.error(
            f"the {value.type} that lies in fragments {why}",
            at.operation,
            hint=f"what can be done with it: {_KNOWN}",
        )

    # Rewriting.
    @property
    def stores(self) -> list[Any]:
        """The stores that are spread."""
        return [op for op in self._ops if op.name == "lego.store"]

    @property
    def reductions(self) -> list[Any]:
        """The reductions over a cluster that are spread."""
        return [op for op in self._ops if op.name == "lego.reduce_scatter"]

    def rewrite(
        self,
        lowerings: Mapping[Any, ContractionLowering],
        stores: Mapping[Any, Callable[[FragmentValue], None]] | None = None,
        reductions: Mapping[Any, Callable[[FragmentValue], FragmentValue]] | None = None,
        carrier: LoopCarrier | None = None,
    ) -> None:
        """Replace everything gathered.

        Args:
            lowerings: by contraction, what makes its instructions.
            stores: by lego.store, what makes those of one that is more than each thread's own.
            reductions: by lego.reduce_scatter, what makes those of it.
            carrier: how a loop carries sums from one product to the next; as numbers by default.

        Raises:
            LegoError: sums are reduced over a cluster, and `reductions` does not say how.
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
        # What others use too stays for them: the sums of another contraction may begin with it.
        for op in (*reversed(self._replaced), *read):
            if not any(True for result in op.results for _ in result.uses):
                self._step.erase(op)

    def _visit(self, block: Any) -> None:
        for op in [o.operation for o in block.operations]:
            if op in self._ops:
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
                splat = ir.DenseElementsAttr.get_splat(kind, _splat(op))
                pair = arith.ConstantOp(kind, splat).result
                self._fragment_values[op.results[0]] = FragmentValue({(0, 0): pair}, (False, False))
            case "ub.poison":
                kind = ir.VectorType.get([PAIR], ir.VectorType(op.results[0].type).element_type)
                self._fragment_values[op.results[0]] = FragmentValue(
                    {(0, 0): ub.PoisonOp(kind).result}, (False, False)
                )
            case "lego.load":
                tile = tile_of(op, self._step.pass_context)
                thread_fragment, axes = (
                    self._thread_fragment(op.results[0]),
                    self._axes[op.results[0]],
                )
                self._fragment_values[op.results[0]] = thread_fragment.load(tile, axes)
            case "lego.store":
                fragment = self._fragment_values[op.operands[0]]
                own = _lookup(self._stores, op)
                if own is not None:
                    own(fragment)
                else:
                    self._thread_fragment(op.operands[0]).store(
                        fragment, tile_of(op, self._step.pass_context)
                    )
            case "lego.reduce_scatter":
                own = _lookup(self._reductions, op)
                if own is None:
                    raise self._unsupported(op.results[0], f"is made by '{op.name}'")
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
        """A thread's share of tiles like the one that a value is, or that it meets.

        They differ in their columns: some are a slice of the others'.
        """
        columns = self._shape[1]
        if _rank(value):
            sizes = zip(ir.VectorType(value.type).shape, self._axes[value], strict=True)
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
        """What a thread holds of an operand; a number is the same for all."""
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
        """A loop that carries the parts of what is spread, as values."""
        old = op.regions[0].blocks[0]
        carriers = [self._carrier_of(op, number) for number in range(len(op.results))]
        inits: list[Any] = []
        for value, carrier in zip(list(op.operands)[3:], carriers, strict=True):
            inits += carrier.flatten(self._fragment_values[value]) if carrier else [value]
        lower, upper, stride = list(op.operands)[:3]
        loop = scf.ForOp(lower, upper, stride, inits)
        for name, attribute in named_attributes(op).items():
            loop.operation.attributes[name] = attribute
        if BOUNDS in op.attributes:
            loop.operation.attributes[BOUNDS] = _bounds(op.attributes[BOUNDS], carriers)
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
        """How a loop carries one of its values; `None` where it is not spread."""
        value = loop.results[number]
        if value not in self._axes:
            return None
        if self._carrier is not None and self._only_accumulates(loop, number):
            return self._carrier
        positions = list(self._thread_fragment(value).positions())
        return PackedPairCarrier(positions) if _is_packed(value) else PairCarrier(positions)

    def _only_accumulates(self, loop: Any, number: int) -> bool:
        """Whether all that is done with a value in a loop's body is that products are added."""
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
        """Say what the new values are, of which those that are spread may be several."""
        rest = iter(new)
        for value, carrier in zip(old, carriers, strict=True):
            if carrier is None:
                value.replace_all_uses_with(next(rest))
            else:
                self._fragment_values[value] = carrier.unflatten(rest)


def _bounds(known: Any, carriers: list[LoopCarrier | None]) -> Any:
    """What is known of the indices that a loop carries, with the parts among them."""
    bounds: list[int] = []
    for bound, carrier in zip(known, carriers, strict=True):
        bounds += [0] * carrier.count if carrier else [bound]
    return ir.DenseI64ArrayAttr.get(bounds)


def _lookup(pairs: list[tuple[Any, Any]], op: Any) -> Any:
    """What belongs to an operation; `None` if nothing does."""
    return next((what for known, what in pairs if known == op), None)


def _is_packed(value: Any) -> bool:
    """Whether a pair of elements fits one register: a loop then carries it as one value."""
    element = ir.VectorType(value.type).element_type if _rank(value) else value.type
    return bool(getattr(element, "width", 32) <= 16)


def _rank(value: Any) -> int:
    """The number of dimensions of a vector; 0 of a number."""
    return len(ir.VectorType(value.type).shape) if isinstance(value.type, ir.VectorType) else 0


def _splat(op: Any) -> Any:
    """The one value of a constant vector, as an attribute; `None` if it has several."""
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) or not ir.DenseElementsAttr(value).is_splat:
        return None
    return ir.DenseElementsAttr(value).get_splat_value()


def _is_restart(op: Any) -> bool:
    """Whether an operation lets sums begin at zero where a condition holds."""
    return bool(
        op.name == "arith.select"
        and not isinstance(op.operands[0].type, ir.VectorType)
        and is_zero(op.operands[1])
    )


def _is_elementwise(op: Any) -> bool:
    """Whether each element of the result is made of those in the same place."""
    dialect = op.name.partition(".")[0]
    return (
        dialect in ("arith", "math")
        and op.name != "arith.constant"
        and len(op.results) == 1
        and isinstance(op.results[0].type, ir.VectorType)
    )
