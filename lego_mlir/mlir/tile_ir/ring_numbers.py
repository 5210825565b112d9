"""The numbers of tiles that a program executes operations on rings with, as index expressions.

For each ring and each operation on it, the numbers that a role executes have to count up by one.
Before each operation of a block the next number is known as an index expression. A loop is proven
by induction: the number with which its body begins is an expression of the loop variable and of
what the loop carries. It has to be right in the first iteration, and the end of an iteration has to
lead to the begin of the next.

    scf.for %i = 0 to %n {          next(%i) = %i: right for %i = 0
      wait(%ring, %i)               next = %i + 1, which is next(%i + 1)
    }                               next = %n

A branch may use the tile after others as long as there is one more:

    scf.if %i + 3 < %n {            next = min(%i + 3, %n)
      acquire(%ring, %i + 3)
    }                               next = min(%i + 4, %n)

What every iteration but the first executes counts as if the first one did, too, with the tiles
before those that are next:

    scf.for %t = %first to %n {
      scf.if %first < %t {          next = %t - %first - 1, which is -1 in the first iteration
        acquire(%ring, %t - %first - 1)
      }
    }

Loops count as if they ran to their end: one that may run fewer times than never is not known here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

from lego_mlir.index import Int, Sym, construct, polynomial, substitute, symbols
from lego_mlir.index.nodes import Min, Poly
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.tile_ir.iterations import (
    BRANCH,
    LOOP,
    compared,
    first_of,
    is_guarded_by,
    open_conditions,
    runs_at_least,
)
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.roles import role_around, role_around_value
from lego_mlir.mlir.tile_ir.scalars import Scalars

_Kind: TypeAlias = tuple[Any, str]
State: TypeAlias = dict[_Kind, Int]
"""The next number of each ring's operation."""

COUNTED = (pipelines.ACQUIRE, pipelines.COMMIT, pipelines.WAIT, pipelines.RELEASE)


class RingNumbers:
    """The numbers of the operations on rings of one kernel.

    Args:
        kernel: the kernel.
        whole: count as if every branch that uses one more tile were taken.

    Attributes:
        before: what is known before each of the operations so far.
    """

    def __init__(self, kernel: TileKernel, *, whole: bool = False) -> None:
        self._kernel = kernel
        self._whole = whole
        self._scalars = Scalars()
        self._last: dict[Any, tuple[Any, Int]] = {}
        self._listed: dict[Any, list[Any]] = {}
        self._limits: dict[Any, tuple[Int, Int] | None] = {}
        self.before: dict[Any, State] = {}

    def number(self, op: Any) -> Int:
        """Return the number of the tile of an operation on a ring."""
        return self._scalars(op.operands[1])

    def least(self, number: Int) -> int | None:
        """Return the least that a number is; `None` if it is not known.

        It is known of a sum of variables of loops that begin with known numbers.
        """
        constant, terms = polynomial.parts(number)
        for mono, coefficient in terms.items():
            ((atom, power), *others) = mono
            first = first_of(self._scalars.values.get(atom)) if isinstance(atom, Sym) else None
            begin = None if first is None else self._scalars(first)
            if others or power > 1 or coefficient < 0 or not isinstance(begin, int):
                return None
            constant += coefficient * begin
        return constant

    def walk(self, block: Any, begin: State) -> None:
        """Walk over a block.

        Args:
            block: the block.
            begin: the next number of each ring's operation where it begins.

        Raises:
            LegoError: the numbers do not count up by one.
        """
        self._block(block, begin)

    def check(self, body: Any) -> None:
        """Check the numbers of the operations of a role's body.

        In the end all operations on a ring have been executed equally often, by all roles. Where
        that depends on what is computed inside of a role, it is not compared with other roles.
        """
        for kind, count in self._block(body, {}).items():
            op = self._first(body, kind)
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
        raise self._kernel.source.error(f"'{op.name}' {message}", op.location, hint=hint)

    def _block(self, block: Any, state: State) -> State:
        for each in block.operations:
            op = each.operation
            if op.name in COUNTED:
                state = self._count(op, state)
            elif not len(op.regions) or op.name == pipelines.ROLE or not self._inside(op):
                continue
            elif op.name == LOOP:
                state = self._loop(op, state)
            elif op.name == BRANCH:
                state = self._branch(op, state)
            else:
                self._fail(op, "around operations on rings", "they stand in scf.for and scf.if")
        return state

    def _count(self, op: Any, state: State) -> State:
        kind = (op.operands[0], op.name)
        self.before[op] = state
        number = self.number(op)
        expected = state.get(kind, 0)
        if number != expected:
            self._fail(
                op,
                f"of tile {number!s}, where tile {expected!s} is next",
                "the tiles of a ring have the numbers 0, 1, 2, ... in the order of the program",
            )
        return {**state, kind: construct.add(number, 1)}

    def _branch(self, op: Any, state: State) -> State:
        if not open_conditions(op):
            return self._block(op.regions[0].blocks[0], state)
        limit = self._limit(op)
        if limit is not None:
            found = self._one_more(op, state, *limit)
            if found is not None:
                return found
        ends = [self._block(r.blocks[0], state) for r in op.regions if len(r.blocks)]
        ends += [state] * (2 - len(ends))
        if ends[0] != ends[1]:
            self._fail(
                op,
                "whose two ways use rings differently",
                "either way acquires, commits, waits for and releases as many tiles",
            )
        return ends[0]

    def _limit(self, branch: Any) -> tuple[Int, Int] | None:
        """Return a and b of a branch that is taken where a < b, if it has no other way."""
        if branch not in self._limits:
            self._limits[branch] = self._limit_of(branch)
        return self._limits[branch]

    def _limit_of(self, branch: Any) -> tuple[Int, Int] | None:
        """Return what `_limit` does, which asks for each branch once."""
        others = branch.regions[1].blocks
        listed = open_conditions(branch)
        numbers = compared(listed[0]) if len(listed) == 1 else None
        if numbers is None or any(len(block.operations) > 1 for block in others):
            return None
        a, b = map(self._scalars, numbers)
        return a, b

    def _one_more(self, op: Any, state: State, a: Int, b: Int) -> State | None:
        """Return what is known behind a branch that uses the next tile of rings where a < b.

        `None` if it does something else.
        """
        block = op.regions[0].blocks[0]
        begin = self.begin(block)
        distances = {kind: distance(number, a) for kind, number in begin.items()}
        for kind, ahead in distances.items():
            if state.get(kind, 0) != self._at_most(a, b, ahead):
                return None
        after = self._block(block, {**state, **begin})
        following = construct.add(a, 1)
        if any(after[k] != construct.add(x, 1) for k, x in begin.items()):
            return None
        return {**state, **{k: self._at_most(following, b, d) for k, d in distances.items()}}

    def _at_most(self, a: Int, b: Int, distance: Int) -> Int:
        """Return the lesser of a and b, which is never negative, and a distance from it."""
        least = a if self._whole or a == 0 else _least(a, b)
        return construct.add(least, distance)

    def _loop(self, op: Any, state: State) -> State:
        block = op.regions[0].blocks[0]
        low, high, stride = (self._scalars(x) for x in list(op.operands)[:3])
        variable, *arguments = (self._symbol(x) for x in block.arguments)
        end = list(block.operations)[-1].operation
        begin = self.begin(block)
        entered = dict(zip(arguments, map(self._scalars, list(op.operands)[3:]), strict=True))
        first = {variable: low, **entered}
        late = self._late(op)
        for kind, number in begin.items():
            if kind not in late and _at(number, first) != state.get(kind, 0):
                self._fail(
                    self._first(block, kind),
                    f"of tile {_at(number, first)!s} in the loop's first iteration, where "
                    f"tile {state.get(kind, 0)!s} is next",
                    "a loop goes on where what is before it ends",
                )
        after = self._block(block, {**state, **begin})
        yielded = dict(zip(arguments, map(self._scalars, end.operands), strict=True))
        step = {variable: construct.add(variable, stride), **yielded}
        for kind, number in begin.items():
            if kind in late and _at(after[kind], first) != state.get(kind, 0):
                self._fail(
                    self._first(block, kind),
                    f"of tile {_at(after[kind], first)!s} in the loop's second iteration, where "
                    f"tile {state.get(kind, 0)!s} is next",
                    "a loop goes on where what is before it ends",
                )
            if after[kind] != _at(number, step):
                self._fail(
                    self._first(block, kind),
                    f"of tile {_at(number, step)!s} in the next iteration, where tile "
                    f"{after[kind]!s} is next",
                    "every iteration goes on where the one before ends",
                )
        results = dict(zip(arguments, map(self._scalars, op.results), strict=True))
        left = {variable: _last(low, high, stride), **results}
        return {**state, **{kind: _at(number, left) for kind, number in begin.items()}}

    def _late(self, loop: Any) -> set[_Kind]:
        """Return what all iterations of a loop but the first execute."""
        found: set[_Kind] = set()
        first: set[_Kind] = set()
        for op in self._counted(loop.regions[0].blocks[0]):
            (found if is_guarded_by(op, loop) else first).add((op.operands[0], op.name))
        if found & first or (found and not runs_at_least(loop, 1)):
            kind = next(iter(found))
            self._fail(
                self._first(loop.regions[0].blocks[0], kind),
                "is not executed in the first iteration of a loop"
                + (", and others are" if found & first else " that may have none"),
                "guard all of it, in a loop whose bounds differ by at least one",
            )
        return found

    def _counted(self, block: Any) -> list[Any]:
        """Return the operations that count, of a block and of those inside of it, in order."""
        found = self._listed.get(block)
        if found is None:
            found = self._listed[block] = []
            for op in (each.operation for each in block.operations):
                found += [op] if op.name in COUNTED else self._inside(op)
        return found

    def _inside(self, op: Any) -> list[Any]:
        """Return the operations that count inside of one."""
        return [x for region in op.regions for block in region.blocks for x in self._counted(block)]

    def _first(self, block: Any, kind: _Kind) -> Any:
        return next(x for x in self._counted(block) if (x.operands[0], x.name) == kind)

    def _symbol(self, value: Any) -> Sym:
        found = self._scalars(value)
        assert isinstance(found, Sym)  # a block argument
        return found

    def begin(self, block: Any) -> State:
        """Return the numbers with which a block begins, read off the first operation of each."""
        found: State = {}
        for op in self._counted(block):
            kind = (op.operands[0], op.name)
            if kind in found:
                continue
            number, inner = self.number(op), op
            while inner.block != block:
                inner = inner.parent.operation
                number = self._before(inner, number)
            found[kind] = number
        return found

    def _before(self, around: Any, number: Int) -> Int:
        """Return what is next before a loop or branch whose first number is this."""
        if around.name == LOOP:
            arguments = list(around.regions[0].blocks[0].arguments)
            starts = [around.operands[0], *list(around.operands)[3:]]
            entered = zip(map(self._symbol, arguments), map(self._scalars, starts), strict=True)
            return _at(number, dict(entered))
        limit = self._limit(around) if around.name == BRANCH else None
        if limit is None:
            return number
        return self._at_most(*limit, distance(number, limit[0]))


@lru_cache(maxsize=1 << 10)
def distance(a: Int, b: Int) -> Int:
    """Return by how much a number is above another one: the rings of a kernel are alike."""
    return construct.sub(a, b)


@lru_cache(maxsize=1 << 10)
def _least(a: Int, b: Int) -> Int:
    """Return the lesser of two numbers: the rings of a kernel have the same branches."""
    return construct.minimum(a, b)


def _at(number: Int, values: dict[Sym, Int]) -> Int:
    inside = symbols(number)
    return _substituted(number, tuple((s, x) for s, x in values.items() if s in inside))


@lru_cache(maxsize=1 << 10)
def _substituted(number: Int, values: tuple[tuple[Sym, Int], ...]) -> Int:
    """Return a number with symbols replaced: the rings of a kernel are numbered alike."""
    found = substitute(number, dict(values))
    terms = found.terms if isinstance(found, Poly) else ()
    if not any(_is_none(atom) for mono, _ in terms for atom, _ in mono):
        return 0 if _is_none(found) else found
    assert isinstance(found, Poly)  # it has terms
    kept = {mono: n for mono, n in terms if not any(_is_none(atom) for atom, _ in mono)}
    return polynomial.build(found.constant, kept)


def _is_none(number: Int) -> bool:
    """Return whether a number is the lesser of none and another one, which is never negative."""
    return isinstance(number, Min) and 0 in (number.a, number.b)


def _last(low: Int, high: Int, stride: Int) -> Int:
    """Return the loop variable behind the last iteration."""
    if stride == 1:
        return high
    span = construct.sub(construct.add(construct.sub(high, low), stride), 1)
    return construct.add(low, construct.mul(construct.floordiv(span, stride), stride))
