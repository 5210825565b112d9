"""Rings that all threads of a CTA fill and read: their copies in groups, and the CTA's barrier.

    "lego.commit"(%ring, %i + 2)
    %t = "lego.wait"(%ring, %i)

becomes

    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 2            the groups of tiles %i + 1 and %i + 2 may be on their way
    gpu.barrier

How many groups are younger than that of a tile follows from the numbers of tiles, which are index
expressions: where tile n of a ring is committed, the next one of another ring is known, and so is
the next one where tile n is waited for. A branch that copies one more tile, if there is one, is
followed by its group, which may be empty, so that their count does not depend on branches.

Tiles of the same number that are committed one right behind the other are one group.

A stage is empty when all threads are behind a barrier behind the release of its tile. That of a
wait is enough, where one stands between them; else there is one more. Where that would be one more,
and each thread reads what it has copied itself (`private_rings`), neither has a barrier.

Source: PTX ISA 9.7.9.25.3 (cp.async.commit_group, cp.async.wait_group).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int
from lego_mlir.index.proofs.prover import is_nonnegative
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.ring_numbers import RingNumbers, distance
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses
from lego_mlir.mlir.tile_passes.lower_pipelines.private_rings import private_rings

_LOOP, _BRANCH = "scf.for", "scf.if"
_BETWEEN = ("arith.", "affine.")
"""What may stand between waits that share a barrier."""


@dataclass(frozen=True)
class Barrier:
    """What a wait for tiles becomes.

    Attributes:
        pending: how many groups may be on their way behind it; `None` if no tile comes in groups.
        is_of_thread: whether each thread waits for its own copies only.
    """

    pending: int | None
    is_of_thread: bool


class CopyGroups:
    """The groups of copies of one kernel, as its operations on rings make them.

    Args:
        accesses: of the kernel, whose rings are not lowered yet.
        rings: those that all threads fill and read.
        in_groups: those of them whose copies are made by cp.async.

    Attributes:
        barriers: of each wait with a barrier; those right behind it share it.
        acquires: the acquires before which one stands.
        commits: the commits that end a group.
    """

    def __init__(self, accesses: Accesses, rings: set[Any], in_groups: set[Any]) -> None:
        kernel = accesses.kernel
        self._rings = rings
        self._private: set[Any] = set()
        self._order = _Order()
        self._barriers_before: dict[Any, Any | None] = {}
        self._numbers = list(_walked(kernel, kernel.body, rings)) if rings else []
        self._last_of_group = {ring: self._last_ring(ring, in_groups) for ring in in_groups}
        self._groups = set(self._last_of_group.values())
        users = [use.owner.operation for ring in rings for use in ring.uses]
        needing = self._needing(users)
        self._private = private_rings(accesses, {op.operands[0] for op in needing} & in_groups)
        self._barriers_before.clear()
        self.acquires = self._needing(users) if self._private else needing
        waits = [op for op in users if op.name == pipelines.WAIT and self._is_first(op)]
        self.barriers = {wait: self._barrier(wait) for wait in waits}
        self.commits = {op for ring in self._groups for op in _commits(ring)}

    def end_of_tile(self, commit: Any) -> Any:
        """Return the operation before which the group of a tile ends, if it is one of cp.async.

        It stands behind a branch without another way, which copies the tile if there is one.
        """
        around = commit.parent.operation
        is_branch = around.name == _BRANCH and not any(
            len(block.operations) > 1 for block in around.regions[1].blocks
        )
        return self._order.next(around if is_branch else commit)

    def _barrier(self, wait: Any) -> Barrier:
        """Return what a wait becomes, and those right behind it."""
        together = self._together(wait)
        in_groups = [op for op in together if op.operands[0] in self._last_of_group]
        return Barrier(
            min(map(self._younger, in_groups)) if in_groups else None,
            all(op.operands[0] in self._private for op in together),
        )

    def _is_first(self, wait: Any) -> bool:
        """Return whether no other wait of these rings stands right before one."""
        found = self._order.previous(wait)
        while found is not None and found.name.startswith(_BETWEEN):
            found = self._order.previous(found)
        return found is None or not self._is_wait(found)

    def _needing(self, users: list[Any]) -> set[Any]:
        """Return the acquires before which a barrier has to stand."""
        acquires = [op for op in users if op.name == pipelines.ACQUIRE]
        return {
            op for op in acquires if op.operands[0] not in self._private and self._needs_barrier(op)
        }

    def _needs_barrier(self, acquire: Any) -> bool:
        """Return whether no barrier stands between the release of a stage and its acquire."""
        numbers = self._of(acquire)
        if numbers is None:
            return True
        ring = acquire.operands[0]
        least = distance(numbers.number(acquire), pipelines.stages_of(ring) - 1)
        barrier = self._barrier_before(acquire)
        released: Int = 0
        if barrier is not None:
            released = numbers.before[barrier].get((ring, pipelines.RELEASE), 0)
        return not is_nonnegative(distance(released, least))

    def _younger(self, wait: Any) -> int:
        """Return how many groups follow that of the tile of a wait; 0 if it is not known."""
        numbers = self._of(wait)
        if numbers is None:
            return 0
        ring, state = self._last_of_group[wait.operands[0]], numbers.before[wait]
        commits = [op for op in _commits(ring) if op in numbers.before]
        total: int = 0
        for other in self._groups:
            kind = (other, pipelines.COMMIT)
            if kind not in state:
                continue
            ahead = distance(state[kind], numbers.number(wait))
            committed = ((numbers.before[op].get(kind, 0), op) for op in commits)
            behind = [numbers.least(distance(numbers.number(op), n)) for n, op in committed]
            known = [distance for distance in behind if distance is not None]
            if not isinstance(ahead, int) or len(known) < len(behind):
                return 0
            total += max(0, ahead + min(known) - int(other == ring))
        return total

    def _last_ring(self, ring: Any, in_groups: set[Any]) -> Any:
        """Return the ring whose commits end the groups of a ring's tiles: itself, if no other's."""
        found = {self._last_commit(op, in_groups).operands[0] for op in _commits(ring)}
        return found.pop() if len(found) == 1 else ring

    def _last_commit(self, commit: Any, in_groups: set[Any]) -> Any:
        """Return the last commit behind one of tiles with its number, with only copies between."""
        numbers, last = self._of(commit), commit
        op = self._order.next(commit)
        while op is not None and op.name.startswith((*_BETWEEN, *pipelines.PRODUCES)):
            if op.name == pipelines.COMMIT and op.operands[0] in in_groups:
                if numbers is None or numbers.number(op) != numbers.number(commit):
                    break
                last = op
            op = self._order.next(op)
        return last

    def _of(self, op: Any) -> RingNumbers | None:
        return next((numbers for numbers in self._numbers if op in numbers.before), None)

    def _is_wait(self, op: Any) -> bool:
        return bool(op.name == pipelines.WAIT and op.operands[0] in self._rings)

    def _has_barrier(self, op: Any) -> bool:
        """Return whether an operation is a wait for tiles that other threads have copied."""
        return self._is_wait(op) and op.operands[0] not in self._private

    def _together(self, wait: Any) -> list[Any]:
        """Return a wait, and those right behind it."""
        found, op = [wait], wait
        while (op := self._order.next(op)) is not None:
            if self._is_wait(op):
                found.append(op)
            elif not op.name.startswith(_BETWEEN):
                break
        return found

    def _barrier_before(self, acquire: Any) -> Any | None:
        """Return the last wait that is always executed before an acquire; `None` if unknown."""
        passed: list[Any] = []
        op, found = acquire, None
        while op not in self._barriers_before:
            passed.append(op)
            before = self._order.previous(op)
            if before is None:
                op = op.parent.operation
                if op.name == _BRANCH:
                    continue
                break
            if self._has_barrier(before):
                found = before
                break
            if len(before.regions) and any(map(self._has_barrier, operations_in(before))):
                break
            op = before
        else:
            found = self._barriers_before[op]
        self._barriers_before |= dict.fromkeys(passed, found)
        return found


def _walked(kernel: TileKernel, block: Any, rings: set[Any]) -> Iterator[RingNumbers]:
    """Yield the numbers in a block; where its groups do not go on, in each loop that stands alone.

    The body of a loop does if it begins with nothing on its way: it waits for the tiles that it
    copies.
    """
    numbers = RingNumbers(kernel, whole=True)
    begin = numbers.begin(block)
    kinds = (pipelines.COMMIT, pipelines.WAIT)
    if all(len({begin.get((ring, kind), 0) for kind in kinds}) == 1 for ring in rings):
        try:
            numbers.walk(block, begin)
        except LegoError:
            numbers.before.clear()
        else:
            yield numbers
            return
    for op in block.operations:
        if op.operation.name == _LOOP:
            yield from _walked(kernel, op.operation.regions[0].blocks[0], rings)


def _commits(ring: Any) -> list[Any]:
    return [use.owner.operation for use in ring.uses if use.owner.name == pipelines.COMMIT]


class _Order:
    """The operations of blocks in order, as they are when a block is first asked for."""

    def __init__(self) -> None:
        self._listed: dict[Any, list[Any]] = {}
        self._places: dict[Any, int] = {}

    def next(self, op: Any) -> Any | None:
        """Return the operation behind one in its block."""
        listed, at = self._find(op)
        return listed[at + 1] if at + 1 < len(listed) else None

    def previous(self, op: Any) -> Any | None:
        """Return the operation before one in its block."""
        listed, at = self._find(op)
        return listed[at - 1] if at else None

    def _find(self, op: Any) -> tuple[list[Any], int]:
        block = op.block
        if block not in self._listed:
            self._listed[block] = [each.operation for each in block.operations]
            self._places |= {each: k for k, each in enumerate(self._listed[block])}
        return self._listed[block], self._places[op]
