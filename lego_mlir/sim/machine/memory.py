"""Device memory: buffers with addresses, and vectors of loads and stores on them.

Every buffer has an address window of its own, 64 GiB wide, with the buffer in its middle. An
address that leaves its buffer, in either direction, lands in no other one and still names the
buffer it came from. Shared, local and parameter memory have a generic window too; instructions
that name their state space use plain offsets from zero.

A CTA can also access the shared memory of the other CTAs of its cluster. In a `shared::cluster`
address the bits from `RANK_SHIFT` on hold 1 + the rank of a CTA. If they are zero, the address is
in the CTA's own shared memory, so every `shared::cta` address is a `shared::cluster` address.

Memory is little-endian and accesses are naturally aligned. Execution is sequentially consistent,
so cache operators, volatility, memory order and scope change nothing.

Source: PTX ISA 5.1 (state spaces), 6.4.1 (addresses as operands), 8 (memory consistency).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lego_mlir.sim.machine.observer import Observer
from lego_mlir.sim.ptx.syntax import Instruction
from lego_mlir.sim.ptx.types import UNSIGNED, Array

WINDOW_BITS = 36
MIDDLE = 1 << (WINDOW_BITS - 1)
SHARED, LOCAL, PARAM, CODE, FIRST_VARIABLE, FIRST_ARGUMENT = 1, 2, 3, 4, 16, 4096
WINDOWS = {"shared": SHARED, "shared::cluster": SHARED, "local": LOCAL, "param": PARAM}
"""The windows of the state spaces whose addresses start at zero."""

RANK_SHIFT = np.uint64(24)
POISON = 0xFF
"""Fills shared and local memory before a CTA runs: a NaN in every float type, -1 as integer."""


def base_of(window: int) -> int:
    """Return the address of the buffer in a window."""
    return (window << WINDOW_BITS) + MIDDLE


class Fault(Exception):
    """An error of the kernel. `lane` is the first lane of the wave with it, `hint` the remedy."""

    def __init__(self, message: str, lane: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.lane = lane
        self.hint = hint


@dataclass(eq=False, slots=True)
class Buffer:
    """Bytes with an address.

    Attributes:
        name: for errors: `argument 0 (a_param_0)`, `the shared memory`.
        data: the bytes; for shared and local memory those of all CTAs or lanes of the wave.
        size: bytes that one thread may address.
        starts: for shared and local memory, the byte of `data` at which each lane's memory starts.
        stride: for shared memory, the bytes from one CTA's memory to the next.
        cluster: for shared memory, the number of CTAs in a cluster.
    """

    name: str
    data: Array
    size: int
    starts: Array | None = None
    writable: bool = True
    stride: int = 0
    cluster: int = 1
    _views: dict[int, Array] = field(default_factory=dict)

    def replace(self, data: Array, size: int, starts: Array) -> None:
        """Give the buffer other bytes, in which each lane's memory starts elsewhere."""
        self.data, self.size, self.starts = data, size, starts
        self._views = {}

    def view(self, width: int) -> Array:
        """Return the same bytes as unsigned integers of `width` bytes, without a remainder."""
        found = self._views.get(width)
        if found is None:
            whole = self.data[: len(self.data) // width * width]
            found = self._views[width] = whole.view(UNSIGNED[8 * width])
        return found


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """How an instruction accesses memory.

    Attributes:
        instruction: the instruction.
        space: the state space that it names; `generic` if it names none.
        width: bytes of one element.
        count: elements of one thread (2 in `.v2`).
        writes: whether it writes.
        proxy: `async` for accesses of the copy engine and the tensor cores, else `generic`.
        sync: whether it synchronizes or is atomic; two such accesses do not race.
    """

    instruction: Instruction
    space: str
    width: int
    count: int
    writes: bool
    proxy: str = "generic"
    sync: bool = False

    @property
    def opcode(self) -> str:
        return self.instruction.opcode

    @property
    def bytes(self) -> int:
        return self.width * self.count


BufferAccess = tuple[Buffer, Array, Array | None]
"""A buffer, offsets into its data in elements, and the lanes they belong to (None: all)."""


class Memory:
    """All buffers that the threads of one wave can access, by window.

    Attributes:
        exited: the CTAs of the wave that exited, whose shared memory is invalid; None: no CTA.
        storing: the values of the store in progress, as `store` takes them; None: there is none.
        allocated: bytes that `malloc` has given out.
    """

    def __init__(self, buffers: dict[int, Buffer], observer: Observer) -> None:
        self.buffers = buffers
        self.observer = observer
        self.exited: Array | None = None
        self.storing: Sequence[Array] | None = None
        self.allocated = 0

    def load(
        self, access: MemoryAccess, address: Array, mask: Array | None, lanes: int
    ) -> list[Array]:
        """Load `access.count` elements for each lane; array k holds element k of all lanes.

        Args:
            access: the access.
            address: in bytes, uint64: one for each lane, or a single one for all lanes.
            mask: the active lanes, None for all. Inactive lanes get zeros.
            lanes: number of lanes of the wave.

        Raises:
            Fault: an access out of bounds, misaligned, or in the wrong state space.
        """
        parts = list(self.locate(access, address, mask))
        if len(parts) == 1 and parts[0][2] is None:
            view, index = parts[0][0].view(access.width), parts[0][1]
            return [view[index + k] if k else view[index] for k in range(access.count)]
        results = [np.zeros(lanes, UNSIGNED[8 * access.width]) for _ in range(access.count)]
        for buffer, index, where in parts:
            view = buffer.view(access.width)
            for k, result in enumerate(results):
                result[where] = view[index + k]
        return results

    def store(
        self, access: MemoryAccess, address: Array, values: Sequence[Array], mask: Array | None
    ) -> None:
        """Store `values`, as `load` returns them. Of lanes that write one address, the last wins.

        Raises:
            Fault: as `load`, or a store to read-only memory.
        """
        self.storing = values
        for buffer, index, where in self.locate(access, address, mask):
            view = buffer.view(access.width)
            for k, value in enumerate(values):
                if where is not None and len(value) > 1:
                    value = value[where]
                # All lanes write a single address: the last lane's value stays.
                view[index + k] = value[-1:] if len(index) == 1 else value
        self.storing = None

    def locate(
        self, access: MemoryAccess, address: Array, mask: Array | None
    ) -> Iterator[BufferAccess]:
        """Yield the checked accesses of each buffer, for instructions that read and write."""
        where = None if mask is None else np.flatnonzero(mask)
        active = address if where is None or len(address) == 1 else address[where]
        return self._split_by_buffer(access, active, where)

    def read(self, access: MemoryAccess, address: Array, lanes: Array) -> Array:
        """Load the elements at `address`, element k on behalf of the lane `lanes[k]`.

        `access.count` is 1. Raises as `load`.
        """
        result = np.zeros(len(address), UNSIGNED[8 * access.width])
        for buffer, index, chosen in self.located(access, address, lanes):
            result[chosen] = buffer.view(access.width)[index]
        return result

    def write(self, access: MemoryAccess, address: Array, values: Array, lanes: Array) -> None:
        """Store `values` at distinct addresses, as `read` loads them."""
        for buffer, index, chosen in self.located(access, address, lanes):
            buffer.view(access.width)[index] = values[chosen]

    def located(
        self, access: MemoryAccess, address: Array, lanes: Array
    ) -> Iterator[tuple[Buffer, Array, Array | slice]]:
        """Yield the buffers of an access by lanes, and which of the addresses lie in each."""
        if len(address) == 0:
            return
        windows = address >> np.uint64(WINDOW_BITS)
        if access.space in WINDOWS or int(windows.min()) == int(windows.max()):
            buffer, index, _ = next(self._split_by_buffer(access, address, lanes))
            yield buffer, index, slice(None)
            return
        for number in np.unique(windows):
            chosen = windows == number
            buffer, index, _ = next(self._split_by_buffer(access, address[chosen], lanes[chosen]))
            yield buffer, index, chosen

    def _split_by_buffer(
        self, access: MemoryAccess, active: Array, where: Array | None
    ) -> Iterator[BufferAccess]:
        """Split an access by buffer; nearly always there is one.

        Args:
            access: the access.
            active: addresses, in the order of `where`, or a single one for all.
            where: the lane of each address; None for all lanes in order.
        """
        if access.space in WINDOWS:
            yield self._checked(access, self.buffers[WINDOWS[access.space]], active, where)
            return
        window = int(active[0]) >> WINDOW_BITS
        offset = active - np.uint64(base_of(window))
        buffer = self.buffers.get(window)
        if buffer is not None and int(offset.max()) <= buffer.size - access.bytes:
            self._check_space(access, window, buffer, where)
            yield self._checked(access, buffer, offset, where)
            return
        windows = active >> np.uint64(WINDOW_BITS)
        everyone = np.arange(len(active)) if where is None else where
        for number in np.unique(windows):
            chosen = windows == number
            lanes = everyone[chosen] if len(active) > 1 else where
            offset = active[chosen] - np.uint64(base_of(int(number)))
            buffer = self.buffers.get(int(number))
            if buffer is None:
                first = 0 if lanes is None else int(lanes[0])
                raise Fault(
                    f"{access.opcode} {_verb(access)} address {int(active[chosen][0]):#x}, where "
                    f"there is no buffer",
                    first,
                    None if number else _NOT_GENERIC,
                )
            self._check_space(access, int(number), buffer, lanes)
            yield self._checked(access, buffer, offset, lanes)

    def _check_space(
        self, access: MemoryAccess, window: int, buffer: Buffer, lanes: Array | None
    ) -> None:
        first = 0 if lanes is None else int(lanes[0])
        if access.space != "generic" and window in (SHARED, LOCAL):
            raise Fault(
                f"{access.opcode} {_verb(access)} a generic address of {buffer.name}", first
            )
        if access.writes and not buffer.writable:
            raise Fault(f"{access.opcode} writes {buffer.name}, which is read-only", first)

    def _checked(
        self, access: MemoryAccess, buffer: Buffer, offset: Array, where: Array | None
    ) -> BufferAccess:
        """Check byte offsets into a buffer, and convert them to element indices."""
        width, total = access.width, access.bytes
        starts, top = buffer.starts, int(offset.max())
        if starts is not None and where is not None and len(starts) > 1:
            starts = starts[where]
        if top > buffer.size and buffer.stride and top >> int(RANK_SHIFT) <= buffer.cluster:
            starts, offset = self._in_cluster(access, buffer, offset, starts, where)
            top = int(offset.max())
        if total > 1 and int(np.bitwise_or.reduce(offset)) & (total - 1):
            bad = int(np.flatnonzero(offset & np.uint64(total - 1))[0])
            raise Fault(
                f"misaligned: {access.opcode} {_verb(access)} {total} bytes at byte offset "
                f"{int(offset[bad])} of {buffer.name}, which is no multiple of {total}",
                bad if where is None else int(where[bad]),
            )
        if top > buffer.size - total:
            is_too_small = buffer.size < total  # for an access at any offset
            beyond = offset > np.uint64(0 if is_too_small else buffer.size - total)
            bad = 0 if is_too_small else int(np.flatnonzero(beyond)[0])
            at = int(offset[bad].astype(np.int64))
            if access.space in WINDOWS and 1 << 31 <= at < 1 << 32:
                at -= 1 << 32  # an address of 32 bits below the first
            raise Fault(
                f"out of bounds: {access.opcode} {_verb(access)} {total} bytes at byte offset "
                f"{at} of {buffer.name}, which has "
                f"{buffer.size} bytes",
                bad if where is None else int(where[bad]),
            )
        index = offset.view(np.int64)
        if starts is not None:
            index = index + starts
        if width > 1:
            index = index >> (width.bit_length() - 1)
        self.observer.accessed(access, buffer, index, where)
        return buffer, index, where

    def _in_cluster(
        self,
        access: MemoryAccess,
        buffer: Buffer,
        offset: Array,
        starts: Array | None,
        where: Array | None,
    ) -> tuple[Array, Array]:
        """Return the starts and offsets of shared memory addresses that may name a CTA's rank."""
        assert starts is not None
        rank = (offset >> RANK_SHIFT).astype(np.int64) - 1
        own = starts // buffer.stride
        cta_index = np.where(rank < 0, own, own // buffer.cluster * buffer.cluster + rank)

        def refuse(bad: Array, what: str) -> None:
            if bad.any():
                first = int(np.argmax(bad))
                rank = int(np.broadcast_to(cta_index, bad.shape)[first]) % buffer.cluster
                raise Fault(
                    f"{access.opcode} {_verb(access)} the shared memory of the CTA of rank "
                    f"{rank} in the cluster, {what}",
                    first if where is None else int(where[first]),
                )

        if access.space == "shared":
            refuse(
                cta_index != own,
                "but .shared is that of the own CTA; .shared::cluster may name any",
            )
        if self.exited is not None:
            refuse(self.exited[cta_index], "which has exited")
        return cta_index * buffer.stride, offset & np.uint64((1 << int(RANK_SHIFT)) - 1)


_NOT_GENERIC = "cvta makes an address of shared, local or parameter memory generic"


def _verb(access: MemoryAccess) -> str:
    return "writes" if access.writes else "reads"
