"""Tensor maps that a kernel makes in memory. Source: PTX ISA 9.7.9.26, 9.7.13.16.

A kernel clears 128 bytes, replaces each field, and copies them to global memory for the copy
engine, which then finds what `TensorMap.encoded` would have written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from lego_mlir.sim.instructions.matrix.warpwide import everyone
from lego_mlir.sim.instructions.memory.addresses import address_of, space_of
from lego_mlir.sim.machine.memory import Fault, Memory, MemoryAccess
from lego_mlir.sim.machine.tensor_map import MAX_RANK, Replaced, replaced
from lego_mlir.sim.ptx.decoded import Handler, WarpCollective
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_SPACE = "[global|shared::cta]"
_SCOPE = "cta|cluster|gpu|sys"
_WORDS = np.arange(0, TENSOR_MAP_BYTES, 8).astype(np.uint64)
_MOST = {"elemtype": 12, "interleave_layout": 0, "swizzle_mode": 3, "fill_mode": 1}
"""The largest codes of fields that are constants, as far as they are modelled."""


@instruction(
    "9.7.9.26",
    f"tensormap replace tile global_address {_SPACE} b1024 b64",
    f"tensormap replace tile rank {_SPACE} b1024 b32",
)
def replace(form: Form) -> Handler:
    """Replace the address, or the number of dimensions, which is given less one."""
    form.expect(2)
    return _replace(form, 0, 1)


@instruction(
    "9.7.9.26",
    f"tensormap replace tile box_dim|global_dim|element_stride {_SPACE} b1024 b32",
    f"tensormap replace tile global_stride {_SPACE} b1024 b64",
)
def replace_in_dimension(form: Form) -> Handler:
    """Replace what a dimension has; strides are in bytes, from the second dimension on."""
    form.expect(3)
    last = MAX_RANK - (2 if form.has("global_stride") else 1)
    return _replace(form, form.constant(form.operands[1], 0, last), 2)


@instruction("9.7.9.26", f"tensormap replace tile {'|'.join(_MOST)} {_SPACE} b1024 b32")
def replace_constant(form: Form) -> Handler:
    """Replace the type of the elements, the swizzling mode or the fill mode."""
    form.expect(2)
    form.constant(form.operands[1], 0, _MOST[form.modifiers[2]])
    return _replace(form, 0, 1)


def _replace(form: Form, dimension: int, at: int) -> Handler:
    field, kind = form.modifiers[2], form.types[-1]
    reads, writes = (_access(form, space_of(form), writes=w) for w in (False, True))
    address = address_of(form, form.operands[0], space_of(form))
    value = form.read(form.operands[at], TYPES[f"u{kind.bits}"])

    def execute(w: Wave) -> None:
        values = np.broadcast_to(value(w), w.lanes)
        for lane, where in _each(w, address(w)):
            data = _load(w.memory, reads, where, lane)
            found = replaced(data, Replaced(field, dimension, int(values[lane])))
            _store(w.memory, writes, where, lane, found)

    return execute


@instruction(
    "9.7.13.16",
    f"tensormap cp_fenceproxy global shared::cta tensormap::generic release {_SCOPE} sync aligned",
)
def copy_and_fence(form: Form) -> WarpCollective:
    """Copy a tensor map from shared to global memory, and make it visible to the copy engine."""
    form.expect(3)
    form.constant(form.operands[2], TENSOR_MAP_BYTES, TENSOR_MAP_BYTES)
    reads, writes = _access(form, "shared", writes=False), _access(form, "global", writes=True)
    target = address_of(form, form.operands[0], "global")
    source = address_of(form, form.operands[1], "shared")
    kind = ".".join(form.modifiers[3:6])

    def execute(w: Wave) -> None:
        to = np.broadcast_to(target(w), w.lanes)
        done: set[tuple[int, int]] = set()
        for lane, where in _each(w, source(w)):
            # All lanes of a warp name the same addresses: the first copies.
            if (warp := (int(w.warp_of_lane[lane]), where)) not in done:
                done.add(warp)
                data = _load(w.memory, reads, where, lane)
                _store(w.memory, writes, int(to[lane]), lane, data)
        w.observer.proxy_fenced(kind, w.mask)

    return WarpCollective(everyone, execute)


def _access(form: Form, space: str, *, writes: bool) -> MemoryAccess:
    return MemoryAccess(form.instruction, space, 8, 1, writes)


def _each(w: Wave, address: Array) -> list[tuple[int, int]]:
    """Return the active lanes with the addresses that they name.

    Raises:
        Fault: an address that is not aligned.
    """
    where = np.broadcast_to(address, w.lanes)
    found = [(int(lane), int(where[lane])) for lane in np.flatnonzero(w.active())]
    for lane, at in found:
        if at % TENSOR_MAP_ALIGNMENT:
            raise Fault(f"a tensor map at no multiple of {TENSOR_MAP_ALIGNMENT} bytes", lane)
    return found


def _load(memory: Memory, access: MemoryAccess, at: int, lane: int) -> bytes:
    words = memory.read(access, np.uint64(at) + _WORDS, np.full(len(_WORDS), lane))
    return words.tobytes()


def _store(memory: Memory, access: MemoryAccess, at: int, lane: int, data: bytes) -> None:
    values = np.frombuffer(data, np.uint64)
    memory.write(access, np.uint64(at) + _WORDS, values, np.full(len(_WORDS), lane))
