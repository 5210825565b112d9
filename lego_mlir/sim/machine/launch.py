"""Launches of kernels on NumPy arrays: argument checks, memory, and the waves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import (
    MAX_CLUSTER_CTAS,
    MAX_CTA_DIMS,
    MAX_CTA_THREADS,
    MAX_GRID_DIMS,
    MAX_SHARED_BYTES,
    STATIC_SHARED_BYTES,
)
from lego_mlir.limits import Limits, check_limit, current
from lego_mlir.sim.checks.races.global_races import GlobalMemory, GlobalRaces
from lego_mlir.sim.checks.races.shared_races import SharedRaces
from lego_mlir.sim.checks.uninitialized_memory import UninitializedMemory, Workspace
from lego_mlir.sim.cost.counter import Costs, Counter
from lego_mlir.sim.machine.arguments import Argument, argument_buffers
from lego_mlir.sim.machine.asynchronous import CompletionOrder
from lego_mlir.sim.machine.memory import LOCAL, POISON, SHARED, Buffer, Memory
from lego_mlir.sim.machine.observer import Observer, Observers
from lego_mlir.sim.machine.wave import Wave
from lego_mlir.sim.progress import Progress
from lego_mlir.sim.ptx.parsing.parser import parse
from lego_mlir.sim.ptx.program import Program, decode
from lego_mlir.sim.ptx.syntax import Kernel, Module
from lego_mlir.sim.ptx.types import Array

_WAVE_LANES = 8192  # enough lanes to hide NumPy's overhead per call, few enough for the cache

Dim3 = tuple[int, int, int]


class Budget:
    """Instructions that the threads of one or more launches may still execute.

    An instruction costs NumPy time however few lanes a wave has, so it counts as `_LEAST` at least.
    """

    _LEAST = 1024

    def __init__(self) -> None:
        self.left = current().instructions

    def spend(self, instructions: int, lanes: int) -> bool:
        """Subtract `instructions` of `lanes` lanes; return False if the budget is exceeded."""
        self.left -= instructions * max(lanes, self._LEAST)
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class LaunchState:
    """What all waves of a launch share.

    Attributes:
        grid, block, cluster: extents in x, y, z: CTAs, threads of a CTA, CTAs of a cluster.
        clustered: whether the launch or the kernel sets a cluster size.
        dynamic_shared, shared: bytes of dynamic, and of all shared memory of one CTA.
        limit: instructions that one wave may execute.
        budget: instructions that all waves together may execute.
        progress: reports launches that take long.
    """

    program: Program
    grid: Dim3
    block: Dim3
    cluster: Dim3
    clustered: bool
    dynamic_shared: int
    shared: int
    limit: int
    budget: Budget = field(default_factory=Budget)
    progress: Progress | None = None

    def cta_name(self, number: int) -> str:
        x, y, _ = self.grid
        return f"CTA ({number % x}, {number // x % y}, {number // (x * y)})"

    def thread_name(self, number: int) -> str:
        x, y, _ = self.block
        return f"thread ({number % x}, {number // x % y}, {number // (x * y)})"


def launch(
    ptx: str | Module,
    kernel: str,
    grid: Dim3,
    block: Dim3,
    arguments: Sequence[Argument],
    *,
    shared_bytes: int = 0,
    cluster: Dim3 | None = None,
    order: str = "late",
    seed: int = 0,
    costs: bool = False,
    checks: bool = True,
    global_checks: bool = False,
    file: str = "<ptx>",
    limits: Limits | None = None,
    budget: Budget | None = None,
    workspaces: Sequence[Workspace] = (),
    sample: int | None = None,
) -> Costs | None:
    """Run a kernel on NumPy arrays.

    Args:
        ptx: the module, as text or parsed (see `parse`).
        kernel: the name of the entry.
        grid: CTAs in x, y and z.
        block: threads of a CTA in x, y and z.
        arguments: one for each kernel parameter. A C-contiguous array is passed as the pointer to a
            buffer with its elements, and is changed in place; a NumPy scalar is passed by value; a
            `TensorMap` fills a parameter of 128 bytes, a tuple of n of them one of n · 128 bytes.
        shared_bytes: dynamic shared memory of each CTA.
        cluster: CTAs of a cluster in x, y and z; None: the kernel's `.reqnctapercluster`, or 1.
        order: the completion order of asynchronous operations: `late` (finds missing waits),
            `early` (finds targets that are overwritten too early) or `random` (see `asynchronous`).
        seed: seed of the random order.
        costs: whether to count costs.
        checks: whether to check for data races in shared memory, missing proxy fences, and reads of
            uninitialized shared memory (see `shared_races`).
        global_checks: whether to check global memory for data races too, with the fences that
            order its accesses between CTAs (see `global_races`). It costs time and memory, and
            includes `checks`.
        file: the name of the PTX in errors.
        limits: limits on the launch's size, memory and instructions; None: those of the context.
        budget: instructions that several launches may execute together; None: for this launch.
        workspaces: memory among the arguments that must be written before it is read.
        sample: the CTAs that run, for grids of which only a sample is looked at: the first and the
            last cluster, and some between them by `seed`. What other CTAs write is missing.

    Returns:
        The costs if `costs` is set, else None.

    Raises:
        LegoError: bad PTX, an unsupported instruction, or a bad launch, before anything runs; or an
            error of the kernel (a race, an access out of bounds, a deadlock, a trap, no end). Its
            location is in the source that the PTX was compiled from if it is available, else in
            the PTX.
    """
    if limits is not None:
        with limits.applied():
            return launch(
                ptx, kernel, grid, block, arguments,
                shared_bytes=shared_bytes, cluster=cluster, order=order, seed=seed, costs=costs,
                checks=checks, global_checks=global_checks, file=file, budget=budget,
                workspaces=workspaces, sample=sample,
            )  # fmt: skip
    module = parse(ptx, file) if isinstance(ptx, str) else ptx
    entry = _entry(module, kernel)
    program = decode(module, entry)
    _check_shape(module, entry, grid, block, sample)
    clustered = cluster is not None or entry.reqnctapercluster is not None
    cluster = _cluster(module, entry, grid, cluster)
    _check_shared(module, program, shared_bytes)
    numbers = _sampled(_numbers(grid, cluster), prod(cluster), sample, seed)
    concurrent_ctas = min(len(numbers), _wave_ctas(prod(cluster), prod(block)))
    _check_memory(program, shared_bytes, concurrent_ctas, prod(block))
    CompletionOrder(order)
    buffers = argument_buffers(module, entry, arguments)
    buffers |= _variables(program)
    shared = program.dynamic_start + shared_bytes
    limit, budget = current().wave_instructions, budget or Budget()
    waves = -(-len(numbers) // _wave_ctas(prod(cluster), prod(block)))
    progress = Progress(kernel, waves)
    state = LaunchState(
        program, grid, block, cluster, clustered, shared_bytes, shared, limit, budget, progress
    )
    counter = Counter(program) if costs else None
    global_memory = GlobalMemory()
    # Overflow, division by zero and NaN are results in PTX, not events.
    with np.errstate(all="ignore"), progress.interruptible():
        for number, ctas in enumerate(_waves(numbers, prod(cluster), prod(block))):
            watching: list[Observer] = []
            if global_checks:
                watching.append(GlobalRaces(global_memory))
            elif checks:
                watching.append(SharedRaces())
            if workspaces:
                watching.append(UninitializedMemory(workspaces))
            observer = Observers(*watching, *([counter] if counter else []))
            memory = Memory(buffers | _wave_memory(state, len(ctas)), observer)
            Wave(state, ctas, memory, CompletionOrder(order, (seed, number)), observer).run()
            progress.done += 1
    return None if counter is None else counter.costs()


def _numbers(grid: Dim3, cluster: Dim3) -> Array:
    """Return the CTA ids of a grid; the CTAs of a cluster are adjacent, ordered by rank."""
    numbers = np.arange(prod(grid)).reshape(grid[::-1])
    if prod(cluster) > 1:
        (x, y, z), (a, b, c) = grid, cluster
        numbers = numbers.reshape(z // c, c, y // b, b, x // a, a).transpose(0, 2, 4, 1, 3, 5)
    return numbers.reshape(-1)


def _sampled(numbers: Array, cluster: int, sample: int | None, seed: int) -> Array:
    """Return the CTA ids of whole clusters that a sample of so many CTAs has; all if it is None."""
    clusters = numbers.reshape(-1, cluster)
    count = len(clusters) if sample is None else max(2, sample // cluster)
    if count >= len(clusters):
        return numbers
    drawn = np.random.default_rng(seed).choice(len(clusters), count, replace=False)
    drawn[:2] = 0, len(clusters) - 1
    return clusters[np.unique(drawn)].reshape(-1)


def _waves(numbers: Array, cluster: int, threads: int) -> Iterator[Array]:
    """Yield the CTA ids of each wave, whole clusters."""
    size = _wave_ctas(cluster, threads)
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def _wave_ctas(cluster: int, threads: int) -> int:
    """Return the number of CTAs in a wave: whole clusters."""
    return cluster * max(1, _WAVE_LANES // (threads * cluster))


def _wave_memory(launch: LaunchState, ctas: int) -> dict[int, Buffer]:
    """Return new shared and local memory for the CTAs of a wave, by window."""
    threads = prod(launch.block)
    # Local memory of a thread starts at a multiple of 16 bytes, which preserves alignment; shared
    # memory of a CTA at bank 0.
    shared, local = -(-launch.shared // 128) * 128, -(-launch.program.local_bytes // 16) * 16
    cta_indices = np.repeat(np.arange(ctas), threads) if ctas > 1 else np.zeros(1, np.int64)
    return {
        SHARED: Buffer(
            "the shared memory",
            np.full(shared * ctas, POISON, np.uint8),
            launch.shared,
            cta_indices * shared,
            stride=shared,
            cluster=prod(launch.cluster),
        ),
        LOCAL: Buffer(
            "the thread's local memory",
            np.full(local * ctas * threads, POISON, np.uint8),
            launch.program.local_bytes,
            np.arange(ctas * threads) * local,
        ),
    }


# --- checking the launch ---


def _entry(module: Module, name: str) -> Kernel:
    found = module.kernels.get(name)
    if found is None:
        entries = ", ".join(module.kernels) or "none"
        raise LegoError(
            f"{module.file} has no kernel named {name}", hint=f"its kernels are: {entries}"
        )
    return found


def _check_shape(
    module: Module, kernel: Kernel, grid: Dim3, block: Dim3, sample: int | None
) -> None:
    def wrong(what: str) -> LegoError:
        return module.error(f"{what} in the launch of {kernel.name}", kernel.line)

    for word, extents, most in (("grid", grid, MAX_GRID_DIMS), ("block", block, MAX_CTA_DIMS)):
        if any(not 1 <= n <= m for n, m in zip(extents, most, strict=True)):
            raise wrong(f"a {word} of {extents}: each extent is at least 1 and at most {most}")
    threads = prod(block)
    ctas = prod(grid) if sample is None else min(max(2, sample), prod(grid))
    for name, number, what in (
        ("ctas", ctas, f"a grid of {grid} has {ctas} CTAs"),
        ("threads", ctas * threads, f"{ctas} CTAs of {threads} threads have {ctas * threads}"),
    ):
        _check(module, kernel, name, number, what)
    if threads > MAX_CTA_THREADS:
        raise wrong(f"a CTA of {threads} threads: at most {MAX_CTA_THREADS} are possible")
    if kernel.reqntid is not None and block != kernel.reqntid:
        raise wrong(f"a CTA of {block} where .reqntid asks for {kernel.reqntid}")
    if kernel.maxntid is not None and threads > prod(kernel.maxntid):
        raise wrong(f"a CTA of {threads} threads where .maxntid allows {prod(kernel.maxntid)}")


def _check(module: Module, kernel: Kernel, name: str, value: int, what: str) -> None:
    """Check a limit; the error is located at the kernel."""
    try:
        check_limit(name, value, f"{what} in the launch of {kernel.name}")
    except LegoError as e:
        raise module.error(e.message, kernel.line, hint=e.hint) from None


def _check_memory(program: Program, dynamic: int, ctas: int, threads: int) -> None:
    """Check the memory of the CTAs that run together and of the module's variables."""
    written = {r for block in program.basic_blocks for uses in block.uses for r in uses.writes}
    registers = sum(program.registers[r].storage.itemsize for r in written)
    lane = program.local_bytes + registers
    size = ctas * (program.dynamic_start + dynamic + threads * lane)
    size += sum(variable.size or 0 for variable in program.variables.values())
    what = "{} bytes of registers, variables, shared and local memory of CTAs that run together"
    _check(program.module, program.kernel, "memory_bytes", size, what)


def _cluster(module: Module, kernel: Kernel, grid: Dim3, cluster: Dim3 | None) -> Dim3:
    """Return the cluster size of the launch, checked against the kernel and the grid."""

    def wrong(what: str) -> LegoError:
        return module.error(f"{what} in the launch of {kernel.name}", kernel.line)

    required = kernel.reqnctapercluster
    if kernel.explicitcluster and cluster is None and required is None:
        raise wrong("no cluster where .explicitcluster asks for one")
    if required is not None and cluster is not None and cluster != required:
        raise wrong(f"a cluster of {cluster} where .reqnctapercluster asks for {required}")
    cluster = cluster or required or (1, 1, 1)
    most = kernel.maxclusterrank or MAX_CLUSTER_CTAS
    if min(cluster) < 1 or prod(cluster) > most:
        raise wrong(f"a cluster of {cluster}: 1 to {most} CTAs are possible")
    if any(n % c for n, c in zip(grid, cluster, strict=True)):
        raise wrong(f"a grid of {grid}, which is no multiple of the cluster {cluster}")
    return cluster


def _check_shared(module: Module, program: Program, dynamic: int) -> None:
    kernel = program.kernel
    static = program.shared_bytes
    if static > STATIC_SHARED_BYTES:
        raise module.error(
            f"{kernel.name} has {static} bytes of static shared memory: at most "
            f"{STATIC_SHARED_BYTES} are possible",
            kernel.line,
        )
    if dynamic < 0 or program.dynamic_start + dynamic > MAX_SHARED_BYTES:
        raise module.error(
            f"{dynamic} bytes of dynamic shared memory in the launch of {kernel.name}, beside "
            f"{static} static ones: at most {MAX_SHARED_BYTES} are possible",
            kernel.line,
        )


def _variables(program: Program) -> dict[int, Buffer]:
    """Return the module's variables with their initial values, new for each launch."""
    buffers = {}
    for window, variable in program.variables.items():
        assert variable.size is not None
        data = np.zeros(variable.size, np.uint8)
        data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        for (of, at), (address, size) in program.pointers.items():
            if of == window:
                data[at : at + size] = np.frombuffer(address.to_bytes(8, "little")[:size], np.uint8)
        buffers[window] = Buffer(
            f"the variable {variable.name}", data, data.size, writable=variable.space == "global"
        )
    return buffers
