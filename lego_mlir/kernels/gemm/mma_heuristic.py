"""Which division of a product of matrices takes least time, by a model of the machine.

A multiprocessor holds as many blocks as its shared memory and registers have room for. They take
turns; a turn multiplies one tile of A and of B, and takes as long as the busiest of

- the tensor cores: 2 m n k operations,
- shared memory: the tiles are written once, and every warp reads its rows and columns of them,
- the second-level cache: the tiles are read once,

or, where too few turns are on their way, as long as they wait; and each round of turns ends with
barriers and first loads, in which nothing is multiplied. Before the first turn a block waits for
memory, after the last it writes its tile. The blocks of a product come in waves, whose last one may
be as long as the others and nearly empty. No product is faster than device memory moves its
matrices. (The terms are those of the roofline model; the waves are NVIDIA's "tile quantization" and
"wave quantization", Matrix Multiplication Background User's Guide.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from lego_mlir.hardware.specs import GpuSpec, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.problem import BYTES, MmaConfig, Problem

_TILES = (
    (128, 256, 2, 4),
    (256, 128, 4, 2),
    (128, 128, 2, 2),
    (128, 128, 2, 4),
    (256, 64, 4, 1),
    (64, 256, 1, 4),
    (64, 128, 2, 2),
    (128, 64, 2, 2),
    (64, 64, 2, 2),
    (128, 32, 4, 1),
    (32, 128, 1, 4),
    (64, 32, 2, 2),
    (32, 64, 2, 2),
    (32, 32, 2, 2),
    (16, 128, 1, 4),
    (16, 64, 1, 4),
)
"""Rows, columns, and warps down and across; of those that take as long, the first is chosen."""

_ROW = 128
"""Bytes of k in a tile: a line of shared memory."""

_LEAST_STAGES, _MOST_STAGES = 3, 8
"""With two, copies that are made among the products of a turn have to be there by its last
quarter: of those kernels, 128×192×64 with two took a ninth longer than 128×128×64 with three."""

_REGISTERS = 65536
_OTHER_REGISTERS = 32
"""Of a thread, besides sums and factors: addresses, counters."""

_ROUND = 230
"""Clocks of a round of turns in which nothing is multiplied. Kernels of the same structure, written
in CUDA C++, took 1782 clocks a turn of 128×256×64 on an H200, of which 1549 were multiplications;
540 of 64×128×64, of which 387 were; and as many of two blocks of 128×128×64 side by side as of one
of 128×256×64."""

_LATE = 140
"""Clocks of a round besides for each turn that copies are less than three ahead: of 128×256×64,
three stages took 96 to 187 clocks longer than four."""

_START = 2000
"""Clocks of a block besides: in those kernels 1500 until the first tiles are there, and 500."""

_OUTPUT = 27
"""Bytes of C that a multiprocessor writes in a clock, there."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a product would take, divided one way.

    Attributes:
        config: the division.
        microseconds: in all.
        ctas_per_sm: blocks at a time on a multiprocessor.
        limit: what takes longest: `tensor cores`, `shared memory`, `cache`, `latency` or `memory`.
    """

    config: MmaConfig
    microseconds: float
    ctas_per_sm: int
    limit: str

    def __str__(self) -> str:
        return f"{self.microseconds:8.1f} µs  {self.config}, {self.ctas_per_sm} resident, by {self.limit}"


def choose(problem: Problem, target: Target) -> MmaConfig:
    """The division of a product: the tuned one where there is one, else the model's."""
    gpu = spec_of(target)
    return tuned_table.lookup(gpu.name, problem, MmaConfig) or estimates(problem, target)[0].config


def estimates(problem: Problem, target: Target) -> list[Estimate]:
    """What a product would take, divided every way that there is; the fastest first."""
    gpu = spec_of(target)
    found = [estimate(problem, config, gpu) for config in _configs(problem, target)]
    return sorted(found, key=lambda e: (e.microseconds, -e.config.stages))


def estimate(problem: Problem, config: MmaConfig, gpu: GpuSpec) -> Estimate:
    """What a product would take, divided in this way."""
    m, n, _ = config.tile
    size, out = BYTES[problem.dtype], BYTES[problem.out]
    down, across = config.tiles(problem)
    busiest = ceil(down * across * problem.batch / gpu.multiprocessors)
    ctas_per_sm = min(resident_ctas(problem, config, gpu), busiest)
    steps, output = config.steps(problem), m * n * out / _OUTPUT

    def wave(together: int) -> float:
        """Clocks that so many blocks take side by side."""
        turn = max(_turn(problem, config, gpu, together).values())
        ahead = min(3, (config.stages - 1) * together)
        between = _ROUND + _LATE * (3 - ahead)
        return steps * (together * turn + between) + together * output + _START

    full, rest = divmod(busiest, ctas_per_sm)
    clocks = full * wave(ctas_per_sm) + (wave(rest) if rest else 0)
    read = (problem.m + problem.n) * problem.k * size
    moved = problem.batch * (read + problem.m * problem.n * out)
    time, memory = clocks / gpu.clock / 1e3, moved / gpu.memory / 1e3
    turn = _turn(problem, config, gpu, ctas_per_sm)
    limit = "memory" if memory > time else max(turn, key=lambda name: turn[name])
    return Estimate(config, max(time, memory), ctas_per_sm, limit)


def _turn(problem: Problem, config: MmaConfig, gpu: GpuSpec, together: int) -> dict[str, float]:
    """Clocks of one block's turn, by what it has to wait for, with so many side by side."""
    m, n, k = config.tile
    size, slab = BYTES[problem.dtype], config.stage_bytes(problem)
    read = (config.warps[1] * m + config.warps[0] * n) * k * size
    return {
        "tensor cores": m * n * k * size / gpu.tensor,
        "shared memory": (slab + read) / gpu.shared,
        "cache": slab / gpu.cache,
        "latency": gpu.latency / (config.stages - 1) / together,
    }


def resident_ctas(problem: Problem, config: MmaConfig, gpu: GpuSpec) -> int:
    """How many blocks a multiprocessor has room for."""
    shared = gpu.resident_shared // (config.shared_bytes(problem) + 1024)
    registers = _REGISTERS // (config.threads * min(255, _registers(config)))
    return max(1, min(shared, registers, gpu.resident_threads // config.threads))


def _configs(problem: Problem, target: Target) -> Iterator[MmaConfig]:
    """The divisions that fit the target; more stages where they fit as many blocks."""
    gpu, size = spec_of(target), BYTES[problem.dtype]
    narrowest = 32 if problem.m > 16 else 64  # of the tiles of so many rows
    for m, n, down, across in _TILES:
        # A tile of twice the matrix is no use; the smallest is for the smallest matrix.
        if m >= 2 * max(problem.m, 16) or n >= 2 * max(problem.n, narrowest):
            continue
        found: dict[int, MmaConfig] = {}
        for stages in range(2, _MOST_STAGES + 1):
            config = MmaConfig((m, n, _ROW // size), (down, across), stages)
            steps = config.steps(problem)
            if stages > max(2, steps):
                break
            if stages < min(_LEAST_STAGES, steps):
                continue
            if (
                config.shared_bytes(problem) <= target.optin_shared_bytes
                and _registers(config) <= 255
            ):
                found[resident_ctas(problem, config, gpu)] = config
        yield from found.values()


def _registers(config: MmaConfig) -> int:
    """Registers of a thread: sums, the factors of two instructions' k, and the others."""
    m, n, _ = config.tile
    down, across = m // config.warps[0], n // config.warps[1]
    return down * across // 32 + 2 * (down // 16 * 4 + across // 8 * 2) + _OTHER_REGISTERS
