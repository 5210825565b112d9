"""Buffers: allocations for a layout, and the flat memory that its offsets address."""

from __future__ import annotations

import re
from functools import lru_cache
from math import gcd
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.hardware.limits import ALLOCATION_ALIGNMENT
from lego_mlir.index import Int, construct
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, memref
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.launch_sizes.strided import address_of, evenly_spaced, has_strides, is_dense
from lego_mlir.mlir.modules import symbols_in
from lego_mlir.mlir.scopes import Scope, scope_of

SHARED_ALIGNMENT = 16
"""Bytes; of the widest access."""

BOX_ALIGNMENT = 128
"""Bytes, of where TMA writes a box that is not swizzled (PTX ISA 9.7.9.27)."""

DYNAMIC_SHARED = "gpu.dynamic_shared_memory"
DYNAMIC_ALIGNMENT = 1024
"""Bytes, of where a kernel's dynamic shared memory begins: what the widest swizzles ask for."""


class FlatBuffers:
    """One-dimensional views of a module's buffers, each built once a kernel."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._made: dict[tuple[Any, Any], Any] = {}

    def __call__(self, buffer: Any, scope: Scope, op: Any) -> Any:
        """Return the buffer as a view of one dimension.

        Raises:
            LegoError: its elements do not lie at equal distances.
        """
        kind = ir.MemRefType(buffer.type)
        if kind.rank == 1 and is_dense(kind):
            return buffer
        key = (buffer, scope.body)
        if key not in self._made:
            with op.location, scope.entry(buffer):
                if has_strides(buffer):
                    self._made[key] = address_of(buffer)
                    return self._made[key]
                flat = self._flat_type(kind, op)
                i64 = ir.IntegerType.get_signless(64)
                dims = ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in range(kind.rank)])
                groups = ir.ArrayAttr.get([dims])
                self._made[key] = memref.CollapseShapeOp(flat, buffer, groups).result
        return self._made[key]

    def _flat_type(self, kind: Any, op: Any) -> Any:
        if kind.rank == 0:
            raise self._source.error(
                f"'{op.name}' through a buffer without dimensions, {kind}",
                op.location,
                hint=f"write it as memref<1x{kind.element_type}>",
            )
        elements = elements_of(kind)
        _check_countable(elements or 0, str(kind), op, self._source)
        size = ir.ShapedType.get_dynamic_size() if elements is None else elements
        element, space = kind.element_type, kind.memory_space
        if is_dense(kind):
            return ir.MemRefType.get([size], element, memory_space=space)
        spacing = evenly_spaced(kind)
        if spacing is None:
            raise self._source.error(
                f"'{op.name}': the elements of the buffer {kind} are not known to lie one after "
                "another",
                op.location,
                hint="a layout counts in flat memory: pass the whole buffer and let the layout "
                "describe the part",
            )
        stride, offset = spacing
        layout = ir.StridedLayoutAttr.get(offset, [stride])
        return ir.MemRefType.get([size], element, layout, space)


def _check_countable(elements: int, what: str, op: Any, source: Source) -> None:
    """Refuse a buffer with more elements than an index can count."""
    if elements >= 1 << 63:
        raise source.error(
            f"'{op.name}': {what} has {elements} elements, more than an index of 64 bits counts",
            op.location,
        )


def allocate(op: Any, layout: Layout, source: Source) -> None:
    """Replace a lego.alloc by a buffer of a layout's size.

    Raises:
        LegoError: the layout's size is unknown, the type cannot hold it, it is to be aligned more
            than static memory is, or no kernel encloses it.
    """
    kind = allocated_type(op, layout, source)
    if dialect.alignment_in(op.attributes, SHARED_ALIGNMENT) <= SHARED_ALIGNMENT:
        replace_alloc(op, room(op, kind, source))
        return
    if not is_workgroup(kind) or dialect.alignment_in(op.attributes) > BOX_ALIGNMENT:
        raise source.error(
            f"'lego.alloc' with {dialect.ALIGNMENT} = {dialect.alignment_in(op.attributes)}: in a "
            f"kernel of threads shared memory is aligned to {BOX_ALIGNMENT} bytes at most, other "
            f"memory to {SHARED_ALIGNMENT}",
            op.location,
            hint="in a kernel on tiles the compiler aligns shared memory as instructions need it",
        )
    size, byte = max(bytes_of(kind), DYNAMIC_ALIGNMENT), ir.IntegerType.get_signless(8)
    memory = room(op, ir.MemRefType.get([size], byte, memory_space=kind.memory_space), source)
    with ir.InsertionPoint.at_block_begin(op.block), op.location:
        start = arith.ConstantOp(ir.IndexType.get(), 0).result
        view = memref.ViewOp(kind, memory, start, [])
        view.operation.attributes[dialect.ALIGNMENT] = op.attributes[dialect.ALIGNMENT]
    replace_alloc(op, view.result)


def allocated_type(op: Any, layout: Layout, source: Source) -> Any:
    """Return the type of memref, of known size, that a lego.alloc makes.

    Raises:
        LegoError: the layout's size is unknown, or the type cannot hold it.
    """
    if not isinstance(layout.size, int):
        names = ", ".join(s.name for s in layout.symbols)
        raise source.error(
            f"'lego.alloc' needs a layout of known size, '{layout}' has symbols ({names})",
            op.location,
            hint="give them values in lego.sizes",
        )
    _check_countable(layout.size, f"a buffer for '{layout}'", op, source)
    declared = ir.MemRefType(op.results[0].type)
    element, space = declared.element_type, declared.memory_space
    kind = ir.MemRefType.get([layout.size], element, memory_space=space)
    if declared.rank != 1 or (declared.has_static_shape and declared != kind):
        raise source.error(
            f"'lego.alloc' of {declared}, its layout '{layout}' has {layout.size} elements",
            op.location,
            hint="the result is a memref of one dynamic dimension, "
            f"memref<?x{element}, #gpu.address_space<workgroup>>",
        )
    return kind


def replace_alloc(op: Any, buffer: Any) -> None:
    """Replace the uses of a lego.alloc by a buffer of known size."""
    (result,) = op.results
    rigid = [use for use in result.uses if not _takes_any_memref(use.owner)]
    if rigid and result.type != buffer.type:
        with ir.InsertionPoint(op), op.location:
            cast = memref.CastOp(result.type, buffer).result
        for use in rigid:
            use.owner.operation.operands[use.operand_number] = cast
    result.replace_all_uses_with(buffer)


def room(op: Any, kind: Any, source: Source) -> Any:
    """Build an allocation of a memref type, in its address space, for a lego.alloc.

    Raises:
        LegoError: the kernel around the operation cannot have it, or there is none.
    """
    scope = scope_of(op)
    if scope.kernel is None:
        raise source.error(
            "'lego.alloc' stands outside of a kernel",
            op.location,
            hint="shared and private buffers belong inside the gpu.launch",
        )
    match str(kind.memory_space):
        case "#gpu.address_space<workgroup>":
            if scope.has_private_buffers():
                raise source.error(
                    "'lego.alloc' of shared memory in a kernel that declares private(...)",
                    op.location,
                    hint="allocate the private buffers with lego.alloc or memref.alloca too",
                )
            return scope.add_workgroup_buffer(kind, op.location)
        case "None" | "#gpu.address_space<private>":
            with ir.InsertionPoint.at_block_begin(scope.body), op.location:
                return memref.AllocaOp(kind, [], []).memref
        case space:
            raise source.error(
                f"'lego.alloc' in the memory space {space}",
                op.location,
                hint="a kernel has #gpu.address_space<workgroup>, shared by a CTA, and "
                "#gpu.address_space<private>, each thread's own",
            )


def alignment_of(buffer: Any, scope: Scope) -> int:
    """Return the bytes that are known to divide the address of a buffer's first element.

    Shared memory begins at multiples of `SHARED_ALIGNMENT`; an argument of the host function may
    say so of itself, by the attribute `lego.alignment`. Of other buffers nothing is known: 1.
    """
    return gcd(*(_alignment(source, scope) for source in sources_of(buffer)))


def sources_of(buffer: Any) -> list[Any]:
    """Return the buffers that a buffer may be, looking through whole views and choices."""
    found, stack = [], [buffer]
    while stack:
        value = stack.pop()
        name = _maker(value)
        if name in _WHOLE:
            stack.append(value.owner.operands[0])
        elif name in _CHOICES:
            stack.extend(reversed(list(value.owner.operands)[1:]))
        else:
            found.append(value)
    return found


_WHOLE = ("memref.cast", "memref.collapse_shape")
_CHOICES = (dialect.PICK, "arith.select")


def _alignment(buffer: Any, scope: Scope) -> int:
    """Return the alignment of a buffer by its definition."""
    kind = ir.MemRefType(buffer.type)
    if not is_dense(kind) and not has_strides(buffer):
        return 1
    if not isinstance(buffer, ir.BlockArgument):
        return _alignment_of_result(buffer.owner, scope)
    if is_workgroup(kind) and buffer.owner == scope.body:
        return SHARED_ALIGNMENT
    function = buffer.owner.owner.operation
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return 1
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[buffer.arg_number])
    return dialect.alignment_in(attributes)


def _alignment_of_result(op: Any, scope: Scope) -> int:
    """Return the alignment of the buffer that an operation computes."""
    match op.name:
        case "gpu.alloc":
            return workspace_alignment(op)
        case dialect.ALLOC if is_workgroup(op.results[0].type):
            return SHARED_ALIGNMENT
        case "memref.view" if dialect.ALIGNMENT in op.attributes:
            return dialect.alignment_in(op.attributes)
        case "memref.view" if _maker(op.operands[1]) == "arith.constant":
            memory, shift = op.operands
            is_dynamic = _maker(memory) == DYNAMIC_SHARED
            start = ir.IntegerAttr(shift.owner.attributes["value"]).value
            return gcd(start, DYNAMIC_ALIGNMENT if is_dynamic else _alignment(memory, scope))
    return 1


def workspace_alignment(alloc: Any) -> int:
    """Return the alignment in bytes of a gpu.alloc: what it says, or that of every allocation."""
    return dialect.alignment_in(alloc.attributes, ALLOCATION_ALIGNMENT)


def _maker(value: Any) -> str | None:
    """Return the name of the operation that computes a value; `None` for a block argument."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.name


@lru_cache(maxsize=1 << 10)
def is_workgroup(kind: Any) -> bool:
    """Return whether a memref type is in shared memory."""
    return str(ir.MemRefType(kind).memory_space) == "#gpu.address_space<workgroup>"


def align_shared(module: Any) -> None:
    """Align every shared-memory buffer to `SHARED_ALIGNMENT` bytes at least.

    Bytes, of which tiles are parts that may be swizzled, are aligned as dynamic shared memory is.
    That is external: the launch sets its size, and LLVM would drop an internal variable of zero
    bytes.

    Args:
        module: with kernels in the llvm dialect.
    """
    i64 = ir.IntegerType.get_signless(64)
    for op in symbols_in(module):
        if op.name == "llvm.mlir.global" and ir.IntegerAttr(op.attributes["addr_space"]).value == 3:
            kind = op.attributes["global_type"].value
            bytes_ = _BYTES.fullmatch(str(kind))
            is_wide = bytes_ is not None and not 0 < int(bytes_[1]) < DYNAMIC_ALIGNMENT
            alignment = DYNAMIC_ALIGNMENT if is_wide else SHARED_ALIGNMENT
            op.attributes["alignment"] = ir.IntegerAttr.get(i64, alignment)
            if kind == dynamic_type():
                op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")


_BYTES = re.compile(r"!llvm\.array<(\d+) x i8>")


def dynamic_type() -> Any:
    """Return the type of a kernel's dynamic shared memory in the llvm dialect."""
    return ir.Type.parse("!llvm.array<0 x i8>")


def _takes_any_memref(op: Any) -> bool:
    """Return whether an operation also takes the buffer as a memref of known size."""
    return op.name.startswith((dialect.PREFIX, "nvgpu.")) or op.name in (
        "memref.load",
        "memref.store",
    )


def elements_of(kind: Any) -> int | None:
    """Return the number of elements of a memref type; `None` if a dimension is dynamic."""
    if not kind.has_static_shape:
        return None
    total: Int = 1
    for n in kind.shape:
        total = construct.mul(total, n)
    assert isinstance(total, int)
    return total


def bytes_of(kind: Any) -> int:
    """Return the bytes of a memref type of known size, with 8 for an index of either width."""
    width = getattr(kind.element_type, "width", 64)
    return (elements_of(kind) or 0) * max(1, width // 8)
