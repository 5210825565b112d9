"""Launching a kernel of a module on NumPy arrays: arguments, memory, and wave after wave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.machine import Launch, Wave
from lego_mlir.sim.memory import (
    FIRST_ARGUMENT,
    LOCAL,
    PARAM,
    POISON,
    SHARED,
    Buffer,
    Memory,
    base_of,
)
from lego_mlir.sim.parser import parse
from lego_mlir.sim.program import Program, decode
from lego_mlir.sim.syntax import Kernel, Module, Parameter
from lego_mlir.sim.types import Array

Dim3 = tuple[int, int, int]
Argument = Array | np.generic

LIMIT = 2_000_000
"""Instructions that one wave of blocks may execute unless the caller says otherwise."""

_WAVE_LANES = 8192  # enough lanes to hide NumPy's cost a call, few enough to stay in the cache
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)
_MAX_THREADS = 1024
_MAX_STATIC_SHARED = 48 * 1024
_MAX_SHARED = 227 * 1024


def launch(
    ptx: str | Module,
    kernel: str,
    grid: Dim3,
    block: Dim3,
    arguments: Sequence[Argument],
    *,
    shared_bytes: int = 0,
    file: str = "<ptx>",
    limit: int = LIMIT,
) -> None:
    """Run a kernel to its end.

    Args:
        ptx: the module, as text or parsed (see `parse`).
        kernel: name of the entry.
        grid: blocks in x, y and z.
        block: threads of a block in x, y and z.
        arguments: one for each kernel parameter. A C-contiguous array stands for the pointer to a
            buffer that holds it, and is changed in place; a NumPy scalar is passed by value.
        shared_bytes: dynamic shared memory of each block.
        file: name of the PTX in errors.
        limit: instructions that a wave of blocks may execute before it counts as run away.

    Raises:
        LegoError: bad PTX, something not modelled, a bad launch, or an error of the kernel (an
            access out of bounds or misaligned, a deadlock, a trap, no end), with its place in the
            PTX. All but the last are found before anything runs.
    """
    module = parse(ptx, file) if isinstance(ptx, str) else ptx
    entry = _entry(module, kernel)
    program = decode(module, entry)
    _check_shape(module, entry, grid, block)
    _check_shared(module, program, shared_bytes)
    buffers = _arguments(module, entry, arguments)
    buffers |= _variables(program)
    shared = program.dynamic_start + shared_bytes
    state = Launch(program, grid, block, shared_bytes, shared, limit)
    # Overflow, division by zero and NaN are results in PTX, not events.
    with np.errstate(all="ignore"):
        for blocks in _waves(prod(grid), prod(block)):
            Wave(state, blocks, _memory(state, len(blocks), prod(block), buffers)).run()


def _waves(blocks: int, threads: int) -> Iterator[Array]:
    """Block numbers, wave by wave."""
    size = max(1, _WAVE_LANES // threads)
    for start in range(0, blocks, size):
        yield np.arange(start, min(start + size, blocks))


def _memory(launch: Launch, blocks: int, threads: int, buffers: dict[int, Buffer]) -> Memory:
    """The launch's buffers and fresh shared and local memory for a wave."""
    # Parts begin at multiples of 16 bytes, so that alignment in a part is alignment.
    shared, local = (-(-n // 16) * 16 for n in (launch.shared, launch.program.local_bytes))
    slots = np.repeat(np.arange(blocks), threads) if blocks > 1 else np.zeros(1, np.int64)
    return Memory(
        buffers
        | {
            SHARED: Buffer(
                "the shared memory",
                np.full(shared * blocks, POISON, np.uint8),
                launch.shared,
                slots * shared,
            ),
            LOCAL: Buffer(
                "the thread's local memory",
                np.full(local * blocks * threads, POISON, np.uint8),
                launch.program.local_bytes,
                np.arange(blocks * threads) * local,
            ),
        }
    )


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

    for word, extents, most in (("grid", grid, _MAX_GRID), ("block", block, _MAX_BLOCK)):
        if any(not 1 <= n <= m for n, m in zip(extents, most, strict=True)):
            raise wrong(f"a {word} of {extents}: each extent is at least 1 and at most {most}")
    threads = prod(block)
    if threads > _MAX_THREADS:
        raise wrong(f"a block of {threads} threads: at most {_MAX_THREADS} are possible")
    if kernel.reqntid is not None and block != kernel.reqntid:
        raise wrong(f"a block of {block} where .reqntid asks for {kernel.reqntid}")
    if kernel.maxntid is not None and threads > prod(kernel.maxntid):
        raise wrong(f"a block of {threads} threads where .maxntid allows {prod(kernel.maxntid)}")


def _check_shared(module: Module, program: Program, dynamic: int) -> None:
    kernel = program.kernel
    static = program.shared_bytes
    if static > _MAX_STATIC_SHARED:
        raise module.error(
            f"{kernel.name} has {static} bytes of static shared memory: at most "
            f"{_MAX_STATIC_SHARED} are possible",
            kernel.line,
        )
    if dynamic < 0 or program.dynamic_start + dynamic > _MAX_SHARED:
        raise module.error(
            f"{dynamic} bytes of dynamic shared memory in the launch of {kernel.name}, beside "
            f"{static} static ones: at most {_MAX_SHARED} are possible",
            kernel.line,
        )


def _arguments(module: Module, kernel: Kernel, arguments: Sequence[Argument]) -> dict[int, Buffer]:
    """The parameter bytes and the arguments' buffers, by window."""
    names = ", ".join(p.name for p in kernel.parameters)
    if len(arguments) != len(kernel.parameters):
        raise module.error(
            f"{kernel.name} takes {len(kernel.parameters)} arguments, {len(arguments)} were given",
            kernel.line,
            hint=f"its parameters are: {names}" if names else None,
        )
    buffers: dict[int, Buffer] = {}
    block = b""
    for i, (argument, parameter) in enumerate(zip(arguments, kernel.parameters, strict=True)):
        problem = _mismatch(argument, parameter)
        if problem:
            raise module.error(
                f"argument {i} of {kernel.name} ({parameter.name}): {problem}", kernel.line
            )
        block += bytes(-len(block) % parameter.align)
        if isinstance(argument, np.ndarray):
            window = FIRST_ARGUMENT + i
            data = argument.reshape(-1).view(np.uint8)
            name = f"argument {i} ({parameter.name})"
            buffers[window] = Buffer(name, data, data.size, writable=argument.flags.writeable)
            block += base_of(window).to_bytes(8, "little")
        else:
            block += argument.tobytes()
    data = np.frombuffer(block, np.uint8)
    buffers[PARAM] = Buffer("the parameters", data, data.size, writable=False)
    return buffers


def _mismatch(argument: object, parameter: Parameter) -> str | None:
    """What is wrong with an argument, if anything."""
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
        return f"a {argument.dtype} scalar has no place in a kernel"
    if parameter.pointer:
        return f"a {argument.dtype} scalar where a buffer should stand"
    if argument.dtype.itemsize != parameter.size:
        return (
            f"a {argument.dtype} scalar has {argument.dtype.itemsize} bytes, the parameter "
            f"{parameter.size}"
        )
    kind, given = parameter.kind, argument.dtype.kind
    typed = not parameter.is_array and kind.kind != "b" and given != "V"
    if typed and kind.is_float != (given == "f"):
        return f"a {argument.dtype} scalar where a {kind} should stand"
    return None


def _variables(program: Program) -> dict[int, Buffer]:
    """The module's variables with their initial values, fresh for each launch."""
    buffers = {}
    for window, variable in program.variables.items():
        assert variable.size is not None
        data = np.zeros(variable.size, np.uint8)
        data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        buffers[window] = Buffer(
            f"the variable {variable.name}", data, data.size, writable=variable.space == "global"
        )
    return buffers
