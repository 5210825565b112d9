"""Conversions inside of a warp: registers chosen by a thread's number, and warp shuffles.

In each round every lane sends one word and receives one. Lanes are bits, for a warp has 32, so what
the paper does over F2 (papers/linear_layouts, section 5.4) holds for every layout; the digits that
stay in registers may have any size, and only count the rounds.

A bit e that a lane is known by in the source and a register in the target, and a bit f for which it
is the other way around, are a pair: in round g a lane with f receives from one whose e is `f ^ g`.
So two rounds are enough for the pair, and in round 0 nobody moves if both are the same bit of the
lane. An f without a partner reads from a copy in the source, where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from lego_mlir.analysis.distributed.conversions.atoms import Atom, Atoms, Digit, replica_bits
from lego_mlir.analysis.distributed.factors import REPLICA, Place, weights
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.hardware.limits import WARP_THREADS

LANE_BITS = WARP_THREADS.bit_length() - 1
WORD_BYTES = 4
"""Bytes that one shuffle moves for each lane (PTX ISA, "shfl.sync": `.b32`)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A number that a thread computes from its own: `base + sum(weight * (digit ^ flip))`.

    Attributes:
        base: what all threads have in common.
        terms: weights, digits of the thread's number, and what they are XORed with.
    """

    base: int
    terms: tuple[tuple[int, Digit, int], ...] = ()

    def at(self, cta: Any, warp: Any, lane: Any) -> Any:
        """Return the number in a thread, or in arrays of threads."""
        numbers = (cta, warp, lane)
        found: Any = self.base + 0 * (cta + warp + lane)
        for weight, digit, flip in self.terms:
            value = numbers[digit.place] // digit.weight % digit.size
            found = found + weight * (value ^ flip if flip else value)
        return found


@dataclass(frozen=True, slots=True)
class Word:
    """What one shuffle moves: the elements that share a word, or one element of several words.

    Attributes:
        sent: the source's register of each element, as the sending thread chooses it.
        received: the target's registers of each element, as the receiving thread chooses them;
            several where the target holds copies.
    """

    sent: tuple[Choice, ...]
    received: tuple[tuple[Choice, ...], ...]


@dataclass(frozen=True, slots=True)
class Round:
    """Shuffles by one choice of lanes.

    Attributes:
        lane: from which lane a thread receives.
        words: what it receives.
    """

    lane: Choice
    words: tuple[Word, ...]

    @property
    def is_local(self) -> bool:
        """Whether every lane receives from itself, so that no shuffle is needed."""
        own = {(1 << k, Digit(Place.LANE, 1 << k, 2), 0) for k in range(LANE_BITS)}
        return self.lane.base == 0 and set(self.lane.terms) == own

    @property
    def is_butterfly(self) -> bool:
        """Whether lanes exchange words in pairs, as `shfl.sync.bfly` does."""
        own = {(1 << k, Digit(Place.LANE, 1 << k, 2)) for k in range(LANE_BITS)}
        return self.lane.base == 0 and {(w, d) for w, d, _ in self.lane.terms} == own


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversion inside of warps.

    Attributes:
        rounds: in any order; each fills registers of its own.
        packed: how many elements share a word.
        shuffles: `shfl.sync` instructions of a warp.
        selects: instructions that choose registers by the thread's number.
        permutes: `prmt` instructions that pack elements into words and unpack them.
    """

    rounds: tuple[Round, ...]
    packed: int
    shuffles: int
    selects: int
    permutes: int

    @property
    def is_local(self) -> bool:
        """Whether no element leaves its thread."""
        return all(r.is_local for r in self.rounds)


def plan_exchange(
    source: DistributedLayout, target: DistributedLayout, atoms: Atoms, element_bytes: int
) -> Exchange | None:
    """Return the rounds that convert two layouts, of which no element leaves its warp.

    Args:
        source: where elements are.
        target: where they go.
        atoms: their common digits.
        element_bytes: 1, 2, 4 or 8.

    Returns:
        The rounds, or None if a lane would have to send two words in one round: there is a bit f
        without a partner, and no copy in the source to read.
    """
    sides = _Sides.of(source, atoms)
    if sides is None:
        return None
    kept = [a for a in atoms if a.places == (Place.REGISTER, Place.REGISTER)]
    pack, rest = _packing(kept, element_bytes)
    copies = [
        (weight, f.size)
        for f, weight in zip(
            target.places[Place.REGISTER], weights(target.places[Place.REGISTER]), strict=True
        )
        if f.dim == REPLICA
    ]
    offsets = [sum(x) for x in product(*(range(0, w * n, w) for w, n in copies))]
    rounds = []
    for flips in product(range(2), repeat=len(sides.moving)):
        words = []
        for others in product(*(range(a.size) for a in rest)):
            sent, received = [], []
            for inner in product(*(range(a.size) for a in pack)):
                digits = [*zip(rest, others, strict=True), *zip(pack, inner, strict=True)]
                base = sum(a.source.weight * x for a, x in digits)
                sent.append(sides.sent(base, flips))
                base = sum(a.target.weight * x for a, x in digits)
                received.append(tuple(sides.received(base + copy, flips) for copy in offsets))
            words.append(Word(tuple(sent), tuple(received)))
        rounds.append(Round(sides.lane(flips), tuple(words)))

    packed = 2 ** len(pack)
    parts = max(1, element_bytes // WORD_BYTES)
    moved = sum(len(r.words) for r in rounds if not r.is_local)
    first = (0,) * len(sides.moving)
    chosen = [len(c.terms) for c in (sides.sent(0, first), sides.received(0, first))]
    held = [layout.registers // packed * parts for layout in (source, target)]
    selects = sum(n * words for n, words in zip(chosen, held, strict=True))
    if chosen == [1, 1] and rounds[0].is_local:
        # One half is chosen, sent, and put in place of what was sent.
        selects = held[0] // 2 + held[1]
    repacked = [
        layout
        for k, layout in enumerate((source, target))
        if any((a.source, a.target)[k].weight >= packed for a in pack)
    ]
    permutes = sum(x.registers // packed for x in repacked)
    return Exchange(tuple(rounds), packed, moved * parts, selects, permutes)


def _packing(kept: list[Atom], element_bytes: int) -> tuple[list[Atom], list[Atom]]:
    """Divide what stays in registers into the bits that share a word, and the rest.

    Bits that are already next to each other on both sides come first: packing them is free.
    """
    bits = sorted((a for a in kept if a.size == 2), key=lambda a: a.source.weight + a.target.weight)
    most = max(1, WORD_BYTES // element_bytes).bit_length() - 1
    pack = bits[:most]
    return pack, [a for a in kept if a not in pack]


@dataclass(frozen=True, slots=True)
class _Sides:
    """Who sends to whom, by digits.

    Attributes:
        moving: bits of source lanes that become registers (e), each with its partner (f) or None.
        fixed: bits of source lanes, each with the digit of the receiving thread that it is.
        read: atoms of source registers that become digits of threads, each with the digit of the
            sending thread that chooses them, and the index of the pair whose round flips it.
    """

    moving: tuple[tuple[Atom, Atom | None], ...]
    fixed: tuple[tuple[int, Digit], ...]
    read: tuple[tuple[Atom, Digit, int | None], ...]

    @staticmethod
    def of(source: DistributedLayout, atoms: Atoms) -> _Sides | None:
        lane, register = Place.LANE, Place.REGISTER
        leaving = [a for a in atoms if a.places == (lane, register)]
        arriving = [a for a in atoms if a.places == (register, lane)]
        # A bit that becomes the bit that it pairs with needs no shuffle in round 0.
        partners: dict[Atom, Atom] = {}
        for same in (True, False):
            for e in leaving:
                free = [f for f in arriving if f not in partners.values()]
                found = [f for f in free if not same or f.target.weight == e.source.weight]
                spare = {1 << k for k in replica_bits(source)}
                found.sort(key=lambda f: f.target.weight in spare)
                if e not in partners and found:
                    partners[e] = found[0]
        fixed: list[tuple[int, Digit]] = []
        read: list[tuple[Atom, Digit, int | None]] = []
        for k, e in enumerate(leaving):
            if e in partners:
                read.append((partners[e], e.source, k))
        copies = replica_bits(source)
        for same in (True, False):
            for f in arriving:
                bit = f.target.weight.bit_length() - 1
                done = f in partners.values() or any(f is g for g, _, _ in read)
                if done or not copies or (same and bit not in copies):
                    continue
                chosen = bit if bit in copies else copies[0]
                copies.remove(chosen)
                fixed.append((chosen, f.target))
                read.append((f, Digit(lane, 1 << chosen, 2), None))
        if len([1 for f, _, _ in read if f in arriving]) < len(arriving):
            return None
        fixed += [(k, Digit(lane, 1 << k, 2)) for k in copies]
        for a in atoms:
            if a.source.place is lane and a.target.place is not register:
                fixed.append((a.source.weight.bit_length() - 1, a.target))
            elif a.source.place is register and a.target.place in (Place.CTA, Place.WARP):
                read.append((a, a.target, None))
        return _Sides(tuple((e, partners.get(e)) for e in leaving), tuple(fixed), tuple(read))

    def lane(self, flips: tuple[int, ...]) -> Choice:
        """Return the lane that a thread receives from in a round."""
        base, terms = 0, [(1 << k, digit, 0) for k, digit in self.fixed]
        for (e, f), flip in zip(self.moving, flips, strict=True):
            if f is None:
                base += e.source.weight * flip
            else:
                terms.append((e.source.weight, f.target, flip))
        return Choice(base, tuple(terms))

    def sent(self, base: int, flips: tuple[int, ...]) -> Choice:
        """Return the register that a thread sends in a round."""
        terms = tuple(
            (a.source.weight, digit, 0 if pair is None else flips[pair])
            for a, digit, pair in self.read
        )
        return Choice(base, terms)

    def received(self, base: int, flips: tuple[int, ...]) -> Choice:
        """Return the register that a thread puts a word of a round into."""
        terms = []
        for (e, f), flip in zip(self.moving, flips, strict=True):
            if f is None:
                base += e.target.weight * flip
            else:
                terms.append((e.target.weight, f.target, flip))
        return Choice(base, tuple(terms))
