"""Lower lego.load_matrices and lego.store_matrices to ldmatrix and stmatrix.

Addresses that differ by a constant share one computed address; the instruction contains the rest.

Source: PTX ISA, "ldmatrix" and "stmatrix".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, construct
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit.operations import as_word, constant, make, vector_element
from lego_mlir.mlir.lowering.parts_access.offsets import Registers, offset_of
from lego_mlir.mlir.lowering.parts_access.plan import PartsMemory, bytes_of

_ROW_BYTES = 16
_SHARED = 3
"""The address space of shared memory in LLVM's NVPTX back end."""


def read_matrices(memory: PartsMemory, op: Any, kinds: Sequence[Any]) -> list[Any]:
    """Build the reads of a lego.load_matrices; return its words, of the types `kinds`."""
    i32 = ir.IntegerType.get_signless(32)
    count = tiles.matrices_of(op)
    kind = i32 if count == 1 else ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")
    attributes = {"num": ir.IntegerAttr.get(i32, count), **_attributes(op)}
    words = []
    for pointer in _pointers(memory):
        found = make("nvvm.ldmatrix", kind, pointer, **attributes)
        words += [found] if count == 1 else [_extracted(found, k) for k in range(count)]
    return [_as_part(word, part) for word, part in zip(words, kinds, strict=True)]


def write_matrices(memory: PartsMemory, op: Any, parts: Sequence[Any]) -> None:
    """Build the writes of a lego.store_matrices."""
    words = [as_word(part) for part in parts]
    count = tiles.matrices_of(op)
    for k, pointer in enumerate(_pointers(memory)):
        ir.Operation.create(
            "nvvm.stmatrix",
            operands=[pointer, *words[k * count : (k + 1) * count]],
            attributes=_attributes(op),
        )


def _pointers(memory: PartsMemory) -> list[Any]:
    """Build the address of each of the thread's rows.

    Raises:
        LegoError: the elements of a row are not known to lie in 16 aligned bytes.
    """
    size = bytes_of(memory.element)
    length = _ROW_BYTES // size
    registers = Registers.of(memory.first, memory.factors)
    places = registers.places(offset_of(memory.layout, registers.index))
    i32 = ir.IntegerType.get_signless(32)
    buffer = make("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), memory.flat)
    start = make("arith.index_cast", i32, buffer)
    bases: dict[Int, Any] = {}
    pointers = []
    for k in range(0, len(places), length):
        base, offset = places[k]
        row = [(base, offset + x) for x in range(length)]
        if places[k : k + length] != row or offset % length or not _divides(length, base):
            raise LegoError(
                f"the layout '{memory.layout}' is not known to keep the {length} elements of a "
                f"matrix's row in {_ROW_BYTES} aligned bytes"
            )
        if base not in bases:
            at = make("arith.index_cast", i32, memory.index(base))
            distance = make("arith.muli", i32, at, constant(i32, size))
            address = make("arith.addi", i32, start, distance)
            bases[base] = make("llvm.inttoptr", ir.Type.parse(f"!llvm.ptr<{_SHARED}>"), address)
        pointers.append(_beyond(bases[base], offset * size))
    return pointers


def _divides(n: int, x: Int) -> bool:
    rest = construct.mod(x, n)
    return isinstance(rest, int) and rest == 0


def _beyond(pointer: Any, distance: int) -> Any:
    """Build a pointer `distance` bytes after another; instructions contain the distance."""
    if not distance:
        return pointer
    return make(
        "llvm.getelementptr",
        pointer.type,
        pointer,
        rawConstantIndices=ir.DenseI32ArrayAttr.get([distance]),
        elem_type=ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
    )


def _attributes(op: Any) -> dict[str, Any]:
    order = "col" if tiles.is_transposed(op) else "row"
    return {
        "layout": ir.Attribute.parse(f"#nvvm.mma_layout<{order}>"),
        "shape": ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
        "eltType": ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
    }


def _as_part(word: Any, kind: Any) -> Any:
    """Build a part of a word's elements."""
    i32 = ir.VectorType.get([1], ir.IntegerType.get_signless(32))
    found = make("vector.broadcast", i32, word)
    if isinstance(kind, ir.VectorType):
        return make("vector.bitcast", kind, found)
    return vector_element(make("vector.bitcast", ir.VectorType.get([1], kind), found), 0)


def _extracted(struct: Any, position: int) -> Any:
    i32 = ir.IntegerType.get_signless(32)
    at = ir.DenseI64ArrayAttr.get([position])
    return make("llvm.extractvalue", i32, struct, position=at)
