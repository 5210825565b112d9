"""Launches of kernels on NumPy arrays: argument checks, memory, and the waves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    TENSOR_MAP_ALIGNMENT,
    TENSOR_MAP_BYTES,
)
from lego_mlir.limits import Limits, check_limit, current
from lego_mlir.sim.checks.races import Races
from lego_mlir.sim.checks.uninitialized_memory import UninitializedMemory, Workspace
from lego_mlir.sim.cost.counter import Costs, Counter
from lego_mlir.sim.machine.asynchronous import CompletionOrder
from lego_mlir.sim.machine.memory import (
    FIRST_ARGUMENT,
    LOCAL,
    PARAM,
    POISON,
    SHARED,
    Buffer,
    Memory,
    base_of,
)
from lego_mlir.sim.machine.observer import Observer, Observers
from lego_mlir.sim.machine.tensor_map import TensorMap
from lego_mlir.sim.machine.wave import Budget, Dim3, LaunchState, Wave
from lego_mlir.sim.ptx.parser import parse
from lego_mlir.sim.ptx.program import Program, decode
from lego_mlir.sim.ptx.syntax import Kernel, Module, Parameter
from lego_mlir.sim.ptx.types import Array

Argument = Array | np.generic | TensorMap | tuple[TensorMap, ...]

_WAVE_LANES = 8192  # enough lanes to hide NumPy's overhead per call, few enough for the cache


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
    file: str = "<ptx>",
    limits: Limits | None = None,
    budget: Budget | None = None,
    workspaces: Sequence[Workspace] = (),
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
            uninitialized shared memory (see `races`).
        file: the name of the PTX in errors.
        limits: limits on the launch's size, memory and instructions; None: those of the context.
        budget: instructions that several launches may execute together; None: for this launch.
        workspaces: memory among the arguments that must be written before it is read.

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
                checks=checks, file=file, budget=budget, workspaces=workspaces,
            )  # fmt: skip
    module = parse(ptx, file) if isinstance(ptx, str) else ptx
    entry = _entry(module, kernel)
    program = decode(module, entry)
    _check_shape(module, entry, grid, block)
    clustered = cluster is not None or entry.reqnctapercluster is not None
    cluster = _cluster(module, entry, grid, cluster)
    _check_shared(module, program, shared_bytes)
    concurrent_ctas = min(prod(grid), _wave_ctas(prod(cluster), prod(block)))
    _check_memory(program, shared_bytes, concurrent_ctas, prod(block))
    CompletionOrder(order)
    buffers = _arguments(module, entry, arguments)
    buffers |= _variables(program)
    shared = program.dynamic_start + shared_bytes
    limit, budget = current().wave_instructions, budget or Budget()
    state = LaunchState(
        program, grid, block, cluster, clustered, shared_bytes, shared, limit, budget
    )
    counter = Counter(program) if costs else None
    # Overflow, division by zero and NaN are results in PTX, not events.
    with np.errstate(all="ignore"):
        for number, ctas in enumerate(_waves(grid, cluster, prod(block))):
            watching: list[Observer] = [Races()] if checks else []
            if workspaces:
                watching.append(UninitializedMemory(workspaces))
            observer = Observers(*watching, *([counter] if counter else []))
            memory = Memory(buffers | _wave_memory(state, len(ctas)), observer)
            Wave(state, ctas, memory, CompletionOrder(order, (seed, number)), observer).run()
    return None if counter is None else counter.costs()


def _waves(grid: Dim3, cluster: Dim3, threads: int) -> Iterator[Array]:
    """Yield the CTA ids of each wave; the CTAs of a cluster are adjacent, ordered by rank."""
    numbers = np.arange(prod(grid)).reshape(grid[::-1])
    if prod(cluster) > 1:
        (x, y, z), (a, b, c) = grid, cluster
        numbers = numbers.reshape(z // c, c, y // b, b, x // a, a).transpose(0, 2, 4, 1, 3, 5)
    numbers = numbers.reshape(-1)
    size = _wave_ctas(prod(cluster), threads)
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


def _check_shape(module: Module, kernel: Kernel, grid: Dim3, block: Dim3) -> None:
    def wrong(what: str) -> LegoError:
        return module.error(f"{what} in the launch of {kernel.name}", kernel.line)

    for word, extents, most in (("grid", grid, MAX_GRID_DIMS), ("block", block, MAX_CTA_DIMS)):
        if any(not 1 <= n <= m for n, m in zip(extents, most, strict=True)):
            raise wrong(f"a {word} of {extents}: each extent is at least 1 and at most {most}")
    threads = prod(block)
    ctas = prod(grid)
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


def _arguments(module: Module, kernel: Kernel, arguments: Sequence[Argument]) -> dict[int, Buffer]:
    """Return the buffers of the parameters and of the arguments, by window."""
    names = ", ".join(p.name for p in kernel.parameters)
    if len(arguments) != len(kernel.parameters):
        raise module.error(
            f"{kernel.name} takes {len(kernel.parameters)} arguments, {len(arguments)} were given",
            kernel.line,
            hint=f"its parameters are: {names}" if names else None,
        )
    buffers: dict[int, Buffer] = {}
    parameter_bytes = b""
    for i, (argument, parameter) in enumerate(zip(arguments, kernel.parameters, strict=True)):
        problem = _mismatch(argument, parameter)
        if problem:
            raise module.error(
                f"argument {i} of {kernel.name} ({parameter.name}): {problem}", kernel.line
            )
        parameter_bytes += bytes(-len(parameter_bytes) % parameter.align)
        if isinstance(argument, np.generic):
            parameter_bytes += argument.tobytes()
            continue
        for one in argument if isinstance(argument, tuple) else (argument,):
            window = FIRST_ARGUMENT + len(buffers)
            array = one.array if isinstance(one, TensorMap) else one
            data = array.reshape(-1).view(np.uint8)
            name = f"argument {i} ({parameter.name})"
            buffers[window] = Buffer(name, data, data.size, writable=array.flags.writeable)
            if isinstance(one, TensorMap):
                parameter_bytes += one.encoded(base_of(window))
            else:
                parameter_bytes += base_of(window).to_bytes(8, "little")
    data = np.frombuffer(parameter_bytes, np.uint8)
    buffers[PARAM] = Buffer("the parameters", data, data.size, writable=False)
    return buffers


def _mismatch(argument: object, parameter: Parameter) -> str | None:
    """Return why an argument does not fit a parameter, or None."""
    if isinstance(argument, TensorMap | tuple):
        size = TENSOR_MAP_BYTES * (len(argument) if isinstance(argument, tuple) else 1)
        if parameter.size != size or parameter.align % TENSOR_MAP_ALIGNMENT:
            return (
                f"a tensor map where {parameter.size} bytes with an alignment of "
                f"{parameter.align} should stand; it has {size} with {TENSOR_MAP_ALIGNMENT}"
            )
        return None
    if not isinstance(argument, np.ndarray | np.generic):
        return f"{type(argument).__name__} is neither a NumPy array nor a NumPy scalar"
    if isinstance(argument, np.ndarray):
        if parameter.is_array or parameter.kind.name not in ("u64", "s64", "b64"):
            return f"an array where a {parameter.kind} by value should stand"
        if not argument.flags.c_contiguous:
            return f"its strides {argument.strides} are not C-contiguous for {argument.shape}"
        if argument.dtype.hasobject:
            return f"an array of {argument.dtype} has no bytes to put on a device"
        return None
    if argument.dtype.kind not in "biufV":
        return f"a {argument.dtype} scalar is no kernel parameter"
    if parameter.pointer:
        return f"a {argument.dtype} scalar where a buffer should stand"
    if argument.dtype.itemsize != parameter.size:
        return (
            f"a {argument.dtype} scalar has {argument.dtype.itemsize} bytes, the parameter "
            f"{parameter.size}"
        )
    kind, actual = parameter.kind, argument.dtype.kind
    typed = not parameter.is_array and kind.kind != "b" and actual != "V"
    if typed and kind.is_float != (actual == "f"):
        return f"a {argument.dtype} scalar where a {kind} should stand"
    return None


def _variables(program: Program) -> dict[int, Buffer]:
    """Return the module's variables with their initial values, new for each launch."""
    buffers = {}
    for window, variable in program.variables.items():
        assert variable.size is not None
        data = np.zeros(variable.size, np.uint8)
        data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        buffers[window] = Buffer(
            f"the variable {variable.name}", data, data.size, writable=variable.space == "global"
        )
    return buffers
