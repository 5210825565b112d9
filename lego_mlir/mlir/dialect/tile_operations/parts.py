"""Builders of what operations on tiles become: accesses of the parts that threads hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect.tile_operations.build import (
    build,
    i64,
)
from lego_mlir.mlir.dialect.tile_operations.names import (
    ARRIVES,
    COPY_BOX,
    COPY_PARTS,
    END_READS,
    EXCLUSIVE,
    IN_BOUNDS,
    KIND,
    LAYOUT,
    LOAD_MATRICES,
    LOAD_PARTS,
    MATRICES,
    MATRIX_DESCRIPTOR,
    OPERAND_SEGMENTS,
    REGISTERS,
    SCATTER_NUMBER,
    SEND_PARTS,
    STORE_MATRICES,
    STORE_PARTS,
    TARGET,
    TARGET_REGISTERS,
    TARGET_SLICE,
    TRANSPOSED,
    WORD,
)


def load_parts(
    kinds: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    mask: Sequence[Any] = (),
    other: Any = None,
    *,
    in_bounds: bool = False,
) -> list[Any]:
    """Build a load of the elements of a tile that one thread holds, in parts.

    Args:
        kinds: the types of the parts.
        buffer: the memory.
        index: of the thread's first element, one value a dimension of the layout.
        layout: the attribute of the buffer's layout.
        registers: the register factors, slowest first: the layout's dimension, size, stride.
        mask: parts of i1 that say which elements are accessed; none for all.
        other: the attribute of what is not there.
        in_bounds: whether no element that is accessed lies past the end of a dimension.
    """
    attributes = _parts_attributes(layout, registers, [1, len(index), len(mask)])
    if in_bounds:
        attributes[IN_BOUNDS] = ir.UnitAttr.get()
    if other is not None:
        attributes["other"] = other
    return build(LOAD_PARTS, kinds, [buffer, *index, *mask], attributes, None)


def store_parts(
    parts: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    mask: Sequence[Any] = (),
    *,
    in_bounds: bool = False,
    scatter: int | None = None,
    by: str | None = None,
    exclusive: bool = False,
) -> None:
    """Build a store of the elements of a tile that one thread holds; arguments as `load_parts`.

    `scatter` is the number of the lego.scatter that it is a part of; `by` makes it atomic updates;
    `exclusive` promises that no two threads have the same element.
    """
    segments = [1, len(index), len(parts), len(mask)]
    attributes = _parts_attributes(layout, registers, segments)
    if in_bounds:
        attributes[IN_BOUNDS] = ir.UnitAttr.get()
    if scatter is not None:
        attributes[SCATTER_NUMBER] = i64(scatter)
    if by is not None:
        attributes[KIND] = ir.StringAttr.get(by)
    if exclusive:
        attributes[EXCLUSIVE] = ir.UnitAttr.get()
    build(STORE_PARTS, [], [buffer, *index, *parts, *mask], attributes, None)


def copy_parts(
    source: Any,
    source_index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    buffer: Any,
    index: Sequence[Any],
    target: Any,
    target_registers: Sequence[tuple[int, int, int]],
    *,
    in_bounds: bool = False,
) -> None:
    """Build the start of a copy of the elements that a thread would hold into shared memory.

    Args:
        source: the memory that is read.
        source_index: of the thread's first element there, as of `load_parts`.
        layout: the attribute of that memory's layout.
        registers: the register factors there, as of `load_parts`.
        buffer: shared memory.
        index: of the thread's first element there.
        target: the attribute of that memory's layout.
        target_registers: the register factors there.
        in_bounds: whether the first index is known to be inside of the layout's dimensions.
    """
    attributes = _parts_attributes(layout, registers, [1, len(source_index), 1, len(index)])
    attributes[TARGET] = target
    attributes[TARGET_REGISTERS] = _factors(target_registers)
    if in_bounds:
        attributes[IN_BOUNDS] = ir.UnitAttr.get()
    build(COPY_PARTS, [], [source, *source_index, buffer, *index], attributes, None)


def copy_box(
    source: Any,
    source_index: Sequence[Any],
    layout: Any,
    whole: Sequence[int],
    buffer: Any,
    index: Sequence[Any],
    target: Any,
    target_whole: Sequence[int],
    barrier: Any,
) -> None:
    """Build the start of a copy of a slice of a tensor into shared memory by TMA, by one thread.

    Args:
        source: the tensor.
        source_index: of the slice's first element, 0 in whole dimensions, then values of symbols.
        layout: the attribute of the tensor's layout.
        whole: the dimensions that are copied whole.
        buffer: shared memory.
        index: of the slice's first element there.
        target: the attribute of that memory's layout.
        target_whole: its dimensions that are written whole.
        barrier: the pointer to the mbarrier that counts the bytes.
    """
    segments = [1, len(source_index), 1, len(index), 1]
    attributes = {
        LAYOUT: layout,
        "slice": ir.DenseI64ArrayAttr.get(list(whole)),
        TARGET: target,
        TARGET_SLICE: ir.DenseI64ArrayAttr.get(list(target_whole)),
        OPERAND_SEGMENTS: ir.DenseI32ArrayAttr.get(segments),
    }
    build(COPY_BOX, [], [source, *source_index, buffer, *index, barrier], attributes, None)


def send_parts(
    parts: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    barrier: Any,
    cta: Any,
    slot: Any | None = None,
    *,
    arrives: bool = False,
) -> None:
    """Build a store into the shared memory of another CTA of the cluster.

    Args:
        parts: what the thread holds, of elements of 4 or 8 bytes.
        buffer: the memory; it has the same address in all CTAs.
        index: of the thread's first element, as of `load_parts`.
        layout: the attribute of the buffer's layout.
        registers: the register factors, as of `load_parts`.
        barrier: an mbarrier in shared memory; that of the other CTA counts the bytes.
        cta: the other CTA's rank in the cluster, an i32.
        slot: which of several mbarriers it is, of an exchange that alternates between slots.
        arrives: whether the thread arrives there, too, behind its stores.
    """
    slots = [] if slot is None else [slot]
    segments = [1, len(index), len(parts), 1, len(slots), 1]
    attributes = _parts_attributes(layout, registers, segments)
    if arrives:
        attributes[ARRIVES] = ir.UnitAttr.get()
    build(SEND_PARTS, [], [buffer, *index, *parts, barrier, *slots, cta], attributes, None)


def load_matrices(
    kinds: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    matrices: int,
    *,
    transposed: bool,
) -> list[Any]:
    """Build a load of words by ldmatrix.

    Args:
        kinds: the types of the words, matrix by matrix, instruction by instruction.
        buffer: shared memory.
        index: of the first element of the thread's first row, one value a dimension of the layout.
        layout: the attribute of the buffer's layout.
        registers: the register factors, slowest first: the layout's dimension, size, stride; the
            fastest ones count the elements of a row.
        matrices: of an instruction: 1, 2 or 4.
        transposed: whether it transposes.
    """
    attributes = _matrices_attributes(layout, registers, matrices, transposed=transposed)
    return build(LOAD_MATRICES, kinds, [buffer, *index], attributes, None)


def store_matrices(
    words: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    matrices: int,
    *,
    transposed: bool,
) -> None:
    """Build a store of words by stmatrix; arguments as `load_matrices`."""
    attributes = _matrices_attributes(layout, registers, matrices, transposed=transposed)
    segments = [1, len(index), len(words)]
    attributes[OPERAND_SEGMENTS] = ir.DenseI32ArrayAttr.get(segments)
    build(STORE_MATRICES, [], [buffer, *index, *words], attributes, None)


def matrix_descriptor(buffer: Any, index: Sequence[Any], layout: Any, word: int) -> Any:
    """Build the matrix descriptor, an i64, of a tile in shared memory.

    Args:
        buffer: shared memory.
        index: of the tile's first element, one value a dimension of the layout.
        layout: the attribute of the buffer's layout.
        word: the 64 bits of the descriptor of such a tile at address 0.
    """
    signed = word - (1 << 64) if word >> 63 else word
    attributes = {LAYOUT: layout, WORD: i64(signed)}
    kind = ir.IntegerType.get_signless(64)
    return build(MATRIX_DESCRIPTOR, [kind], [buffer, *index], attributes, None)[0]


def end_reads(buffers: Sequence[Any]) -> None:
    """Build the end of reads that wgmma have begun of these buffers."""
    build(END_READS, [], buffers, {}, None)


def _matrices_attributes(
    layout: Any, registers: Sequence[tuple[int, int, int]], matrices: int, *, transposed: bool
) -> dict[str, Any]:
    attributes = {
        LAYOUT: layout,
        REGISTERS: _factors(registers),
        MATRICES: i64(matrices),
    }
    return attributes | ({TRANSPOSED: ir.UnitAttr.get()} if transposed else {})


def _parts_attributes(
    layout: Any, registers: Sequence[tuple[int, int, int]], segments: Sequence[int]
) -> dict[str, Any]:
    return {
        LAYOUT: layout,
        REGISTERS: _factors(registers),
        OPERAND_SEGMENTS: ir.DenseI32ArrayAttr.get(list(segments)),
    }


def _factors(registers: Sequence[tuple[int, int, int]]) -> Any:
    return ir.DenseI64ArrayAttr.get([n for factor in registers for n in factor])
