"""GPUs as the cost model sees them: what a multiprocessor does in a clock.

Counts of multiprocessors, clocks, and rates of tensor cores are the vendor's: NVIDIA A100, L40S and
H200 datasheets and the architectures' whitepapers, dense rates of `mma.sync` with f32 sums. Of the
H200 the rate was measured, by chains of `mma.sync` in registers: one m16n8k16 in 6.05 clocks of a
quarter of a multiprocessor, 630 TFLOP/s at 1.76 GHz, two thirds of what `wgmma` reaches. The port
of a multiprocessor to the second-level cache is 64 bytes wide; an L40S reaches less of it. The
latencies are those of a machine at work.
"""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.hardware.targets import Target


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One GPU.

    Attributes:
        name: as its driver names it.
        multiprocessors: how many it has.
        clock: in GHz, under load.
        tensor: floating-point operations on 16-bit elements that the tensor cores of a
            multiprocessor do in a clock by `mma.sync`; on 8-bit elements twice as many.
        shared: bytes of shared memory that a multiprocessor moves in a clock.
        cache: bytes that it gets from the second-level cache in a clock.
        memory: bytes a second of device memory, in GB/s.
        latency: clocks from the second-level cache.
        resident_shared: bytes of shared memory of all blocks on a multiprocessor.
        resident_threads: threads of all blocks on a multiprocessor.
    """

    name: str
    multiprocessors: int
    clock: float
    tensor: int
    shared: int
    cache: int
    memory: int
    latency: int
    resident_shared: int
    resident_threads: int


_KIB = 1024

_H200 = GpuSpec("NVIDIA H200", 132, 1.75, 2708, 128, 64, 4200, 800, 228 * _KIB, 2048)
_A100 = GpuSpec("NVIDIA A100-SXM4-80GB", 108, 1.41, 2048, 128, 64, 1900, 600, 164 * _KIB, 2048)
_L40S = GpuSpec("NVIDIA L40S", 142, 2.4, 1024, 128, 40, 860, 600, 100 * _KIB, 1536)

_BY_CAPABILITY = {(8, 0): _A100, (8, 6): _L40S, (8, 9): _L40S, (9, 0): _H200}


def spec_of(target: Target) -> GpuSpec:
    """The GPU that a target's kernels are divided for; a later one's is the last we know."""
    return _BY_CAPABILITY.get(target.capability, _H200)
