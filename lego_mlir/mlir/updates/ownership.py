"""Whether each element that a kernel updates is one thread's own; if not, updates are lost.

`h[i] = h[i] + 1` is right if no two threads have the same i: if the index tells the thread. That
is decided for the launch's own sizes. An index that is a sum of multiples of ids, or that layouts
make of ids one to one, decides them by its form; others are computed for all threads, and all
iterations of the loops around. A thread meets itself in another iteration without harm, and other
threads of its CTA in another iteration of a loop that has a barrier.

What cannot be shown is an error: the index depends on loaded data, or there is too much to compute.
`lg.atomic_add(h, i, 1)` needs no owner, and `h.exclusive()[i] += 1` is the kernel's own promise
(the attribute `exclusive` of a lego.store).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.lowering.buffers import is_workgroup, sources_of
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.updates.evaluation import CASTS, Evaluator, LayoutOf, Unknown
from lego_mlir.mlir.updates.linear_forms import Linear, determines, linear

MOST_POINTS = 1 << 22
"""How many threads and iterations of loops an index is computed for at most."""


class Verdict(Enum):
    """What is known of the owners of updated elements."""

    OWNED = "each is one thread's own"
    SHARED = "some are several threads'"
    DATA = "the index depends on loaded data"
    UNDECIDED = "not known"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A gpu.launch and the sizes that it says.

    Attributes:
        sizes: how many values each id has, of blocks and of threads.
        blocks: the ids of blocks that have several.
        threads: the ids of threads that have several.
    """

    sizes: dict[Any, int]
    blocks: tuple[Any, ...]
    threads: tuple[Any, ...]


@dataclass(slots=True)
class Decision:
    """The question for one store.

    Attributes:
        store: the lego.store.
        kernel: whose threads run it.
        layout_of: the layout of a lego operation.
        source: the module's text.
        loops: the loops around it, outermost first, inside of the kernel.
        guards: the conditions on the way there, from `surroundings`.
    """

    store: Any
    kernel: Kernel
    layout_of: LayoutOf
    source: Source
    loops: list[Any]
    guards: list[tuple[Any, int | None]]
    _data: dict[Any, bool] = field(default_factory=dict)
    _leaves_of: dict[Any, set[Any] | None] = field(default_factory=dict)

    def verdict(self, *, by_cta: bool) -> Verdict:
        """Return what is known of the owners of the elements.

        Args:
            by_cta: one thread of a CTA stores, so CTAs own elements.
        """
        kernel, buffer = self.kernel, self.store.operands[1]
        index = list(self.store.operands)[2:]
        shared = is_workgroup(buffer.type)
        questions = []
        if not by_cta:
            phases = [loop.regions[0].blocks[0].arguments[0] for loop in self.loops if _waits(loop)]
            questions.append((kernel.threads, [*index, *kernel.blocks, *phases]))
        if not shared:
            questions.append((kernel.blocks, index))
        answers = [self._tells(own, values) for own, values in questions if own]
        for verdict in (Verdict.SHARED, Verdict.UNDECIDED):
            if verdict in answers:
                return Verdict.DATA if any(map(self._is_data, index)) else verdict
        return Verdict.OWNED

    def _tells(self, own: Sequence[Any], values: Sequence[Any]) -> Verdict:
        """Return whether values determine ids: threads of different ids differ in one of them."""
        found = [value for value in self._spread(values) if not self._is_data(value)]
        left = self._tells_by_form(set(own), found)
        return self._tells_by_numbers(left, found) if left else Verdict.OWNED

    def _spread(self, values: Sequence[Any]) -> list[Any]:
        """Return the values, those that layouts make one to one replaced by their operands."""
        found: list[Any] = []
        todo = list(dict.fromkeys(values))
        while todo:
            value = todo.pop(0)
            op = None if isinstance(value, ir.BlockArgument) else value.owner
            more: list[Any] = [value]
            if op is not None and op.name == dialect.APPLY and self._is_whole(op):
                more = list(op.operands)
            elif op is not None and op.name == dialect.INV and self._is_whole(op):
                others = [x for x in op.results if x != value]
                if all(x in todo for x in others):
                    todo = [x for x in todo if x not in others]
                    more = [op.operands[0]]
            if more == [value]:
                found.append(value)
            else:
                todo += [x for x in more if x not in todo and x not in found]
        return found

    def _is_whole(self, op: Any) -> bool:
        """Return whether an operation's layout has an element at every index, and no symbols."""
        layout = self.layout_of(op)
        is_plain = layout.window is None and not layout.symbols
        return is_plain and prod(layout.dims) == layout.size

    # By form.
    def _tells_by_form(self, own: set[Any], values: Sequence[Any]) -> set[Any]:
        """Return the ids that sums of multiples of ids and loop variables do not determine."""
        known, sums = set(values), [linear(value, self._leaf) for value in values]
        while True:
            before = len(known)
            for total in sums:
                terms = {} if total is None else dict(total.terms)
                terms = {x: c for x, c in terms.items() if x not in known and self._varies(x)}
                if determines(terms, {x: self._size(x) for x in terms}):
                    known |= set(terms)
            if len(known) == before:
                return own - known

    def _varies(self, leaf: Any) -> bool:
        """Return whether a leaf of a sum differs between threads or iterations."""
        return leaf in self.kernel.sizes or self._loop_of(leaf) is not None

    def _size(self, leaf: Any) -> int | None:
        """Return the number of values of an id, or the trip count of a loop, if known."""
        iterations = self.kernel.sizes.get(leaf) or self._iterations(leaf)
        return iterations if isinstance(iterations, int) or iterations is None else len(iterations)

    def _leaf(self, value: Any) -> Linear | None:
        """Return an id, or a loop's variable as start and iteration, named by the variable."""
        if value in self.kernel.sizes or self._is_uniform(value):
            return Linear(0, {value: 1})
        if not isinstance(value, ir.BlockArgument) and value.owner.name in CASTS:
            return linear(value.owner.operands[0], self._leaf)
        loop = self._loop_of(value)
        if loop is None:
            return None
        lower, _, step = list(loop.operands)[:3]
        start, stride = linear(lower, self._leaf), linear(step, self._leaf)
        if start is None or stride is None or stride.terms:
            return None
        return start.plus(Linear(0, {value: stride.constant}))

    def _loop_of(self, value: Any) -> Any:
        """Return the loop around the store whose variable a value is."""
        bodies = (loop.regions[0].blocks[0].arguments[0] for loop in self.loops)
        pairs = zip(bodies, self.loops, strict=True)
        return next((loop for variable, loop in pairs if variable == value), None)

    # By numbers.
    def _tells_by_numbers(self, own: set[Any], values: Sequence[Any]) -> Verdict:
        """Decide by computing all values for all ids."""
        values, leaves = self._about(own, values)
        if leaves is None:
            return Verdict.UNDECIDED
        loops = [x for x in leaves if x not in self.kernel.sizes]
        trips = [self._iterations(x) for x in loops]
        if None in trips:
            return Verdict.UNDECIDED
        ids = sorted((x for x in leaves if x in self.kernel.sizes), key=lambda x: x.arg_number)
        shape = [*(self.kernel.sizes[x] for x in ids), *(len(t) for t in trips if t is not None)]
        if prod(shape) > MOST_POINTS:
            return Verdict.UNDECIDED
        axes = [*(range(self.kernel.sizes[x]) for x in ids), *(t for t in trips if t is not None)]
        grids = np.meshgrid(*(np.asarray(a, np.int64) for a in axes), indexing="ij")
        by_variable = {x: g.ravel() for x, g in zip([*ids, *loops], grids, strict=True)}
        evaluator = Evaluator(by_variable, self.layout_of, self.source)
        count = prod(shape)
        try:
            keys = [np.broadcast_to(evaluator(value), count) for value in values]
        except Unknown:
            return Verdict.UNDECIDED
        there, is_sure = self._there(evaluator, count)
        owner = np.zeros(count, np.int64)
        for x in ids:
            if x in own:
                owner = owner * self.kernel.sizes[x] + by_variable[x]
        if _is_function([k[there] for k in keys], owner[there]):
            return Verdict.OWNED
        return Verdict.SHARED if is_sure else Verdict.UNDECIDED

    def _about(self, own: set[Any], values: Sequence[Any]) -> tuple[list[Any], set[Any] | None]:
        """Return the values that depend on ids or their companions, and all that they depend on."""
        known, about = set(values), set(own)
        chosen: list[Any] = []
        while True:
            more = [
                value
                for value in values
                if value not in chosen
                and ((on := self._leaves(value)) is None or (on - (known - {value})) & about)
            ]
            if not more:
                break
            chosen += more
            for value in more:
                on = self._leaves(value)
                if on is None:
                    return chosen, None
                about |= on - known
        leaves = set(own)
        for value in chosen:
            leaves |= self._leaves(value) or set()
        return [*chosen, *(x for x in leaves & known if x not in chosen)], leaves

    def _there(self, evaluator: Evaluator, count: int) -> tuple[Any, bool]:
        """Which points come to the store, and whether that is known of all of them."""
        there, is_sure = np.ones(count, np.bool_), True
        for condition, case in self.guards:
            try:
                value = np.broadcast_to(evaluator(condition), count)
            except Unknown:
                is_sure = False
                continue
            there &= (value != 0) if case is None else (value == case)
        return there, is_sure

    def _iterations(self, variable: Any) -> Sequence[int] | None:
        """Return the values of a loop's variable, where constants bound it."""
        loop = self._loop_of(variable)
        if loop is None:
            return None
        evaluator = Evaluator({}, self.layout_of, self.source)
        try:
            lower, upper, step = (int(evaluator(x)) for x in list(loop.operands)[:3])
        except Unknown:
            return None
        return range(lower, upper, step) if step > 0 else None

    # What values depend on.
    def _leaves(self, value: Any) -> set[Any] | None:
        """Return the ids and loop variables that a value depends on; `None` if also on others."""
        if value not in self._leaves_of:
            self._leaves_of[value] = self._found_leaves(value)
        return self._leaves_of[value]

    def _found_leaves(self, value: Any) -> set[Any] | None:
        if value in self.kernel.sizes or self._loop_of(value) is not None:
            return {value}
        if isinstance(value, ir.BlockArgument):
            return None
        found: set[Any] = set()
        for operand in value.owner.operands:
            inner = self._leaves(operand)
            if inner is None:
                return None
            found |= inner
        return found

    def _is_uniform(self, value: Any) -> bool:
        """Return whether a value is computed from numbers that the host gives, and no others."""
        if isinstance(value, ir.BlockArgument):
            return bool(value.owner.owner.name == "func.func")
        operands = list(value.owner.operands)
        plain = not len(value.owner.regions) and value.owner.name not in _LOADS
        constant = ("arith.constant",)
        varying = [x for x in operands if _maker(x) not in constant]
        return plain and bool(varying) and all(map(self._is_uniform, varying))

    def _is_data(self, value: Any) -> bool:
        """Return whether a value depends on what was loaded, or on what an atomic update gave."""
        if value not in self._data:
            self._data[value] = not isinstance(value, ir.BlockArgument) and (
                value.owner.name in _LOADS or any(map(self._is_data, value.owner.operands))
            )
        return self._data[value]


_LOADS = (dialect.LOAD, dialect.ATOMIC, "memref.load", "vector.load", "memref.atomic_rmw")


def kernel_of(launch: Any, layout_of: LayoutOf, source: Source) -> Kernel | None:
    """Return the ids of a launch; `None` where its sizes are not known here."""
    evaluator = Evaluator({}, layout_of, source)
    arguments = list(launch.regions[0].blocks[0].arguments)[:6]
    try:
        sizes = [int(evaluator(size)) for size in launch_sizes(launch)]
    except Unknown:
        return None
    known = dict(zip(arguments, sizes, strict=True))
    several = [x for x in arguments if known[x] > 1]
    blocks = tuple(x for x in several if x.arg_number < 3)
    threads = tuple(x for x in several if x.arg_number >= 3)
    return Kernel(known, blocks, threads)


def surroundings(store: Any, launch: Any) -> tuple[list[Any], list[tuple[Any, int | None]]]:
    """Return the loops around a store, outermost first, and the conditions on the way there.

    Each condition comes with the number that it has where the store runs; `None` for any but 0.
    """
    loops: list[Any] = []
    guards: list[tuple[Any, int | None]] = []
    inner, outer = store.operation, store.operation.parent
    while outer is not None and outer.operation != launch.operation:
        if outer.name == "scf.for":
            loops.insert(0, outer)
        elif outer.name == "scf.if":
            first = outer.regions[0].blocks[0] == inner.block
            guards.append((outer.operands[0], None if first else 0))
        elif outer.name == "scf.index_switch":
            cases = list(ir.DenseI64ArrayAttr(outer.attributes["cases"]))
            number = next(k for k, r in enumerate(outer.regions) if r.blocks[0] == inner.block)
            if number:  # the first region is for every other number
                guards.append((outer.operands[0], cases[number - 1]))
        inner, outer = outer.operation, outer.parent
    return loops, guards


def is_private(buffer: Any) -> bool:
    """Return whether each thread has a buffer of its own."""
    if is_workgroup(buffer.type):
        return False
    if "private" in str(ir.MemRefType(buffer.type).memory_space):
        return True
    made = [x.owner.name for x in sources_of(buffer) if not isinstance(x, ir.BlockArgument)]
    return any(name in (dialect.ALLOC, "memref.alloca") for name in made)


def _maker(value: Any) -> str | None:
    """Return the name of the operation that a value is a result of; `None` for a block argument."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.name


def _waits(loop: Any) -> bool:
    """Return whether every iteration of a loop has the CTA's threads wait for one another."""
    return any(op.operation.name == "gpu.barrier" for op in loop.regions[0].blocks[0].operations)


def _is_function(keys: Sequence[Any], owner: Any) -> bool:
    """Return whether points with the same keys have the same owner."""
    if not len(owner) or not keys:
        return not len(owner) or bool((owner == owner[0]).all())
    order = np.lexsort((owner, *keys))
    same = np.ones(len(owner) - 1, np.bool_)
    for key in keys:
        ordered = key[order]
        same &= ordered[1:] == ordered[:-1]
    ordered = owner[order]
    return not bool((same & (ordered[1:] != ordered[:-1])).any())
