"""The analysis of a kernel's accesses over loops and branches, and the barriers it inserts.

Where two threads access the same bytes and one of them writes, a barrier has to stand between the
accesses. The analysis follows the program with the accesses that are *pending*: those that no
barrier has separated from where it is. An operation whose accesses conflict with a pending one gets
a barrier before it, of the warp if only threads of one warp meet, and none if no different threads
do. Behind a branch what either way left is pending; a loop's body is entered with what its end
leaves, too, until nothing changes.

In a cluster each CTA has shared memory of its own, so a barrier of the CTA separates its accesses.
Other memory, and what CTAs send one another, takes a barrier of the cluster.

A barrier is for all threads. Where those take a branch differently it stands before the branch.

Source: Tillet, Kung and Cox, "Triton", MAPL 2019, section 5.3, which places barriers so for whole
buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lego_mlir.index import symbols
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.insert_barriers.accesses import Accesses
from lego_mlir.mlir.tile_passes.insert_barriers.elements import Meeting, Meetings
from lego_mlir.mlir.tile_passes.insert_barriers.regions import Access
from lego_mlir.mlir.tile_passes.insert_barriers.uniform import is_divergent
from lego_mlir.mlir.tile_passes.role_barriers import make_barrier

WARP_BARRIER = "nvvm.bar.warp.sync"
_CLUSTER_BARRIER = "nvvm.cluster.wait"
_BARRIERS = ("gpu.barrier", WARP_BARRIER, _CLUSTER_BARRIER)


@dataclass(frozen=True, slots=True)
class _Pending:
    """An access that no barrier has separated from here.

    Attributes:
        access: the access.
        loops: those whose iteration has ended since: values of their bodies may have changed.
    """

    access: Access
    loops: frozenset[Any] = frozenset()


_State: TypeAlias = dict[_Pending, Meeting]
"""The pending accesses, each with the barrier that has followed it, of the most threads."""


def insert_barriers(kernel: TileKernel) -> None:
    """Insert the barriers that a kernel needs in shared memory and in buffers.

    Raises:
        LegoError: one would have to stand where not all threads of a CTA come.
    """
    inside = list(operations_in(kernel.launch))
    placement = _Placement(kernel, inside)
    while placement.changed:
        placement.changed = False
        placement.block(kernel.body, {})
    for op, level in placement.before.items():
        with ir.InsertionPoint(op), op.location:
            if level is Meeting.CLUSTER:
                nvvm.cluster_arrive()
                nvvm.cluster_wait()
            elif level is Meeting.WARP or kernel.warps == 1:
                all_lanes = arith.ConstantOp(ir.IntegerType.get_signless(32), -1).result
                ir.Operation.create(WARP_BARRIER, operands=[all_lanes])
            else:
                make_barrier(op)
    for op in inside:
        if op.name == tiles.END_READS:
            op.erase()  # it has no other purpose


class _Placement:
    """The barriers that have been found to be needed.

    Args:
        kernel: the kernel.
        inside: its operations.

    Attributes:
        before: operations with a barrier before them, and its kind.
        changed: whether the last pass over the kernel has found another one.
    """

    def __init__(self, kernel: TileKernel, inside: Sequence[Any]) -> None:
        self._kernel = kernel
        self._accesses = Accesses(kernel, inside)
        self._relevant = self._relevant_operations(inside)
        self._divergent: dict[Any, bool] = {}
        self._meetings = Meetings()
        self._conflicts: dict[tuple[int, int], bool] = {}
        self._met: dict[tuple[Access, Access, bool], Meeting] = {}
        self.before: dict[Any, Meeting] = {}
        self.changed = True

    # The walk.
    def block(self, block: Any, state: _State) -> _State:
        """Return what is pending behind a block that is entered with what is pending in `state`."""
        for op in self._relevant.get(block, ()):
            state = self._operation(op, state)
        return state

    def _relevant_operations(self, inside: Sequence[Any]) -> dict[Any, list[Any]]:
        """Return the operations of each block that accesses or barriers are in, in order."""
        found: dict[Any, list[Any]] = {}
        for op in inside:
            if op.name in _BARRIERS or self._accesses.of(op) or len(op.regions):
                found.setdefault(op.block, []).append(op)
        return found

    def _operation(self, op: Any, state: _State) -> _State:
        level = self.before.get(op, Meeting.NONE)
        behind = self._behind(state, level) if level is not Meeting.NONE else state
        found = self._following(op, behind)
        # A barrier that one of its branches needs stands before the other one, too.
        is_known = self.before.get(op, Meeting.NONE) is level
        return found if is_known else self._operation(op, state)

    def _following(self, op: Any, state: _State) -> _State:
        """Return what is pending behind an operation."""
        match op.name:
            case "scf.if":
                ends = [
                    self.block(region.blocks[0], dict(state))
                    for region in op.regions
                    if len(region.blocks)
                ]
                return _joined(*ends, *([state] if len(ends) < 2 else []))
            case "scf.for":
                return self._loop(op, state)
            case "scf.while":
                return self._while(op, state)
            case pipelines.ROLE:
                return _joined(state, self.block(op.regions[0].blocks[0], dict(state)))
            case name if name == _CLUSTER_BARRIER:
                return self._behind(state, Meeting.CLUSTER)
            case "gpu.barrier":
                return self._behind(state, Meeting.CTA)
            case name if name == WARP_BARRIER:
                level = Meeting.WARP if self._kernel.warps > 1 else Meeting.CTA
                return self._behind(state, level)
        for access in self._accesses.of(op):
            level = max(
                (self._meeting(p, synced, access) for p, synced in state.items()),
                default=Meeting.NONE,
            )
            if level is not Meeting.NONE:
                self._need(op, access, level)
                state = self._behind(state, level)
        found = {_Pending(access): Meeting.NONE for access in self._accesses.of(op)}
        return {**state, **found} if found else state

    def _loop(self, op: Any, state: _State) -> _State:
        entered = state
        while True:
            end = _next_iteration(op, self.block(op.regions[0].blocks[0], dict(entered)))
            following = _joined(entered, end)
            if following == entered:
                return following
            entered = following

    def _while(self, op: Any, state: _State) -> _State:
        before, after = (region.blocks[0] for region in op.regions)
        entered = state
        while True:
            decided = self.block(before, dict(entered))
            end = _next_iteration(op, self.block(after, dict(decided)))
            following = _joined(entered, end)
            if following == entered:
                return decided
            entered = following

    # Conflicts.
    def _meeting(self, pending: _Pending, synced: Meeting, access: Access) -> Meeting:
        """Return which threads a barrier would have to separate."""
        first = pending.access
        groups = first.group, access.group
        if groups not in self._conflicts:
            self._conflicts[groups] = first.conflicts(access)
        if not self._conflicts[groups]:
            return Meeting.NONE
        if first.is_of_scatter(access) and not pending.loops:
            return Meeting.NONE
        same_time = not any(self._changes(first, loop) for loop in pending.loops)
        key = first, access, same_time
        if key not in self._met:
            a, b = first.elements, access.elements
            comparable = first.region.has_offsets_of(access.region)
            if a is None or b is None or not comparable or access.is_sent:
                self._met[key] = Meeting.CLUSTER
            else:
                self._met[key] = self._meetings.of(a, b, same_time=same_time)
        level = self._met[key]
        if not self._is_of_cluster(access) or _alternates(first, access):
            level = min(level, Meeting.CTA)
        return Meeting.NONE if level <= synced else level

    def _is_of_cluster(self, access: Access) -> bool:
        """Return whether other CTAs of the cluster access the same memory."""
        return self._kernel.ctas > 1 and (access.is_sent or not access.region.is_shared)

    def _behind(self, state: _State, level: Meeting) -> _State:
        """Return what is pending behind a barrier."""
        if level is Meeting.WARP:
            return {p: max(synced, level) for p, synced in state.items()}
        if level is Meeting.CLUSTER:
            return {}
        return {p: level for p in state if self._is_of_cluster(p.access)}

    def _changes(self, access: Access, loop: Any) -> bool:
        """Return whether an origin differs from one iteration of a loop to the next."""
        if access.elements is None:
            return True
        values = [self._accesses.values[s] for x in access.elements.origin for s in symbols(x)]
        return any(_is_inside(value, loop) for value in values)

    def _need(self, op: Any, access: Access, level: Meeting) -> None:
        """Note that a barrier is needed before an operation, or before the branch that it is in."""
        anchor, around = op, op.parent
        while around is not None and around.operation != self._kernel.launch.operation:
            if self._is_divergent(around.operation):
                anchor = around.operation
            around = around.parent
        if self.before.get(anchor, Meeting.NONE) < level:
            self.before[anchor] = level
            self.changed = True
        elif anchor != op:
            raise self._kernel.source.error(
                f"'{op.name}' accesses what other threads have written in the same branch, which "
                "not all threads of the CTA take",
                op.location,
                hint="no barrier can stand inside of it: take the branch with all threads",
            )

    def _is_divergent(self, op: Any) -> bool:
        if op not in self._divergent:
            self._divergent[op] = is_divergent(self._kernel, op)
        return self._divergent[op]


def _alternates(read: Access, access: Access) -> bool:
    """Return whether an exchange sends while its last bytes, in its other room, are still read.

    It sends to the room of these again when all CTAs have sent once more, which they do behind
    their reads if a barrier of the CTA stands there (`lower_tiles.exchanges`).
    """
    op = access.op
    is_same = read.region.buffer == access.region.buffer
    return bool(op.name == tiles.SEND_PARTS and is_same and tiles.has_slots(op))


def _joined(*states: _State) -> _State:
    """Return what is pending if one of several states holds."""
    found: _State = {}
    for state in states:
        for pending, synced in state.items():
            found[pending] = min(synced, found.get(pending, synced))
    return found


def _next_iteration(loop: Any, state: _State) -> _State:
    """Return what is pending at the start of a loop's body that was pending at its end."""
    return _joined(*({_Pending(p.access, p.loops | {loop}): synced} for p, synced in state.items()))


def _is_inside(value: Any, loop: Any) -> bool:
    """Return whether a value is defined in the body of a loop."""
    owner = value.owner
    op = owner.owner if isinstance(value, ir.BlockArgument) else owner
    while op is not None:
        if op.operation == loop:
            return True
        op = op.parent
    return False
