"""Read SSA values as index expressions, with the ranges that are known of them.

Thread and CTA ids know their ranges from the launch, loop variables from their bounds;
arithmetic on indices is read through. Everything else is a symbol of its own, with no range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeGuard

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MAX_CLUSTER_CTAS, MAX_CTA_DIMS, MAX_GRID_DIMS
from lego_mlir.index import Expr, Int, Sym, bounds, construct
from lego_mlir.index.proofs.prover import is_nonnegative
from lego_mlir.index.ranges import is_positive
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.launch_sizes.promises import promised
from lego_mlir.mlir.lowering.indices.counters import counter_range

_AXES = "xyz"


class IndexReader:
    """Reads index values of one module, and records the value of each symbol.

    Attributes:
        values: the value of each symbol.
        leaf: returns the symbol of a value that cannot be read, or `None`.
    """

    def __init__(self) -> None:
        self.values: dict[Sym, Any] = {}
        self.leaf: Callable[[Any], Sym | None] = lambda value: None
        self._known: dict[Any, Int] = {}
        self._deferred: dict[Any, Callable[[], Int]] = {}
        self._names: dict[str, None] = {}

    def define(self, value: Any, x: Int) -> None:
        """Set the expression of a value, the result of a lego operation."""
        self._known[value] = x

    def defer(self, value: Any, derive: Callable[[], Int]) -> None:
        """Let `derive` return the expression of a value when it is first read."""
        self._deferred[value] = derive

    def read(self, value: Any) -> Int:
        """Return the expression of an index value."""
        found = self._known.get(value)
        if found is None:
            derive = self._deferred.get(value)
            found = self._known[value] = self._read(value) if derive is None else derive()
        return found

    def read_unassumed(self, value: Any) -> Int:
        """Return the expression of a value by what is proven of it alone.

        Claims of its operation or of a layout do not count. The reader does not change, so the
        expression serves for proofs only.
        """
        if not isinstance(value, ir.BlockArgument) and value.owner.name.startswith(dialect.PREFIX):
            return self.read(value)  # its layout alone defines it
        known = self._known.get(value)
        with self.aside():
            self.leaf = lambda value: None
            found = self._read(value, assuming=False)
        if known is not None:
            self._known[value] = known  # reading what a loop carries notes it anew
        return found

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Read for a proof: on exit the reader's state, to which that adds, is as before."""
        parts: tuple[dict[Any, Any], ...] = self.values, self._known, self._names
        leaf, counts = self.leaf, [len(part) for part in parts]
        try:
            yield
        finally:
            for part, count in zip(parts, counts, strict=True):
                while len(part) > count:
                    part.popitem()
            self.leaf = leaf

    def is_readable(self, value: Any) -> bool:
        """Return whether every lego operation that a value depends on has been read."""
        if value in self._known or value in self._deferred:
            return True
        if isinstance(value, ir.BlockArgument):
            parent = value.owner.owner
            needed = list(parent.operands) if parent.name in ("scf.for", "gpu.launch") else []
        else:
            op = value.owner
            if op.name.startswith(dialect.PREFIX):
                return False
            needed = list(op.operands) if op.name in _ARITHMETIC else []
        return all(self.is_readable(o) for o in needed if isinstance(o.type, ir.IndexType))

    def symbol(
        self,
        value: Any,
        hint: str,
        lo: int | None = None,
        hi: Int | None = None,
        divisors: frozenset[Int] = frozenset(),
    ) -> Sym:
        """Return a new symbol for a value, with a name that is unique in the module."""
        name = hint if hint not in self._names else f"{hint}.{len(self.values)}"
        self._names[name] = None
        symbol = Sym(name, lo, hi, divisors)
        self.values[symbol] = value
        return symbol

    def _read(self, value: Any, *, assuming: bool = True) -> Int:
        if isinstance(value, ir.BlockArgument):
            return self._read_argument(ir.BlockArgument(value))
        op = value.owner
        bound = bound_of(value) if assuming and op.name != "scf.for" else None
        if bound is not None:
            return self.symbol(value, "v", 0, bound - 1)
        read = _ARITHMETIC.get(op.name)
        if read is not None and isinstance(value.type, ir.IndexType):
            operands = [self.read(operand) for operand in op.operands]
            x = read(op, operands)
            if x is not None:
                return x
        if op.name in _GPU_IDS:
            return self._read_gpu_id(value, op)
        if op.name == dialect.TABLE:
            return self.symbol(value, "entry", *table_range(op))
        if (known := promised(value)) is not None:
            leaf = self.leaf(value)
            if leaf is None:
                leaf = self.symbol(value, "size", known.low, known.high, known.divisors)
            return leaf
        if op.name == "memref.extract_aligned_pointer_as_index" and _is_shared(op.operands[0]):
            return self.symbol(value, "address", 0, (1 << 31) - 1)
        if op.name == "scf.for":
            return self._read_carried(value, op, list(op.results).index(value))
        if op.name == "arith.select":
            return self._read_choice(value, op)
        if op.name == "arith.remui":  # unsigned: it has a range whatever is divided
            divisor = self.read(op.operands[1])
            if isinstance(divisor, int) and divisor > 0:
                return self.symbol(value, "v", 0, divisor - 1)
        return self._unknown(value, "v")

    def _read_argument(self, argument: Any) -> Int:
        parent = argument.owner.owner
        number = argument.arg_number
        if parent.name == "scf.for" and number == 0:
            return self._read_loop(argument, parent)
        if parent.name == "scf.for":
            return self._read_carried(argument, parent, number - 1)
        is_id = parent.name == "gpu.launch" and number < 12
        if is_id and argument.owner == parent.regions[0].blocks[0]:
            kind, axis = divmod(number, 3)
            sizes = launch_sizes(parent)
            if kind >= 2:
                return self.read(sizes[number - 6])
            size = self.read(sizes[number])
            name = ("block", "thread")[kind] + "_" + _AXES[axis]
            return self.symbol(argument, name, 0, construct.sub(size, 1))
        return self._unknown(argument, "arg")

    def _read_carried(self, value: Any, loop: Any, number: int) -> Int:
        """Read a value that a loop carries, inside of the loop or behind it."""
        if (limits := dialect.bounds_of(loop)) is not None:
            bound = limits[number]
            if bound:
                return self.symbol(value, "carried", 0, bound - 1)
        unknown = self._known[value] = self._unknown(value, "arg")  # what it adds may depend on it
        found = counter_range(loop, number, self.read, self.is_readable)
        return unknown if found is None else self.symbol(value, "count", *found)

    def _read_choice(self, value: Any, op: Any) -> Int:
        """Read a choice of two values as a symbol with the union of their ranges."""
        ranges = [bounds(self.read(operand)) for operand in list(op.operands)[1:]]
        (low, high), (other_low, other_high) = ranges
        if low is None or high is None or other_low is None or other_high is None:
            return self._unknown(value, "v")
        return self.symbol(value, "v", min(low, other_low), max(high, other_high))

    def _unknown(self, value: Any, hint: str) -> Sym:
        leaf = self.leaf(value)
        return self.symbol(value, hint) if leaf is None else leaf

    def _read_loop(self, variable: Any, loop: Any) -> Int:
        lower, upper, step = (self.read(operand) for operand in list(loop.operands)[:3])
        if not isinstance(lower, int):
            lo, _ = bounds(lower)
            return self.symbol(variable, "i", lo, construct.sub(upper, 1))
        if not isinstance(step, int) or step < 1:
            return self.symbol(variable, "i", lower, construct.sub(upper, 1))
        divisors = frozenset({step}) if step > 1 and lower % step == 0 else frozenset()
        if isinstance(upper, int):
            last = lower + max(0, (upper - 1 - lower) // step) * step
            return lower if last == lower else self.symbol(variable, "i", lower, last, divisors)
        return self.symbol(variable, "i", lower, construct.sub(upper, 1), divisors)

    def _read_gpu_id(self, value: Any, op: Any) -> Int:
        kind, is_size = _GPU_IDS[op.name]
        axis = _AXES.index(str(op.attributes["dimension"]).rstrip(">").split()[-1])
        size = self._launch_size(op, kind, axis)
        if size is None:
            limit = {"block": MAX_CTA_DIMS[axis], "cluster": MAX_CLUSTER_CTAS}.get(
                kind, MAX_GRID_DIMS[axis]
            )
            name = f"{kind}_size" if is_size else f"{kind}_id"
            return self.symbol(value, name, int(is_size), limit if is_size else limit - 1)
        if is_size:
            return size
        name = _NUMBERED[kind]
        return self.symbol(value, f"{name}_{_AXES[axis]}", 0, construct.sub(size, 1))

    def _size_of(self, launch: Any, kind: str, axis: int) -> Int:
        """Return the size of the CTA, the grid or a cluster of a launch."""
        ctas = cluster_size(launch) if axis == 0 else 1
        if kind == "cluster":
            return ctas
        size = self.read(launch_sizes(launch)[axis + (3 if kind == "block" else 0)])
        return construct.floordiv(size, ctas) if kind == "clusters" else size

    def _launch_size(self, op: Any, kind: str, axis: int) -> Int | None:
        """Return the size of the CTA or grid of `op`, if its launch or function states it."""
        parent = op.parent
        while parent is not None:
            if parent.name == "gpu.launch":
                return self._size_of(parent, kind, axis)
            key = f"known_{kind}_size"
            if parent.name == "gpu.func" and key in parent.attributes:
                return list(ir.DenseI32ArrayAttr(parent.attributes[key]))[axis]  # type: ignore[no-any-return]
            parent = parent.parent
        return None


def cluster_size(launch: Any) -> int:
    """Return the CTAs of a cluster of a gpu.launch; they lie along x."""
    attributes = launch.attributes
    has_cluster = dialect.CLUSTER in attributes
    return ir.IntegerAttr(attributes[dialect.CLUSTER]).value if has_cluster else 1


def table_range(op: Any) -> tuple[int, int]:
    """Return the least and the greatest number of a lego.table."""
    values = dialect.table_values(op)
    return min(values), max(values)


def bound_of(value: Any) -> int | None:
    """Return the exclusive upper bound that an operation states for its result, or `None`."""
    op = value.owner
    limits = dialect.bounds_of(op)
    return (limits[ir.OpResult(value).result_number] or None) if limits is not None else None


_GPU_IDS = {
    "gpu.thread_id": ("block", False),
    "gpu.block_id": ("grid", False),
    "gpu.block_dim": ("block", True),
    "gpu.grid_dim": ("grid", True),
    "gpu.cluster_id": ("clusters", False),
    "gpu.cluster_block_id": ("cluster", False),
}
_NUMBERED = {
    "block": "thread",
    "grid": "block",
    "clusters": "cluster",
    "cluster": "cluster_block",
}
"""What has a number in the CTA, the grid, the grid's clusters, and a cluster."""


def _is_shared(buffer: Any) -> bool:
    """Return whether a buffer lies in shared memory, whose addresses have 32 bits."""
    return str(ir.MemRefType(buffer.type).memory_space) == "#gpu.address_space<workgroup>"


def launch_sizes(launch: Any) -> list[Any]:
    """Return the six size operands of a gpu.launch: grid x, y, z, then block x, y, z."""
    segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    return list(launch.operands)[segments[0] : segments[0] + 6]


def _constant(op: Any, _: Sequence[Int]) -> Int:
    return op.attributes["value"].value  # type: ignore[no-any-return]


def _binary(f: Callable[[Int, Int], Int]) -> Callable[..., Int]:
    return lambda op, xs: f(xs[0], xs[1])


def _floor_division(f: Callable[[Int, Int], Int]) -> Callable[..., Int | None]:
    """Read a division that rounds down; a possible division by zero stays an operation."""
    return lambda op, xs: f(xs[0], xs[1]) if is_positive(xs[1]) else None


def _division(f: Callable[[Int, Int], Int]) -> Callable[..., Int | None]:
    """Read a truncating or unsigned division, a floor division where nothing is negative."""

    def read(op: Any, xs: Sequence[Int]) -> Int | None:
        return f(xs[0], xs[1]) if is_nonnegative(xs[0]) and is_positive(xs[1]) else None

    return read


def _shift_left(op: Any, xs: Sequence[Int]) -> Int | None:
    return construct.mul(xs[0], 1 << xs[1]) if _is_shift(xs[1]) else None


def _shift_right(op: Any, xs: Sequence[Int]) -> Int | None:
    if not _is_shift(xs[1]) or (op.name == "arith.shrui" and not is_nonnegative(xs[0])):
        return None
    return construct.floordiv(xs[0], 1 << xs[1])


def _is_shift(x: Int) -> TypeGuard[int]:
    return isinstance(x, int) and 0 <= x < 32


def _mask(op: Any, xs: Sequence[Int]) -> Int | None:
    for a, b in ((xs[0], xs[1]), (xs[1], xs[0])):
        if isinstance(b, int) and b > 0 and b & (b + 1) == 0:
            return construct.mod(a, b + 1)
    return None


def _unsigned(f: Callable[[Int, Int], Int]) -> Callable[..., Int | None]:
    def read(op: Any, xs: Sequence[Int]) -> Int | None:
        return f(xs[0], xs[1]) if is_nonnegative(xs[0]) and is_nonnegative(xs[1]) else None

    return read


def _affine_apply(op: Any, xs: Sequence[Int]) -> Int | None:
    try:
        return affine_value(op, xs)  # type: ignore[no-any-return]
    except LegoError:  # a division by what may be zero
        return None


def affine_value(op: Any, xs: Sequence[Any]) -> Any:
    """Evaluate an affine.apply on ints, arrays or expressions."""
    the_map = op.attributes["map"].value
    return _affine(the_map.results[0], xs, the_map.n_dims)


def _affine(e: Any, xs: Sequence[Any], dims: int) -> Any:
    """Evaluate an affine expression; among the operands the symbols follow the dimensions."""
    match e:
        case ir.AffineConstantExpr():
            return e.value
        case ir.AffineDimExpr():
            return xs[e.position]
        case ir.AffineSymbolExpr():
            return xs[dims + e.position]
    a, b = _affine(e.lhs, xs, dims), _affine(e.rhs, xs, dims)
    divides = isinstance(e, ir.AffineFloorDivExpr | ir.AffineModExpr | ir.AffineCeilDivExpr)
    if divides and isinstance(b, int | Expr) and not is_positive(b):
        raise LegoError(f"{b} is not known to be positive, and divides")
    match e:
        case ir.AffineAddExpr():
            return a + b
        case ir.AffineMulExpr():
            return a * b
        case ir.AffineFloorDivExpr():
            return a // b
        case ir.AffineModExpr():
            return a % b
        case ir.AffineCeilDivExpr():
            return -(-a // b)
    raise AssertionError(f"no such affine expression: {e}")


_ARITHMETIC: dict[str, Callable[..., Int | None]] = {
    "affine.apply": _affine_apply,
    "arith.constant": _constant,
    "arith.addi": _binary(construct.add),
    "arith.subi": _binary(construct.sub),
    "arith.muli": _binary(construct.mul),
    "arith.divui": _division(construct.floordiv),
    "arith.divsi": _division(construct.floordiv),
    "arith.floordivsi": _floor_division(construct.floordiv),
    "arith.ceildivsi": _floor_division(lambda a, b: -(-a // b)),
    "arith.remui": _division(construct.mod),
    "arith.remsi": _division(construct.mod),
    "arith.shli": _shift_left,
    "arith.shrui": _shift_right,
    "arith.shrsi": _shift_right,
    "arith.andi": _mask,
    "arith.xori": _binary(construct.xor),
    "arith.minsi": _binary(construct.minimum),
    "arith.maxsi": _binary(construct.maximum),
    "arith.minui": _unsigned(construct.minimum),
    "arith.maxui": _unsigned(construct.maximum),
}
