"""The device memory of an artifact's workspaces: who has it, and for how long.

Two runs of an artifact that may overlap in time must not have the same workspaces. So

- a bound launch has its own, for as long as it exists. Its runs have the same arrays, too, so they
  must not overlap anyway. A CUDA graph that was captured from it needs it to exist.
- launches on one stream share theirs, because a stream runs one after the other. Those of a stream
  that was waited for go to the next stream, and no more than `_MOST_STREAMS` streams keep any.
- a launch that is captured into a CUDA graph has its own until the process ends, because the graph
  may run at any time.

All workspaces of a run are one allocation. Where the launch decides their sizes, it has room for
more than one launch asks for, and it is replaced when a launch asks for more than it has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any

from lego_mlir.artifact import Workspace, workspace_offsets
from lego_mlir.diagnostics import LegoError

_MOST_STREAMS = 8
"""Streams of an artifact that keep their workspaces."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The memory that the workspaces of a launch need.

    Zeroed workspaces stand apart: wherever they begin, their memory holds nothing but zeros.

    Attributes:
        zeroed: bytes of the zeroed workspaces.
        others: bytes of the others.
        offsets: of each workspace, among those of its kind; and whether it is zeroed.
    """

    zeroed: int
    others: int
    offsets: tuple[tuple[int, bool], ...]

    @staticmethod
    def of(workspaces: Sequence[Workspace]) -> Needs:
        """Return what workspaces of known sizes need."""
        kinds = {z: [w for w in workspaces if w.zeroed is z] for z in (True, False)}
        offsets = {z: iter(workspace_offsets(kind)) for z, kind in kinds.items()}
        places = tuple((next(offsets[w.zeroed]), w.zeroed) for w in workspaces)
        return Needs(next(offsets[True]), next(offsets[False]), places)


class Allocation:
    """The workspaces of one run at a time, freed with this object.

    Args:
        name: of the artifact whose workspaces they are.
        zeroed: bytes for zeroed workspaces.
        others: bytes for others.
        device: cuda-core's device.

    Raises:
        LegoError: the device has not enough memory.
    """

    def __init__(self, name: str, zeroed: int, others: int, device: Any) -> None:
        from cuda.bindings import driver

        self._base = 0
        self._zeroed, self._others = zeroed, others
        size = max(zeroed + others, 1)
        device.set_current()
        with _allowed_in_capture():
            result, base = driver.cuMemAlloc(size)
            if result != driver.CUresult.CUDA_SUCCESS:
                raise _too_much(name, size, result)
            self._base = int(base)
            if zeroed:
                _fill_with_zeros(self._base, zeroed)

    def holds(self, needs: Needs) -> bool:
        """Return whether there is room for the workspaces of a launch."""
        return needs.zeroed <= self._zeroed and needs.others <= self._others

    def grown(self, needs: Needs) -> tuple[int, int]:
        """Return the bytes of zeroed workspaces and of others to allocate next, for `needs` too.

        At least twice those that there are of what is too small, so that sizes which grow from
        launch to launch allocate seldom.
        """
        zeroed, others = self._zeroed, self._others
        return (
            max(needs.zeroed, 2 * zeroed) if needs.zeroed > zeroed else zeroed,
            max(needs.others, 2 * others) if needs.others > others else others,
        )

    @property
    def key(self) -> tuple[int, int]:
        """Its address and its division: with the needs of a launch they give all addresses."""
        return self._base, self._zeroed

    def addresses(self, needs: Needs) -> tuple[int, ...]:
        """Return the address of each workspace of a launch for which there is room."""
        starts = {True: self._base, False: self._base + self._zeroed}
        return tuple(starts[is_zeroed] + offset for offset, is_zeroed in needs.offsets)

    def __del__(self) -> None:
        if self._base:
            # The driver frees memory when the work before is done. At exit it may be gone.
            with suppress(Exception), _allowed_in_capture():
                from cuda.bindings import driver

                driver.cuMemFree(self._base)


class WorkspacePool:
    """The workspaces of an artifact on a device.

    Args:
        name: of the artifact.
        device: cuda-core's device.

    Attributes:
        lock: is held while the kernels of one run are launched, so that on no stream there is a
            kernel of another run between them.
    """

    def __init__(self, name: str, device: Any) -> None:
        self.lock = Lock()
        self._name = name
        self._device = device
        self._of_stream: OrderedDict[int, Allocation] = OrderedDict()
        self._idle: list[Allocation] = []
        self._captured: list[Allocation] = []

    def own(self, needs: Needs) -> Allocation:
        """Return workspaces that nothing else uses.

        Raises:
            LegoError: the device has not enough memory.
        """
        return Allocation(self._name, needs.zeroed, needs.others, self._device)

    def of_stream(self, stream: Any, needs: Needs) -> Allocation:
        """Return the workspaces of runs on a stream: cuda-core's, current on the device.

        Raises:
            LegoError: the device has not enough memory.
        """
        if _is_capturing(stream):
            captured = self.own(needs)
            self._captured.append(captured)
            return captured
        key = _id_of(stream)
        with self.lock:
            found = self._of_stream.get(key)
            if found is None:
                found = self._idle.pop() if self._idle else self.own(needs)
            if not found.holds(needs):
                sizes = found.grown(needs)
                # The stream's work may use the old memory: the driver frees it when that is done.
                found = Allocation(self._name, *sizes, self._device)
            self._of_stream[key] = found
            self._of_stream.move_to_end(key)
            if len(self._of_stream) > _MOST_STREAMS:
                self._of_stream.popitem(last=False)
            return found

    def give_back(self, stream: Any) -> None:
        """Take the workspaces of a stream back, all of whose work is done."""
        with self.lock:
            found = self._of_stream.pop(_id_of(stream), None)
            if found is not None:
                self._idle.append(found)


@contextmanager
def _allowed_in_capture() -> Iterator[None]:
    """Allow this thread to allocate while a stream is captured into a CUDA graph."""
    from cuda.bindings import driver

    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    _, before = driver.cuThreadExchangeStreamCaptureMode(relaxed)
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)


def _fill_with_zeros(address: int, size: int) -> None:
    """Fill device memory with zeros, and wait for it."""
    from cuda.bindings import driver

    # On a stream of its own: no other waits for it, none that is captured takes it up.
    flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
    _, stream = driver.cuStreamCreate(flags)
    results = driver.cuMemsetD8Async(address, 0, size, stream) + driver.cuStreamSynchronize(stream)
    driver.cuStreamDestroy(stream)
    for result in results:
        if result != driver.CUresult.CUDA_SUCCESS:
            raise LegoError(f"a workspace cannot be filled with zeros: {result.name}")


def _too_much(name: str, size: int, result: Any) -> LegoError:
    from cuda.bindings import driver

    _, free, total = driver.cuMemGetInfo()
    return LegoError(
        f"the workspaces of '{name}' have {size} bytes, and the device has {free} of "
        f"{total} bytes free ({result.name})",
        hint="free device memory: every bound launch and every stream has workspaces of its own",
    )


def _is_capturing(stream: Any) -> bool:
    from cuda.bindings import driver

    _, status = driver.cuStreamIsCapturing(driver.CUstream(int(stream.handle)))
    return bool(status == driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE)


def _id_of(stream: Any) -> int:
    """Return the id of a stream, which no other one has or will have, unlike its handle."""
    from cuda.bindings import driver

    result, number = driver.cuStreamGetId(driver.CUstream(int(stream.handle)))
    return int(number) if result == driver.CUresult.CUDA_SUCCESS else -int(stream.handle)
