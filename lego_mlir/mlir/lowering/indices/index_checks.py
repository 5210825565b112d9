"""Prove or check the conditions on indices and sizes that the compiler relies on.

The compiler relies on indices inside of their dimensions, on claims
(`mlir.lowering.indices.claims`), and on what a layout implies of its symbolic sizes: `M/16` implies
that 16 divides M and M ≥ 1. One of the following holds for each condition.

- It is proven, and nothing is generated.
- It is proven not to hold, which is an error.
- The launch can compute its values. It becomes a fact of the host function (`dialect.FACTS`),
  which every launch evaluates.
- Otherwise the kernel checks it, if the compilation has the option `check`
  (`mlir.lowering.indices.kernel_checks`).

An access that partial tiles mask is checked only under its mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.index import Int, Sym, bounds, construct, polynomial
from lego_mlir.index.proofs.prover import is_less, is_nonnegative, is_within
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.conditions import comparisons, host_of, is_conditional
from lego_mlir.mlir.context import Source, position_of
from lego_mlir.mlir.launch_sizes.facts import promised_facts
from lego_mlir.mlir.launch_sizes.known import (
    Known,
    known_expression,
    known_value,
    number,
    size_of,
)
from lego_mlir.mlir.launch_sizes.strided import is_dense
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.lowering.argument_names import argument_names
from lego_mlir.mlir.lowering.indices.claims import RESULT, taken_claim
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.lowering.indices.kernel_checks import KernelChecks, Printers

_MOST = 1 << 31
"""More elements than a dimension of a tile's tensor has."""

_VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.subview")


class IndexChecks:
    """Collects the conditions of one module.

    Args:
        module: the module.
        source: its text, in which errors are shown.
        reader: reads the operands.
        printers: for an operation.
        in_kernels: whether to make checks that run in kernels.

    Attributes:
        tables: the numbers of the tables that values are from.
    """

    def __init__(
        self,
        module: Any,
        source: Source,
        reader: IndexReader,
        printers: Printers,
        *,
        in_kernels: bool,
    ) -> None:
        self._source = source
        self._reader = reader
        self._checks = KernelChecks(reader, printers) if in_kernels else None
        self._has_use = in_kernels or _takes_numbers(module)
        self._facts: dict[Any, dict[tuple[str, str], Any]] = {}
        self._names: dict[Any, str] = {}
        self.tables: dict[Any, tuple[int, ...]] = {}

    def indices(
        self, op: Any, layout: Layout, index: Sequence[Any], buffer: Any, inside: Int = 1
    ) -> None:
        """Prove or check that an index is inside of a layout's dimensions.

        Args:
            op: what uses it.
            layout: whose dimensions.
            index: an expression a dimension; `None` for one that is whole.
            buffer: what is indexed; `None` for the layout itself.
            inside: 1 where the access is made, an expression.
        """
        for k, (i, n) in enumerate(zip(index, layout.dims, strict=True)):
            if i is not None:
                self._within(op, i, n, k, buffer, inside)

    def starts(self, op: Any, index: Sequence[Int], buffer: Any) -> None:
        """Prove or check that an index from which a tile extends is not negative."""
        for k, i in enumerate(index):
            if not is_nonnegative(i):
                self._in_range(op, i, _MOST, f"index {k}{self._of(buffer)}")

    def claim(self, op: Any) -> None:
        """Prove or check the claim of an operation, and remove it."""
        claim = taken_claim(op)
        value = claim.value(op)
        x = self._reader.read_unassumed(value) if claim.operand == RESULT else self._read(value)
        self._in_range(op, x, claim.limit, claim.what, value, after=claim.operand == RESULT)

    def size(
        self, op: Any, operand: Any, name: str, divisors: Sequence[Int], layout: Layout
    ) -> None:
        """Prove or check what a layout implies of the operand for one of its symbols."""
        if not self._has_use:
            return
        numbers = self.tables.get(operand)
        if numbers and all(_divides_all(d, numbers) for d in (1, *divisors)):
            return
        x = self._reader.read_unassumed(operand)
        if isinstance(x, int):
            return  # the layout has been looked at with it
        known = known_value(operand)
        says = f"but the layout '{layout}' says"
        if known is None and self._checks is None:
            return
        if not is_less(0, x):
            what = f"{says} that it is 1 at least"
            if known is not None:
                self._fact(op, known, known.with_operator(">=", number(1)), what)
            elif self._checks is not None:
                self._checks.positive(op, operand, f"{name} is $0, {what}")
        for d in divisors:
            if polynomial.divides(d, x):
                continue
            what = f"{says} that {d!r} divides it"
            by = known_expression(d, self._known_symbol)
            if known is not None and by is not None:
                rest = known.with_operator("%", by)
                self._fact(op, known, rest.with_operator("==", number(0)), what)
            elif self._checks is not None:
                self._checks.divided(op, operand, d, f"{name} is $0, {what}")

    def shape(self, op: Any, buffer: Any, shape: Sequence[Int]) -> None:
        """Make facts of that a buffer, an argument, has the shape of a layout.

        The first size is of no consequence to where elements lie.
        """
        kind = ir.MemRefType(buffer.type)
        for dim, size in list(enumerate(shape))[1:]:
            own = size_of(buffer.arg_number, dim)
            if not kind.is_dynamic_dim(dim):
                own = number(kind.shape[dim])
            expected = known_expression(size, self._known_symbol)
            if expected is None:
                raise self._source.error(
                    f"'{op.name}': size {dim} of the layout is known only in the kernel, and the "
                    f"buffer {kind} has strides",
                    op.location,
                    hint="take the sizes of the layout from the buffer, by memref.dim",
                )
            if expected != own:
                says = f"but size {dim} of the layout of this access is {size!r}"
                self._fact(op, own, own.with_operator("==", expected), says)

    def arguments(self, func: Any, layouts: Layouts) -> None:
        """Make facts of what the arguments of a host function promise by themselves."""
        for fact in promised_facts(func, layouts):
            self._fact_of(func, fact.value, fact.condition, fact.says, func.location)

    def finish(self) -> None:
        """Set the facts of each host function as its attribute."""
        for func, facts in self._facts.items():
            func.attributes[dialect.FACTS] = ir.ArrayAttr.get(list(facts.values()))

    # Indices.
    def _read(self, value: Any) -> Int:
        return self._reader.read(value)

    def _within(self, op: Any, i: Int, n: Int, k: int, buffer: Any, inside: Int) -> None:
        if isinstance(inside, int):
            if inside:
                self._in_range(op, i, n, f"index {k}{self._of(buffer)}", is_size=True)
            return
        if self._checks is not None and not self._is_proven(op, i, n):
            what = f"index {k}{self._of(buffer)}"
            self._checks.within(op, i, n, f"{what} is $0, its size is {_shown(n)}", inside)

    def _in_range(
        self,
        op: Any,
        x: Int,
        limit: Int,
        what: str,
        value: Any = None,
        *,
        after: bool = False,
        is_size: bool = False,
    ) -> None:
        """Prove or check that an index is in [0, limit).

        Args:
            op: what relies on it.
            x: the index.
            limit: the limit.
            what: the index, in words.
            value: what has the index, where that is known.
            after: whether it is known only behind the operation.
            is_size: whether the limit is the size of a dimension.
        """

        def limit_text(limit: str) -> str:
            return f"its size is {limit}" if is_size else f"it is to be from 0 on and below {limit}"

        if _is_surely_outside(x, limit) and not is_conditional(op):
            raise self._source.error(
                f"{what} is {_range_text(x)}, {limit_text(repr(limit))}",
                op.location,
                hint="no thread may get there: mend the index, or the size",
            )
        if not self._has_use:
            return
        known = None if is_conditional(op) else self._known(x, value)
        if (known is None and self._checks is None) or self._is_proven(op, x, limit):
            return
        end = known_expression(limit, self._known_symbol)
        if known is not None and end is not None:
            says = f"but is {what}: {limit_text(repr(limit))}"
            self._fact(op, known, known.with_operator(">=", number(0)), says)
            self._fact(op, known, known.with_operator("<", end), says)
        elif self._checks is not None:
            message = f"{what} is $0, {limit_text(_shown(limit))}"
            self._checks.within(op, value if after else x, limit, message, after=after)

    def _is_proven(self, op: Any, x: Int, limit: Int) -> bool:
        """Return whether ranges or enclosing conditions prove that an index is in [0, limit).

        `scf.if` asks: within its first region `x < end` holds.
        """
        if is_within(x, limit):
            return True
        if not is_nonnegative(x):
            return False
        with self._reader.aside():
            ends = [
                construct.add(self._read(end), distance)
                for index, end in comparisons(op)
                if isinstance(distance := construct.sub(x, self._read(index)), int)
            ]
        return any(is_nonnegative(construct.sub(limit, end)) for end in ends)

    def _known(self, x: Int, value: Any) -> Known | None:
        """Return an index as the launch computes it; `None` for a constant."""
        if isinstance(x, int):
            return None
        if value is not None:
            return known_value(value)
        return known_expression(x, self._known_symbol)

    def _known_symbol(self, symbol: Sym) -> Known | None:
        value = self._reader.values.get(symbol)
        return None if value is None else known_value(value)

    def _of(self, buffer: Any) -> str:
        """Return ` of 'a'` for a buffer that is the host function's argument a."""
        if buffer not in self._names:
            self._names[buffer] = self._named(buffer)
        return self._names[buffer]

    def _named(self, buffer: Any) -> str:
        while isinstance(buffer, ir.Value) and not isinstance(buffer, ir.BlockArgument):
            if buffer.owner.name not in _VIEWS:
                return ""
            buffer = buffer.owner.operands[0]
        func = None if buffer is None else buffer.owner.owner.operation
        if func is None or func.name != "func.func":
            return ""
        return f" of '{argument_names(func, self._source)[buffer.arg_number]}'"

    # Facts of a launch.
    def _fact(self, op: Any, value: Known, condition: Known, says: str) -> None:
        func = host_of(op)
        if func is not None:  # else nothing launches it
            self._fact_of(func, value, condition, says, op.location)

    def _fact_of(self, func: Any, value: Known, condition: Known, says: str, location: Any) -> None:
        position = position_of(location)
        entries = {
            "condition": str(condition),
            "value": str(value),
            "says": says,
            "location": "" if position is None else str(position),
        }
        facts = self._facts.setdefault(func, {})
        facts.setdefault(
            (entries["condition"], says),
            ir.DictAttr.get({name: ir.StringAttr.get(text) for name, text in entries.items()}),
        )


def _takes_numbers(module: Any) -> bool:
    """Return whether a host function has an argument that the launch may compute with.

    That is a scalar, or a buffer whose sizes or strides only the launch knows.
    """
    functions = (op.operation for op in module.body.operations)
    return any(
        not isinstance(kind, ir.MemRefType)
        or not ir.MemRefType(kind).has_static_shape
        or not is_dense(ir.MemRefType(kind))
        for func in functions
        if func.name == "func.func"
        for kind in ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs
    )


def _is_surely_outside(x: Int, limit: Int) -> bool:
    """Return whether the ranges show that an index is never in [0, limit)."""
    (low, high), (_, most) = bounds(x), bounds(limit)
    if low is not None and high is not None and low > high:
        return False  # there is no such index: a loop without iterations
    return (high is not None and high < 0) or (low is not None and most is not None and low >= most)


def _divides_all(d: Int, numbers: Sequence[int]) -> bool:
    """Return whether a divisor is a number that divides all of these numbers, each positive."""
    return isinstance(d, int) and all(n > 0 and n % d == 0 for n in numbers)


def _range_text(x: Int) -> str:
    low, high = bounds(x)
    return str(low) if low == high else f"from {low} on" if high is None else f"{low} to {high}"


def _shown(limit: Int) -> str:
    """Return a limit as a check's message shows it: the number, or the second value."""
    return str(limit) if isinstance(limit, int) else "$1"
