"""Reductions over a warp and over a CTA, to shuffles and shared memory.

    %s = gpu.subgroup_reduce add %v : (f32) -> f32

becomes, for the offsets 1, 2, 4, 8 and 16,

    %other, %valid = gpu.shuffle xor %v, %c1, %c32 : f32
    %v1 = arith.addf %v, %other : f32

and gpu.all_reduce the same for each warp, whose first lane stores its result in a buffer of shared
memory, from which, between two barriers, every thread reads and combines those of all warps. So all
threads get the same bits. A reduction that is one instruction, `redux.sync`, is left to
convert-gpu-to-nvvm. Upstream lowers gpu.all_reduce too, but has lanes of a warp read and write one
place of shared memory in no order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.scopes import scope_of

WARP_REDUCE, CTA_REDUCE = "gpu.subgroup_reduce", "gpu.all_reduce"

_WARP = 32
_MOST_WARPS = 32
_TOGETHER = 4
_EITHER = {"add": "add", "mul": "mul"}  # with i or f behind
_OPERATIONS = {"and": "andi", "or": "ori", "xor": "xori"}
_REDUX = ("add", "minsi", "maxsi", "and", "or", "xor")
_SHARED = "#gpu.address_space<workgroup>"

Combine = Callable[[Any, Any], Any]
"""Makes the combination of two values."""


def lower_reductions(operations: Sequence[Any], source: Source, has_redux: bool) -> bool:
    """Replace the reductions among a module's operations; whether there were any.

    Args:
        operations: of a module with kernels in gpu.launch or gpu.func.
        source: the module's text, in which errors are shown.
        has_redux: whether the target reduces an i32 over a warp by one instruction.

    Raises:
        LegoError: a value has a type that no shuffle takes.
    """
    found = [op for op in operations if op.name in (WARP_REDUCE, CTA_REDUCE)]
    for op in found:
        if op.name == WARP_REDUCE and has_redux and _is_redux(op):
            continue
        with ir.InsertionPoint(op), op.location:
            made = _Reduction(op, source).made()
        op.results[0].replace_all_uses_with(made)
        op.erase()
    return bool(found)


def _is_redux(op: Any) -> bool:
    is_i32 = str(op.operands[0].type) == "i32"
    is_warp = "cluster_size" not in op.attributes
    return is_i32 and is_warp and "uniform" in op.attributes and _kind(op) in _REDUX


def _kind(op: Any) -> str | None:
    """Return the name of the reduction's operation; `None` where a region says what it is."""
    if "op" not in op.attributes:
        return None
    return str(op.attributes["op"]).removeprefix("#gpu<all_reduce_op ").removesuffix(">")


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A reduction that is being lowered, at the insertion point of its operation."""

    op: Any
    source: Source

    def made(self) -> Any:
        """Return the value that takes its place."""
        (value,) = self.op.operands
        if self.op.name == CTA_REDUCE:
            return self.over_cta(value)
        size, stride = _WARP, 1
        if "cluster_size" in self.op.attributes:
            size = self.op.attributes["cluster_size"].value
            stride = self.op.attributes["cluster_stride"].value
        if not isinstance(value.type, ir.VectorType):
            return self.over_lanes(value, size, stride)
        return _by_elements(value, lambda element: self.over_lanes(element, size, stride))

    def over_lanes(self, value: Any, size: int, stride: int) -> Any:
        """Combine the values of `size` lanes, `stride` apart; all of them get the result."""
        offset = 1
        while offset < size:
            value = self.combined(value, self.shuffled("xor", value, offset * stride))
            offset *= 2
        return value

    def over_first(self, value: Any, lane: Any, width: Any) -> Any:
        """Combine the values of the first `width` lanes of a warp; lane 0 gets the result."""
        offset = _WARP // 2
        while offset:
            both = self.combined(value, self.shuffled("down", value, offset))
            is_there = _compare("ult", _binary("addi", lane, _index(offset)), width)
            value = _made("arith.select", value.type, is_there, both, value)
            offset //= 2
        return value

    def over_cta(self, value: Any) -> Any:
        """Combine the values of all threads of a CTA; each of them gets the result."""
        known = _threads_known(self.op)
        if known is not None and known > _MOST_WARPS * _WARP:
            raise self.error(
                f"stands in a CTA of {known} threads; a GPU takes at most {_MOST_WARPS * _WARP}",
                "launch smaller CTAs",
            )
        threads, warp, lane = _threads()
        if known is not None and known % _WARP == 0:
            own = self.over_lanes(value, _WARP, 1)
        else:
            rest = _binary("subi", threads, _binary("muli", warp, _index(_WARP)))
            own = self.over_first(value, lane, rest)
        if known is not None and known <= _WARP:
            return self.shuffled("idx", own, 0)
        warps = _MOST_WARPS if known is None else -(-known // _WARP)
        buffer = self.buffer(value.type, warps)
        self.store_by_first(own, buffer, warp, lane, warps)
        _made("gpu.barrier", None)
        last = _binary("divui", _binary("subi", threads, _index(1)), _index(_WARP))
        total = self.over_buffer(buffer, _binary("addi", last, _index(1)))
        _made("gpu.barrier", None)
        return total

    def store_by_first(self, value: Any, buffer: Any, warp: Any, lane: Any, warps: int) -> None:
        """Let the first lane of each warp store a value at its warp's index.

        Further lanes of the first warp, which are all there, store to what is left of the buffer.
        """
        left = ir.MemRefType(buffer.type).shape[0] - warps
        stores, index = _compare("eq", lane, _index(0)), warp
        if left:
            is_first_warp = _compare("eq", warp, _index(0))
            fills = _binary("andi", is_first_warp, _compare("ult", lane, _index(left + 1)))
            beyond = _binary("addi", lane, _index(warps - 1))
            index = _made("arith.select", warp.type, stores, warp, beyond)
            stores = _binary("ori", stores, fills)
        branch = ir.Operation.create("scf.if", results=[], operands=[stores], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            _made("memref.store", None, value, buffer, index)
            _made("scf.yield", None)

    def over_buffer(self, buffer: Any, count: Any) -> Any:
        """Combine the first `count` elements of a buffer, in their order."""
        element = ir.MemRefType(buffer.type).element_type
        first = _made("memref.load", element, buffer, _index(0))
        loop = ir.Operation.create(
            "scf.for",
            results=[element],
            operands=[_index(1), count, _index(1), first],
            regions=1,
        )
        block = loop.regions[0].blocks.append(ir.IndexType.get(), element)
        with ir.InsertionPoint(block):
            at, total = block.arguments
            total = self.combined(total, _made("memref.load", element, buffer, at))
            _made("scf.yield", None, total)
        return loop.results[0]

    def buffer(self, element: Any, warps: int) -> Any:
        """Room in shared memory for an element of each warp; one for all reductions of a type.

        Its elements are a multiple of four, since LLVM reads as many at once, and all are written.
        """
        scope = scope_of(self.op)
        if scope.kernel is None:
            raise self.error("stands outside of a kernel", "it belongs inside the gpu.launch")
        space = ir.Attribute.parse(_SHARED)
        count = -(-warps // _TOGETHER) * _TOGETHER
        kind = ir.MemRefType.get([count], element, memory_space=space)
        home = scope.kernel.parent
        while home.name not in ("gpu.module", "builtin.module"):
            home = home.operation.parent
        name = f"partial_{count}_{element}"
        block = home.regions[0].blocks[0]
        named = {o.attributes["sym_name"].value for o in block.operations if _is_global(o)}
        if name not in named:
            with ir.InsertionPoint.at_block_begin(block):
                attributes = {
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(kind),
                    "initial_value": ir.UnitAttr.get(),
                }
                ir.Operation.create("memref.global", attributes=attributes)
        symbol = {"name": ir.FlatSymbolRefAttr.get(name)}
        return ir.Operation.create("memref.get_global", results=[kind], attributes=symbol).result

    def combined(self, a: Any, b: Any) -> Any:
        """Return what the reduction makes of two values."""
        kind = _kind(self.op)
        if kind is None:
            return _inlined(self.op.regions[0].blocks[0], (a, b))
        if kind in _EITHER:
            name = kind + ("i" if isinstance(a.type, ir.IntegerType) else "f")
        else:
            name = _OPERATIONS.get(kind, kind)
        return _binary(name, a, b)

    def shuffled(self, mode: str, value: Any, offset: int) -> Any:
        """Return the value of another lane."""
        kind = value.type
        width = getattr(kind, "width", 0)
        if width not in (1, 8, 16, 32, 64):
            raise self.error(f"has a value of type {kind}", "types have 1, 8, 16, 32 or 64 bits")
        integer = ir.IntegerType.get_signless(width)
        bits = value if kind == integer else _made("arith.bitcast", integer, value)
        if width == 64:
            i32 = ir.IntegerType.get_signless(32)
            half = _constant(integer, 32)
            low = _made("arith.trunci", i32, bits)
            high = _made("arith.trunci", i32, _binary("shrui", bits, half))
            low, high = (
                _made("arith.extui", integer, _shuffle(mode, x, offset)) for x in (low, high)
            )
            bits = _binary("ori", low, _binary("shli", high, half))
        elif width == 32:
            bits = _shuffle(mode, bits, offset)
        else:
            i32 = ir.IntegerType.get_signless(32)
            wide = _shuffle(mode, _made("arith.extui", i32, bits), offset)
            bits = _made("arith.trunci", integer, wide)
        return bits if kind == integer else _made("arith.bitcast", kind, bits)

    def error(self, what: str, hint: str) -> LegoError:
        return self.source.error(f"'{self.op.name}' {what}", self.op.location, hint=hint)


def _by_elements(value: Any, make: Callable[[Any], Any]) -> Any:
    """Return a vector of what is made of each element."""
    kind = ir.VectorType(value.type)
    for k in range(kind.shape[0]):
        place = {"static_position": ir.DenseI64ArrayAttr.get([k])}
        element = ir.Operation.create(
            "vector.extract", results=[kind.element_type], operands=[value], attributes=place
        ).result
        value = ir.Operation.create(
            "vector.insert", results=[kind], operands=[make(element), value], attributes=place
        ).result
    return value


def _threads() -> tuple[Any, Any, Any]:
    """Return the number of threads of a CTA, and the thread's warp and lane."""
    index = ir.IndexType.get()
    x, y, z = (ir.Attribute.parse(f"#gpu<dim {d}>") for d in "xyz")

    def read(name: str, dimension: Any) -> Any:
        attributes = {"dimension": dimension}
        return ir.Operation.create(name, results=[index], attributes=attributes).result

    sizes = [read("gpu.block_dim", d) for d in (x, y, z)]
    place = [read("gpu.thread_id", d) for d in (x, y, z)]
    plane = _binary("addi", _binary("muli", place[2], sizes[1]), place[1])
    thread = _binary("addi", _binary("muli", plane, sizes[0]), place[0])
    threads = _binary("muli", _binary("muli", sizes[0], sizes[1]), sizes[2])
    warp, lane = (_binary(name, thread, _index(_WARP)) for name in ("divui", "remui"))
    return threads, warp, lane


def _threads_known(op: Any) -> int | None:
    """Return the threads of a CTA where the kernel says them."""
    kernel = scope_of(op).kernel
    if kernel is None:
        return None
    if kernel.name == "gpu.func":
        if _KNOWN not in kernel.attributes:
            return None
        return prod(int(n) for n in ir.DenseI32ArrayAttr(kernel.attributes[_KNOWN]))
    segments = list(ir.DenseI32ArrayAttr(kernel.attributes["operandSegmentSizes"]))
    sizes = list(kernel.operands)[segments[0] + 3 :][:3]
    if any(isinstance(v, ir.BlockArgument) or v.owner.name != "arith.constant" for v in sizes):
        return None
    return prod(int(ir.IntegerAttr(v.owner.attributes["value"]).value) for v in sizes)


_KNOWN = "known_block_size"


def _is_global(op: Any) -> bool:
    return bool(op.operation.name == "memref.global")


def _inlined(block: Any, arguments: Sequence[Any]) -> Any:
    """Clone a block's operations here; what it yields."""
    values = dict(zip(block.arguments, arguments, strict=True))
    *body, end = [op.operation for op in block.operations]
    for op in body:
        made = op.clone()
        for inner in (made.operation, *operations_in(made.operation)):
            for k, operand in enumerate(inner.operands):
                inner.operands[k] = values.get(operand, operand)
        values.update(zip(op.results, made.results, strict=True))
    (result,) = end.operands
    return values.get(result, result)


def _shuffle(mode: str, value: Any, offset: int) -> Any:
    i1, i32 = (ir.IntegerType.get_signless(n) for n in (1, 32))
    return ir.Operation.create(
        "gpu.shuffle",
        results=[value.type, i1],
        operands=[value, _constant(i32, offset), _constant(i32, _WARP)],
        attributes={"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")},
    ).results[0]


def _compare(how: str, a: Any, b: Any) -> Any:
    number = {"eq": 0, "ult": 6}[how]
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    i1 = ir.IntegerType.get_signless(1)
    return ir.Operation.create(
        "arith.cmpi", results=[i1], operands=[a, b], attributes={"predicate": predicate}
    ).result


def _binary(name: str, a: Any, b: Any) -> Any:
    return _made(f"arith.{name}", a.type, a, b)


def _index(n: int) -> Any:
    return _constant(ir.IndexType.get(), n)


def _constant(kind: Any, n: int) -> Any:
    value = {"value": ir.IntegerAttr.get(kind, n)}
    return ir.Operation.create("arith.constant", results=[kind], attributes=value).result


def _made(name: str, kind: Any, *operands: Any) -> Any:
    """Return an operation's result; `None` where it has none."""
    results = [] if kind is None else [kind]
    op = ir.Operation.create(name, results=results, operands=list(operands))
    return op.result if results else None
