"""Host code of an artifact's launches: facts, workspaces, tensor maps, parameters.

The structs are those of cuda.h: `CUlaunchConfig` has 56 bytes, `CUlaunchAttribute` 72.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from llvmlite import ir

from lego_mlir.artifact import (
    Artifact,
    Computed,
    Constant,
    KernelLaunch,
    Parameter,
    TensorMapParameter,
    TensorMapParameters,
    WorkspaceIndex,
)
from lego_mlir.artifact.expressions import Leaf
from lego_mlir.hardware.limits import MAX_GRID_DIMS, TENSOR_MAP_BYTES
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.launch_sizes.facts import subject
from lego_mlir.tvm_ffi.arguments import Device, Passed, read_arguments
from lego_mlir.tvm_ffi.code import FAILED, I32, I64, POINTER, HostCode, i32, i64

_CONFIG_BYTES, _SHARED, _STREAM, _ATTRIBUTES, _COUNT = 56, 24, 32, 40, 48
_ATTRIBUTE_BYTES, _ATTRIBUTE_VALUE = 72, 8
_PROGRAMMATIC_STREAM_SERIALIZATION = 6


@dataclass(frozen=True, slots=True)
class Driver:
    """What host code calls and refers to.

    Attributes:
        device: of the tensors.
        kernels: for each launch the handle of its kernel, and the bytes of each parameter.
        encodings: of each tensor map, by its description: what `cuTensorMapEncodeTiled` takes as
            numbers (type, interleave, swizzle, promotion, fill).
        launch: the address of `cuLaunchKernelEx`.
        encode: of `cuTensorMapEncodeTiled`.
        stream: of `TVMFFIEnvGetStream`.
        workspaces: of a function `int32(void *stream, int64 *sizes)`, which replaces the elements
            of each workspace by its address, and returns 0, or has set an error.
        recover: of a function `int32(int32 status)`, called when the driver refuses a launch: it
            returns 0 if it made the device's context current, so that it is to be tried again.
    """

    device: Device
    kernels: Sequence[tuple[int, Sequence[int]]]
    encodings: dict[TensorMapParameter, tuple[int, int, int, int, int]]
    launch: int
    encode: int
    stream: int
    workspaces: int
    recover: int


def host_code(artifact: Artifact, driver: Driver, fail: int) -> HostCode:
    """Build the function that checks its arguments and launches an artifact's kernels.

    Args:
        artifact: the artifact.
        driver: what it calls.
        fail: see `HostCode`.

    Raises:
        LegoError: an argument cannot be passed in this way.
    """
    code = HostCode(fail)
    passed = read_arguments(code, artifact, driver.device)
    _check_facts(code, artifact, passed)
    kind, index = i32(driver.device.kind), i32(driver.device.index)
    stream = code.call(driver.stream, POINTER, (kind, index))
    launches = _Launches(code, artifact, driver, passed, stream)
    for launch, (kernel, sizes) in zip(artifact.launches, driver.kernels, strict=True):
        launches.add(launch, kernel, sizes)
    code.builder.ret(i32(0))
    return code


def _leaf(code: HostCode, passed: Sequence[Passed], leaf: Leaf) -> Any:
    """Return what an expression asks of an argument."""
    argument = passed[leaf.argument]
    match leaf.asks:
        case "size":
            return argument.shape[leaf.dimension]
        case "stride":
            return argument.strides[leaf.dimension]
    return argument.value if argument.value.type == I64 else code.builder.sext(argument.value, I64)


def _check_facts(code: HostCode, artifact: Artifact, passed: Sequence[Passed]) -> None:
    leaf = partial(_leaf, code, passed)
    for fact in artifact.facts:
        value = code.expression(fact.value, leaf)
        holds = code.builder.not_(code.equal(code.expression(fact.condition, leaf), i64(0)))
        code.check(holds, f"{subject(fact.value, artifact)} is {{}}, {fact.says}", value)


class _Launches:
    """The launches of an artifact, with all that they are passed.

    Args:
        code: to build them in.
        artifact: whose they are.
        driver: what they call.
        passed: the arguments.
        stream: to launch on.
    """

    def __init__(
        self,
        code: HostCode,
        artifact: Artifact,
        driver: Driver,
        passed: Sequence[Passed],
        stream: Any,
    ) -> None:
        self._code = code
        self._artifact = artifact
        self._driver = driver
        self._passed = passed
        self._stream = stream
        self._maps = 0
        self._workspaces = self._allocated()

    def _allocated(self) -> list[Any]:
        """Return the addresses of the workspaces.

        They are asked for every time: a stream that is captured into a graph has others.
        """
        code, spaces = self._code, self._artifact.workspaces
        if not spaces:
            return []
        room = code.room(8 * len(spaces))
        for number, workspace in enumerate(spaces):
            count = i64(1)
            for n in workspace.shape:
                count = code.builder.mul(count, self._size(n))
            code.put(count, room, 8 * number)
        status = code.call(self._driver.workspaces, I32, (self._stream, room))
        is_there = code.equal(status, i32(0))
        with code.builder.if_then(code.builder.not_(is_there), likely=False):
            code.builder.ret(i32(FAILED))
        return [code.field(room, 8 * number, I64) for number in range(len(spaces))]

    def add(self, launch: KernelLaunch, kernel: int, sizes: Sequence[int]) -> None:
        """Build one launch.

        Args:
            launch: what to launch.
            kernel: the handle of its kernel.
            sizes: of the kernel's parameters, in bytes.
        """
        code = self._code
        pointers = code.room(8 * len(sizes))
        for number, (parameter, size) in enumerate(zip(launch.parameters, sizes, strict=True)):
            code.put(self._parameter(parameter, size), pointers, 8 * number)
        grid = [self._size(n) for n in launch.grid]
        is_empty = code.builder.not_(code.every([self._is_positive(n) for n in grid]))
        with code.builder.if_then(code.builder.not_(is_empty)):
            self._launch(launch, kernel, pointers, grid)

    def _is_positive(self, n: Any) -> Any:
        return self._code.builder.icmp_signed(">", n, i64(0))

    def _size(self, n: int | str) -> Any:
        """Return a number that may be an expression, of 64 bits."""
        if isinstance(n, int):
            return i64(n)
        return self._code.expression(n, partial(_leaf, self._code, self._passed))

    def _launch(
        self, launch: KernelLaunch, kernel: int, pointers: Any, grid: Sequence[Any]
    ) -> None:
        """Build the launch of a grid that is not empty."""
        code = self._code
        for n, most, axis in zip(grid, MAX_GRID_DIMS, "xyz", strict=True):
            code.check(
                code.builder.icmp_signed("<=", n, i64(most)),
                f"the grid of '{launch.kernel}' has {{}} CTAs along {axis}, of {most} at most",
                n,
            )
        config = self._config(launch, grid)
        arguments = config, code.builder.inttoptr(i64(kernel), POINTER), pointers, _null()
        status = code.call(self._driver.launch, I32, arguments)
        with code.builder.if_then(code.builder.not_(code.equal(status, i32(0))), likely=False):
            recovered = code.call(self._driver.recover, I32, (status,))
            with code.builder.if_then(code.builder.not_(code.equal(recovered, i32(0)))):
                code.builder.ret(i32(FAILED))
            again = code.call(self._driver.launch, I32, arguments)
            code.check(
                code.equal(again, i32(0)),
                f"'{launch.kernel}' cannot be launched: the driver's error {{}}",
                code.builder.sext(again, I64),
            )

    def _config(self, launch: KernelLaunch, grid: Sequence[Any]) -> Any:
        """Return the address of the launch's `CUlaunchConfig`."""
        code = self._code
        config = code.room(_CONFIG_BYTES)
        dims = [code.builder.trunc(n, I32) for n in grid]
        for k, n in enumerate([*dims, *map(i32, (*launch.block, launch.shared_bytes))]):
            code.put(n, config, 4 * k)
        code.put(self._stream, config, _STREAM)
        attributes = _null()
        if launch.pdl:
            attributes = code.room(_ATTRIBUTE_BYTES)
            code.put(i32(_PROGRAMMATIC_STREAM_SERIALIZATION), attributes)
            code.put(i32(1), attributes, _ATTRIBUTE_VALUE)
        code.put(attributes, config, _ATTRIBUTES)
        count = i32(int(launch.pdl))
        if launch.pdl_ctas:
            ctas = reduce(code.builder.mul, grid)
            is_few = code.builder.icmp_signed("<=", ctas, i64(launch.pdl_ctas))
            count = code.builder.select(is_few, count, i32(0))
        code.put(count, config, _COUNT)
        return config

    def _parameter(self, parameter: Parameter, size: int) -> Any:
        """Return the address of a parameter's value."""
        code = self._code
        match parameter:
            case TensorMapParameter():
                return self._tensor_maps((parameter,))
            case TensorMapParameters(maps):
                return self._tensor_maps(maps)
            case WorkspaceIndex(position):
                value = self._workspaces[position]
            case Computed(_, expression):
                value = self._computed(expression, size)
            case Constant(dtype, number):
                value = _constant(dtype, number, size)
            case _:
                value = self._passed[parameter].value
                if self._artifact.arguments[parameter].dtype == "index" and size == 4:
                    value = code.builder.trunc(value, I32)
        room = code.room(8)
        code.put(value, room)
        return room

    def _computed(self, expression: str, size: int) -> Any:
        """Return an integer that the launch computes, of a size in bytes."""
        code, value = self._code, self._size(expression)
        if size == I64.width // 8:
            return value
        short = code.builder.trunc(value, ir.IntType(8 * size))
        fits = code.equal(code.builder.sext(short, I64), value)
        code.check(
            fits, f"a size that the kernel is passed is {{}}, more than {8 * size} bits hold", value
        )
        return short

    def _tensor_maps(self, maps: Sequence[TensorMapParameter]) -> Any:
        """Return the address of tensor maps, one behind the other, encoded where they changed."""
        code = self._code
        kept = code.kept(f"tensor maps {self._maps}", TENSOR_MAP_BYTES // 8 * len(maps))
        self._maps += 1
        for number, found in enumerate(maps):
            known = [self._buffer(found.argument)]
            known += [self._size(n) for n in (*found.shape, *found.strides) if isinstance(n, str)]
            before = code.kept(f"known {self._maps}.{number}", len(known))
            same = code.every(
                [code.equal(code.field(before, 8 * k, I64), n) for k, n in enumerate(known)]
            )
            with code.builder.if_then(code.builder.not_(same), likely=False):
                self._encode(found, known[0], code.at(kept, TENSOR_MAP_BYTES * number))
                for k, n in enumerate(known):
                    code.put(n, before, 8 * k)
        return kept

    def _encode(self, found: TensorMapParameter, address: Any, destination: Any) -> None:
        """Build what encodes a tensor map of the buffer at an address."""
        code, rank = self._code, len(found.shape)
        kind, interleave, swizzle, promotion, fill = self._driver.encodings[found]
        shape, strides = code.room(8 * rank), code.room(8 * rank)
        box, steps = code.room(4 * rank), code.room(4 * rank)
        for k, n in enumerate(found.shape):
            code.put(self._size(n), shape, 8 * k)
            code.put(i32(found.box[k]), box, 4 * k)
            code.put(i32(1), steps, 4 * k)
        for k, n in enumerate(found.strides):
            code.put(self._size(n), strides, 8 * k)
        place = code.builder.inttoptr(address, POINTER)
        numbers = map(i32, (interleave, swizzle, promotion, fill))
        status = code.call(
            self._driver.encode,
            I32,
            (destination, i32(kind), i32(rank), place, shape, strides, box, steps, *numbers),
        )
        name = self._name(found.argument)
        code.check(
            code.equal(status, i32(0)),
            f"the driver refuses the tensor map of '{name}', whose address is a multiple of 16 "
            "bytes (error {})",
            code.builder.sext(status, I64),
        )

    def _buffer(self, position: int | WorkspaceIndex) -> Any:
        if isinstance(position, WorkspaceIndex):
            return self._workspaces[position.workspace]
        return self._passed[position].value

    def _name(self, position: int | WorkspaceIndex) -> str:
        if isinstance(position, WorkspaceIndex):
            return self._artifact.workspaces[position.workspace].name
        return self._artifact.arguments[position].name


def _null() -> Any:
    return ir.Constant(POINTER, None)


def _constant(dtype: str, number: int | float, size: int) -> Any:
    """Return a constant parameter as the bits of its value."""
    name = f"i{8 * size}" if dtype == "index" else dtype
    bits = int.from_bytes(dtypes.scalar(name, number).tobytes(), "little")
    return ir.Constant(ir.IntType(8 * size), bits)
