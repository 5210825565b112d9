"""Reductions along a dimension, derived from the layout alone.

The factors of the dimension say what combines what, nearest first:

    registers   a tree inside of each thread
    lanes       butterfly shuffles: for each bit of the lane's number a register is combined with
                that of the lane whose bit differs; lanes are bits in every layout
    warps       the partial results go through shared memory, so that every thread has those of all
                warps in registers; then a tree
    CTAs        the same, through the shared memory of the cluster

Every thread that had an element of a row then has the row's result: the layout of the result is the
quotient (`views.reduced`), with replicas where threads divided the dimension.

Combining must be associative, and commutative: elements are combined in the order of the hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lego_mlir.analysis.distributed.conversions.plan import Conversion, plan_conversion
from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, Places, weights
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.distributed.views import checked_dim, reduced


@dataclass(frozen=True)
class Tree:
    """Registers of a thread that are combined with each other.

    Attributes:
        groups: for each register of the result the registers of the operand, the first one first.
    """

    groups: tuple[tuple[int, ...], ...]

    @property
    def operations(self) -> int:
        """How many times a thread combines two registers."""
        return sum(len(g) - 1 for g in self.groups)


@dataclass(frozen=True)
class Butterfly:
    """Rounds in which each lane combines its registers with those of another lane.

    Attributes:
        masks: what the lane's number is XORed with, a round each (PTX ISA, "shfl.sync.bfly").
        registers: how many registers take part, unchanged in number.
    """

    masks: tuple[int, ...]
    registers: int

    @property
    def shuffles(self) -> int:
        """How many elements a warp shuffles."""
        return len(self.masks) * self.registers


@dataclass(frozen=True)
class Gather:
    """Partial results of warps or CTAs, brought into every thread that needs them.

    Attributes:
        conversion: to a layout in which threads hold all of the dimension.
    """

    conversion: Conversion


Step = Tree | Butterfly | Gather


@dataclass(frozen=True)
class Reduction:
    """The plan of a reduction.

    Attributes:
        source: the layout of what is reduced.
        dim: the dimension.
        steps: what is done, in order.
        result: the layout of the result; the dimension has size 1.
    """

    source: DistributedLayout
    dim: int
    steps: tuple[Step, ...]
    result: DistributedLayout

    def explain(self) -> str:
        """Return one line: what is combined where."""
        words = []
        for step in self.steps:
            match step:
                case Tree():
                    words.append(f"{step.operations} operations in registers")
                case Butterfly():
                    words.append(f"{step.shuffles} shuffles")
                case Gather():
                    words.append(f"({step.conversion.explain()})")
        return " → ".join(words) or "nothing to combine"


@lru_cache(maxsize=1 << 10)
def plan_reduction(layout: DistributedLayout, dim: int, element_bytes: int) -> Reduction:
    """Return how a tile is reduced along a dimension.

    Args:
        layout: of the tile.
        dim: the dimension; negative ones count from the last.
        element_bytes: 1, 2, 4 or 8.

    Raises:
        LegoError: there is no such dimension or element, or partial results are larger than shared
            memory.
    """
    dim = checked_dim(layout, dim)
    steps: list[Step] = []
    at = _tree(layout, dim, steps)

    lanes = layout.places[Place.LANE]
    masks = [
        weight << bit
        for f, weight in zip(lanes, weights(lanes), strict=True)
        if f.dim == dim
        for bit in range(f.size.bit_length() - 1)
    ]
    if masks:
        steps.append(Butterfly(tuple(sorted(masks, reverse=True)), at.registers))
        at = reduced(at, dim, (Place.LANE,))
    # Warps before CTAs: less goes between the memories of a cluster.
    for place in (Place.WARP, Place.CTA):
        if any(f.dim == dim for f in at.places[place]):
            gathered = _gathered(at, dim, place)
            steps.append(Gather(plan_conversion(at, gathered, element_bytes)))
            at = _tree(gathered, dim, steps)
    return Reduction(layout, dim, tuple(steps), at)


def _tree(layout: DistributedLayout, dim: int, steps: list[Step]) -> DistributedLayout:
    """Append the tree over a dimension's registers; return the layout after it."""
    if not any(f.dim == dim for f in layout.places[Place.REGISTER]):
        return layout
    after = reduced(layout, dim, (Place.REGISTER,))
    kept = [f for f in layout.places[Place.REGISTER] if f.dim != dim]
    groups: dict[int, list[int]] = {}
    factors = layout.places[Place.REGISTER]
    at = weights(factors)
    fresh = dict(zip(kept, weights(kept), strict=True))
    for register in range(layout.registers):
        result = sum(
            register // weight % f.size * fresh[f]
            for f, weight in zip(factors, at, strict=True)
            if f.dim != dim
        )
        groups.setdefault(result, []).append(register)
    steps.append(Tree(tuple(tuple(groups[k]) for k in range(after.registers))))
    return after


def _gathered(layout: DistributedLayout, dim: int, place: Place) -> DistributedLayout:
    """Return the layout in which a place's factors of a dimension are registers of every thread."""
    moved = [f for f in layout.places[place] if f.dim == dim]
    places: list[tuple[Factor, ...]] = list(layout.places)
    places[place] = tuple(Factor(REPLICA, f.size, 1) if f.dim == dim else f for f in places[place])
    places[Place.REGISTER] = (*places[Place.REGISTER], *moved)
    found: Places = (places[0], places[1], places[2], places[3])
    return DistributedLayout(layout.shape, found)
