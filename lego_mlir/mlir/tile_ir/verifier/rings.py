"""The protocol of rings: roles number tiles 0, 1, 2, ..., and read them while they are there.

For each role, each ring and each operation on it, the numbers that the role executes have to count
up by one. Before each operation of a block the next number is known as an index expression. A loop
is proven by induction: the number with which its body begins is an expression of the loop variable
and of what the loop carries. It has to be right in the first iteration, and the end of an iteration
has to lead to the begin of the next.

    scf.for %i = 0 to %n {          next(%i) = %i: right for %i = 0
      wait(%ring, %i)               next = %i + 1, which is next(%i + 1)
    }                               next = %n

Loops count as if they ran to their end: one that may run fewer times than never is not known here.
Whether a role waits for itself is another question (`ring_runs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, TypeAlias

from lego_mlir.index import Int, Sym, construct, substitute, symbols
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.roles import role_around, role_around_value
from lego_mlir.mlir.tile_ir.types import is_shared_tile
from lego_mlir.mlir.tile_ir.verifier.scalars import Scalars

_LOOP, _BRANCH = "scf.for", "scf.if"
_Kind: TypeAlias = tuple[Any, str]
_State: TypeAlias = dict[_Kind, Int]
"""The next number of each ring's operation."""

_COUNTED = (pipelines.ACQUIRE, pipelines.COMMIT, pipelines.WAIT, pipelines.RELEASE)


def check_rings(kernel: TileKernel) -> None:
    """Check what the roles of a kernel do with rings.

    Raises:
        LegoError: at the operation that breaks the protocol, or is not proven to keep it.
    """
    inside = list(operations_in(kernel.launch))
    rings = [op.results[0] for op in inside if op.name == pipelines.MAKE_RING]
    if not rings:
        return
    for ring in rings:
        _check_roles(kernel, ring)
    roles = [op for op in inside if op.name == pipelines.ROLE]
    bodies = [role.regions[0].blocks[0] for role in roles] or [kernel.body]
    protocol = _Protocol(kernel)
    for body in bodies:
        protocol.check(body)
    for op in inside:
        if op.name == pipelines.ACQUIRE:
            _check_copies(kernel, op)
        elif op.name == pipelines.WAIT:
            _check_reads(kernel, op)


def _fail(kernel: TileKernel, op: Any, message: str, hint: str) -> NoReturn:
    raise kernel.source.error(f"'{op.name}' {message}", op.location, hint=hint)


def _users(ring: Any, names: Iterable[str]) -> list[Any]:
    return [u.owner.operation for u in ring.uses if u.owner.name in names]


def _check_roles(kernel: TileKernel, ring: Any) -> None:
    """Check that one role produces a ring's tiles, and that some role consumes them."""
    maker = ring.owner.operation
    if maker.block != kernel.body:
        _fail(kernel, maker, "in a loop, branch or role", "make rings in the kernel's body")
    producers = {role_around(op) for op in _users(ring, pipelines.PRODUCES)}
    if len(producers) != 1:
        _fail(
            kernel,
            maker,
            f"has {len(producers)} roles that fill it",
            "one role acquires, copies and commits the tiles of a ring",
        )
    for name in pipelines.OF_RING:
        if not _users(ring, [name]):
            _fail(
                kernel,
                maker,
                f"has no '{name}'",
                "a tile is acquired, copied, committed, waited for and released",
            )


# Numbers.
class _Protocol:
    """The numbers of the roles of one kernel."""

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._scalars = Scalars()
        self._last: dict[Any, tuple[Any, Int]] = {}

    def check(self, body: Any) -> None:
        """Check the numbers of the operations of a role's body.

        In the end all operations on a ring have been executed equally often, by all roles. Where
        that depends on what is computed inside of a role, it is not compared with other roles.
        """
        for kind, count in self._block(body, {}).items():
            op = _first(body.owner, kind)
            before, known = self._last.setdefault(kind[0], (op, count))
            is_same_role = role_around(before) == role_around(op)
            comparable = is_same_role or (self._is_common(count) and self._is_common(known))
            if comparable and count != known:
                self._fail(
                    op,
                    f"is executed {count} times, '{before.name}' {known} times",
                    "every tile is acquired, committed, waited for and released once",
                )

    def _is_common(self, number: Int) -> bool:
        """Return whether a number depends on nothing that is computed in a role."""
        values = (self._scalars.values[s] for s in symbols(number))
        return all(role_around_value(value) is None for value in values)

    def _fail(self, op: Any, message: str, hint: str) -> NoReturn:
        _fail(self._kernel, op, message, hint)

    def _block(self, block: Any, state: _State) -> _State:
        for each in block.operations:
            op = each.operation
            if op.name in _COUNTED:
                state = self._count(op, state)
            elif op.name == _LOOP and _has_counted(op):
                state = self._loop(op, state)
            elif op.name == _BRANCH and _has_counted(op):
                state = self._branch(op, state)
            elif len(op.regions) and op.name != pipelines.ROLE and _has_counted(op):
                self._fail(op, "around operations on rings", "they stand in scf.for and scf.if")
        return state

    def _count(self, op: Any, state: _State) -> _State:
        kind = (op.operands[0], op.name)
        number = self._scalars(op.operands[1])
        expected = state.get(kind, 0)
        if number != expected:
            self._fail(
                op,
                f"of tile {number!s}, where tile {expected!s} is next",
                "the tiles of a ring have the numbers 0, 1, 2, ... in the order of the program",
            )
        return {**state, kind: construct.add(number, 1)}

    def _branch(self, op: Any, state: _State) -> _State:
        ends = [self._block(r.blocks[0], state) for r in op.regions if len(r.blocks)]
        ends += [state] * (2 - len(ends))
        if ends[0] != ends[1]:
            self._fail(
                op,
                "whose two ways use rings differently",
                "either way acquires, commits, waits for and releases as many tiles",
            )
        return ends[0]

    def _loop(self, op: Any, state: _State) -> _State:
        block = op.regions[0].blocks[0]
        low, high, stride = (self._scalars(x) for x in list(op.operands)[:3])
        variable, *arguments = (self._symbol(x) for x in block.arguments)
        end = list(block.operations)[-1].operation
        begin = self._begin(op, state)
        entered = dict(zip(arguments, map(self._scalars, list(op.operands)[3:]), strict=True))
        first = {variable: low, **entered}
        for kind, number in begin.items():
            if _at(number, first) != state.get(kind, 0):
                self._fail(
                    _first(op, kind),
                    f"of tile {_at(number, first)!s} in the loop's first iteration, where "
                    f"tile {state.get(kind, 0)!s} is next",
                    "a loop goes on where what is before it ends",
                )
        after = self._block(block, begin)
        yielded = dict(zip(arguments, map(self._scalars, end.operands), strict=True))
        step = {variable: construct.add(variable, stride), **yielded}
        for kind, number in begin.items():
            if after[kind] != _at(number, step):
                self._fail(
                    _first(op, kind),
                    f"of tile {_at(number, step)!s} in the next iteration, where tile "
                    f"{after[kind]!s} is next",
                    "every iteration goes on where the one before ends",
                )
        results = dict(zip(arguments, map(self._scalars, op.results), strict=True))
        left = {variable: _last(low, high, stride), **results}
        return {**state, **{kind: _at(number, left) for kind, number in begin.items()}}

    def _symbol(self, value: Any) -> Sym:
        found = self._scalars(value)
        assert isinstance(found, Sym)  # a block argument
        return found

    def _begin(self, loop: Any, state: _State) -> _State:
        """Return the numbers with which the body begins, read off the first operation of each."""
        found: _State = {}
        for op in operations_in(loop):
            if op.name not in _COUNTED:
                continue
            kind = (op.operands[0], op.name)
            if kind in found:
                continue
            number, around = self._scalars(op.operands[1]), op.parent
            while around.operation != loop:  # an inner loop's first iteration
                if around.name == _LOOP:
                    inner = around.operation
                    arguments = list(inner.regions[0].blocks[0].arguments)
                    starts = [inner.operands[0], *list(inner.operands)[3:]]
                    values = map(self._scalars, starts)
                    entered = zip(map(self._symbol, arguments), values, strict=True)
                    number = _at(number, dict(entered))
                around = around.parent
            found[kind] = number
        return found


def _has_counted(op: Any) -> bool:
    return any(inner.name in _COUNTED for inner in operations_in(op))


def _first(loop: Any, kind: _Kind) -> Any:
    ring, name = kind
    inside = operations_in(loop)
    return next(op for op in inside if op.name == name and op.operands[0] == ring)


def _at(number: Int, values: dict[Sym, Int]) -> Int:
    return substitute(number, {s: x for s, x in values.items() if s in symbols(number)})


def _last(low: Int, high: Int, stride: Int) -> Int:
    """Return the loop variable behind the last iteration."""
    if stride == 1:
        return high
    span = construct.sub(construct.add(construct.sub(high, low), stride), 1)
    return construct.add(low, construct.mul(construct.floordiv(span, stride), stride))


# Copies and reads.
def _check_copies(kernel: TileKernel, acquire: Any) -> None:
    """Check that the copies of a tile stand between its lego.acquire and its lego.commit."""
    ring, number = acquire.operands
    same = [
        op
        for op in (o.operation for o in acquire.block.operations)
        if op.name in pipelines.PRODUCES and op.operands[0] == ring and op.operands[1] == number
    ]
    names = [op.name for op in same]
    wanted = [pipelines.ACQUIRE, *[pipelines.COPY_ASYNC] * (len(names) - 2), pipelines.COMMIT]
    if names != wanted or len(names) != 3:
        _fail(
            kernel,
            acquire,
            "is not followed by one copy and one commit of its tile",
            f"{pipelines.ACQUIRE}, {pipelines.COPY_ASYNC} and {pipelines.COMMIT} of one number "
            "follow one another in a block",
        )
    for op in _users(ring, [pipelines.COPY_ASYNC]):
        if op.operands[1] == number and op.block != acquire.block:
            _fail(kernel, op, "in another block than its acquire", "copy right after it")


def _check_reads(kernel: TileKernel, wait: Any) -> None:
    """Check that a tile is used in its block, before its release."""
    ring, number = wait.operands
    release = next(
        (
            op
            for op in _users(ring, [pipelines.RELEASE])
            if op.operands[1] == number and op.block == wait.block
        ),
        None,
    )
    pending = [wait.results[0]]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            inside = user
            while inside is not None and inside.block != wait.block:
                inside = inside.parent and inside.parent.operation
            if user.name in ("scf.yield", "scf.condition"):
                _fail(kernel, user, "of a tile in shared memory", "only its release ends a tile")
            if release is not None and inside is not None and release.is_before_in_block(inside):
                _fail(
                    kernel,
                    user,
                    "reads a tile behind its release",
                    f"{pipelines.RELEASE} stands behind all that reads the tile",
                )
            pending.extend(r for r in user.results if is_shared_tile(r))
            if user.name == pipelines.DOT_ASYNC and release is not None:
                _check_finished(kernel, user, release)


def _check_finished(kernel: TileKernel, dot: Any, release: Any) -> None:
    """Check that a dot that reads a tile is waited for before a release in the same block."""
    for use in dot.results[0].uses:
        wait = use.owner.operation
        is_late = wait.block == release.block and release.is_before_in_block(wait)
        if wait.name == pipelines.DOT_WAIT and is_late:
            _fail(
                kernel,
                release,
                "of a tile that a dot still reads",
                f"it stands behind the {pipelines.DOT_WAIT} for the dot",
            )
