"""Bulk tensor copies: boxes of tensors, moved by the copy engine for one thread.

The 128 bytes of the tensor map are read when the copy is issued. In shared memory the rows of a
box, its innermost dimension, lie behind each other, padded to the swizzle's width where there is
one; then the pieces are swizzled by the bits of their addresses. Elements outside the tensor read
as zero or NaN and are not written; the whole box counts in the bytes of the mbarrier.

That rows are padded was measured on an H200, and that a box must begin at a multiple of 16 bytes in
its row, and for a store at no negative coordinate: anything else is an illegal instruction there.

Source: PTX ISA 9.7.9.25.5 (cp.async.bulk.tensor, cp.reduce.async.bulk.tensor), 5.5 (tensors).
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from lego_mlir.sim.instructions.copies.bulk import (
    DONE,
    REDUCTIONS,
    SHARED,
    Signal,
    check_aligned,
    combine,
    issue_store,
)
from lego_mlir.sim.instructions.copies.mbarrier import of_lanes
from lego_mlir.sim.instructions.memory.addresses import address_of, space_named
from lego_mlir.sim.instructions.memory.atomic import update_of
from lego_mlir.sim.machine.memory import PARAM, Fault, MemoryAccess, base_of
from lego_mlir.sim.machine.tensor_map import ELEMENTS, Tiles, decoded, problem, swizzled
from lego_mlir.sim.ptx.decoded import Handler, Reader
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Address, Symbol, TensorAddress
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B64, TYPES, UNSIGNED, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_RANK = "1d|2d|3d|4d|5d"


class Box:
    """The operands that name a box: a tensor map and coordinates."""

    def __init__(self, form: Form, at: int) -> None:
        operand = form.operands[at]
        rank = int(form.one_of(*_RANK.split("|"))[0])
        if not isinstance(operand, TensorAddress):
            form.fail(f"the operand {operand} where [map, {{coordinates}}] should stand", operand)
        if len(operand.coordinates.elements) != rank:
            form.fail(f"the coordinates {operand.coordinates} of a tensor of {rank}d", operand)
        self.opcode = form.instruction.opcode
        self.rank = rank
        self.map = _map_address(form, operand.map)
        self.access = MemoryAccess(form.instruction, "generic", 8, 1, False, "async")
        kind = TYPES["s32"]
        self.coordinates = [form.read(c, kind) for c in operand.coordinates.elements]

    def of_lanes(self, w: Wave) -> dict[int, tuple[Tiles, tuple[int, ...]]]:
        """Return the map's fields and the coordinates of each active lane.

        Raises:
            Fault: there is no tensor map, or one of another rank.
        """
        lanes = np.flatnonzero(w.active())
        maps = of_lanes(w, self.map, lanes)
        positions = zip(*(of_lanes(w, c, lanes).tolist() for c in self.coordinates), strict=True)
        found = {
            int(lane): (self._tiles(w, int(lane), address), position)
            for lane, address, position in zip(lanes, maps, positions, strict=True)
        }
        for lane, (tiles, position) in found.items():
            if position[0] * tiles.element % 16:
                raise Fault(
                    f"misaligned: {self.opcode} of a box that begins at element {position[0]} of a "
                    f"row, byte {position[0] * tiles.element}, which is no multiple of 16",
                    lane,
                )
        return found

    def _tiles(self, w: Wave, lane: int, address: np.uint64) -> Tiles:
        if int(address) % TENSOR_MAP_ALIGNMENT:
            raise Fault(
                f"{self.opcode}: a tensor map at no multiple of {TENSOR_MAP_ALIGNMENT} bytes", lane
            )
        where = address + np.arange(0, TENSOR_MAP_BYTES, 8).astype(np.uint64)
        words = w.memory.read(self.access, where, np.full(len(where), lane))
        tiles = decoded(words.tobytes())
        if tiles is None:
            raise Fault(f"{self.opcode}: at {int(address):#x} lies no tensor map", lane)
        if tiles.rank != self.rank:
            raise Fault(
                f"{self.opcode}: a tensor of {self.rank} dimensions by the instruction, of "
                f"{tiles.rank} by its map",
                lane,
            )
        wrong = problem(tiles)
        if wrong is not None:
            raise Fault(f"{self.opcode}: {wrong}", lane)
        return tiles


def _map_address(form: Form, operand: Address) -> Reader:
    """Return the reader of a tensor map's generic address, or of a parameter itself."""
    if isinstance(operand.base, Symbol):
        home, start = form.address(operand.base, operand.base.name)
        if home == "param":
            where = np.array([base_of(PARAM) + start + operand.offset], np.uint64)
            return lambda w: where
    return address_of(form, operand, "generic")


def units(tiles: Tiles, position: tuple[int, ...], start: int, width: int) -> tuple[Array, ...]:
    """Return the addresses of the pieces of a box.

    Args:
        tiles: the tensor and its box.
        position: coordinates of the box's first element, innermost first.
        start: address of the box in shared memory.
        width: bytes of a piece; no piece is partly outside the tensor.

    Returns:
        The pieces' addresses in shared memory, which of them lie in the tensor, and the global
        addresses of those.
    """
    element = tiles.element
    inner = np.arange(0, tiles.box[0] * element, width) + position[0] * element
    inside = (inner >= 0) & (inner < tiles.shape[0] * element)
    offset = inner
    for dimension in range(1, tiles.rank):
        steps = np.arange(tiles.moved[dimension]) * tiles.steps[dimension] + position[dimension]
        fine = (steps >= 0) & (steps < tiles.shape[dimension])
        inside = (fine[:, None] & inside).reshape(-1)
        offset = (steps[:, None] * tiles.strides[dimension] + offset).reshape(-1)
    rows = np.arange(len(inside) // len(inner)) * tiles.pitch
    linear = (rows[:, None] + np.arange(0, tiles.box[0] * element, width)).reshape(-1)
    shared = swizzled(start + linear.astype(np.uint64), tiles.swizzle)
    return shared, inside, np.uint64(tiles.address) + offset[inside].astype(np.uint64)


def _width(tiles: Tiles, position: tuple[int, ...]) -> int:
    """Return the largest piece, up to 8 bytes, that never crosses the tensor's boundary."""
    element = tiles.element
    return gcd(8, position[0] * element, tiles.shape[0] * element, tiles.box[0] * element)


def _outside(tiles: Tiles, width: int) -> Array:
    """Return the fill value of a piece outside the tensor: 0, or the NaN of an H200."""
    fill = 0x7FF77FF77FF77FF7 if tiles.nan else 0
    return np.array([fill % (1 << 8 * width)], UNSIGNED[8 * width])


_MODES = "[tile|tile::gather4|tile::scatter4|im2col|im2col::w|im2col::w::128|im2col_no_offs]"


def _check_mode(form: Form) -> None:
    mode = form.one_of(*_MODES.strip("[]").split("|"))
    if mode not in ("", "tile"):
        form.fail(f"only the mode .tile of tensor copies is modelled, not .{mode},")


_LOAD = f"cp async bulk tensor {_RANK} {SHARED} global"


@instruction(
    "9.7.9.25.5.2", f"{_LOAD} {_MODES} {DONE} [multicast::cluster] [cta_group::1] [L2::cache_hint]"
)
def load(form: Form) -> Handler:
    """Copy a box into shared memory, and signal an mbarrier."""
    _check_mode(form)
    hint, many = form.has("L2::cache_hint"), form.has("multicast::cluster")
    form.expect(3 + hint + many)
    space = space_named(form.modifiers[4])
    target = address_of(form, form.operands[0], space)
    box = Box(form, 1)
    ranks = form.read(form.operands[3], TYPES["u16"]) if many else None
    signal = Signal(form, 2, space, ranks)
    if hint:
        form.read(form.operands[-1], B64)
    opcode = form.instruction.opcode

    def execute(w: Wave) -> None:
        boxes, where = box.of_lanes(w), target(w)
        check_aligned(w, where, 128, opcode, "a target at byte")
        size = np.zeros(w.lanes, np.int64)
        for lane, (tiles, _) in boxes.items():
            size[lane] = tiles.size

        def copy(w: Wave, lane: int, targets: Array) -> None:
            tiles, position = boxes[lane]
            width = _width(tiles, position)
            reads = MemoryAccess(form.instruction, "global", width, 1, False, "async")
            writes = MemoryAccess(form.instruction, space, width, 1, True, "async")
            for start in targets:
                shared, inside, source = units(tiles, position, start, width)
                values = np.repeat(_outside(tiles, width), len(shared))
                values[inside] = w.memory.read(reads, source, np.full(len(source), lane))
                w.memory.write(writes, shared, values, np.full(len(shared), lane))

        signal.issue(w, where, size, copy)

    return execute


_STORE = "global shared::cta"


def _check_stored(opcode: str, boxes: dict[int, tuple[Tiles, tuple[int, ...]]]) -> None:
    for lane, (_, position) in boxes.items():
        if min(position) < 0:
            raise Fault(
                f"{opcode} of a box that begins at {position}: below 0 only a load may", lane
            )


@instruction(
    "9.7.9.25.5.2",
    f"cp async bulk tensor {_RANK} {_STORE} {_MODES} bulk_group [L2::cache_hint]",
)
@instruction(
    "9.7.9.25.5.3",
    f"cp reduce async bulk tensor {_RANK} {_STORE} {'|'.join(REDUCTIONS)} {_MODES} bulk_group "
    f"[L2::cache_hint]",
)
def store(form: Form) -> Handler:
    """Copy a box from shared memory to the tensor, or combine it with the tensor."""
    _check_mode(form)
    hint = form.has("L2::cache_hint")
    form.expect(2 + hint)
    box = Box(form, 0)
    source = address_of(form, form.operands[1], "shared")
    if hint:
        form.read(form.operands[2], B64)
    opcode = form.instruction.opcode
    operation = form.one_of(*REDUCTIONS) if form.modifiers[0] == "reduce" else None

    def execute(w: Wave) -> None:
        boxes = box.of_lanes(w)
        _check_stored(opcode, boxes)
        where = np.broadcast_to(source(w), w.lanes)
        check_aligned(w, where, 128, opcode, "a source at byte")
        data: dict[int, tuple[Array, Array]] = {}

        def read(w: Wave, lane: int) -> None:
            tiles, position = boxes[lane]
            width = tiles.element if operation else _width(tiles, position)
            access = MemoryAccess(form.instruction, "shared", width, 1, False, "async")
            shared, inside, target = units(tiles, position, where[lane], width)
            # What lies outside the tensor goes nowhere: nobody need have written it.
            data[lane] = target, w.memory.read(access, shared[inside], np.full(len(target), lane))

        def write(w: Wave, lane: int) -> None:
            target, values = data.pop(lane)
            width = values.dtype.itemsize
            if operation is None:
                access = MemoryAccess(form.instruction, "global", width, 1, True, "async")
                w.memory.write(access, target, values, np.full(len(target), lane))
                return
            access = MemoryAccess(form.instruction, "global", width, 1, True, "async", sync=True)
            update = update_of(operation, TYPES[ELEMENTS[boxes[lane][0].dtype][1]])
            combine(w, access, target, values, update, lane)

        issue_store(form, w, read, write)

    return execute


@instruction(
    "9.7.9.25.5.4", f"cp async bulk prefetch tensor {_RANK} L2 global {_MODES} [L2::cache_hint]"
)
def prefetch(form: Form) -> Handler:
    """Prefetch a box: the simulator has no cache."""
    _check_mode(form)
    form.expect(1 + form.has("L2::cache_hint"))
    box = Box(form, 0)

    def execute(w: Wave) -> None:
        box.of_lanes(w)

    return execute
