"""Host code that reads the arguments of a call, and checks them.

A call has `TVMFFIAny` values (tvm/ffi/c_api.h): 16 bytes each, the type in the first 4, the value
in the last 8. A tensor is a pointer to DLPack's `DLTensor` (dlpack.h), or to an object with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from llvmlite import ir

from lego_mlir.artifact import Argument, Artifact, known_numbers
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES, integer_range
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.launch_sizes.extents import row_major
from lego_mlir.runtime.views import DLPACK_TYPES
from lego_mlir.tvm_ffi.code import F32, F64, I1, I32, I64, POINTER, HostCode, i32, i64
from lego_mlir.tvm_ffi.forms import described, fixed_form, free_form

_ANY_BYTES, _VALUE = 16, 8
_INT, _BOOL, _FLOAT, _TENSOR_POINTER, _TENSOR_OBJECT = 1, 2, 3, 7, 70
_OBJECT_BYTES = 24
"""Of the header of an object, behind which a tensor object has its `DLTensor`."""

_DEVICE, _DTYPE, _OFFSET = 8, 20, 40
"""Fields of a `DLTensor`; the first is the address of the data."""


CUDA = 2
"""DLPack's number of CUDA devices."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device as DLPack has it.

    Attributes:
        kind: 1 for the host, `CUDA`.
        index: of the device of its kind.
    """

    kind: int
    index: int


@dataclass(frozen=True, slots=True)
class Passed:
    """An argument of a call, as values of the host code.

    Attributes:
        value: of a scalar; the address of a tensor's first element, as an integer.
        shape: the sizes of a tensor's buffer.
        strides: of the buffer, in elements.
    """

    value: Any
    shape: tuple[Any, ...] = ()
    strides: tuple[Any, ...] = ()


def read_arguments(code: HostCode, artifact: Artifact, device: Device) -> list[Passed]:
    """Build what reads and checks the arguments, and return them.

    Args:
        code: to build it in.
        artifact: whose arguments they are.
        device: of the tensors.

    Raises:
        LegoError: an argument cannot be passed in this way.
    """
    _, arguments, count, _ = code.function.args
    names = ", ".join(argument.name for argument in artifact.arguments)
    code.check(
        code.equal(count, i32(len(artifact.arguments))),
        f"'{artifact.name}' takes {len(artifact.arguments)} arguments ({names}), {{}} are given",
        code.builder.zext(count, I64),
    )
    passed = []
    for position, argument in enumerate(artifact.arguments):
        given = code.at(arguments, _ANY_BYTES * position)
        if argument.shape is None:
            passed.append(Passed(_number(code, given, argument)))
        else:
            passed.append(_tensor(code, given, argument, device))
    if not artifact.in_place:
        _check_overlap(code, artifact.arguments, passed)
    return passed


def _number(code: HostCode, given: Any, argument: Argument) -> Any:
    """Return a scalar argument, as wide as its type; an index has 64 bits."""
    kind = code.field(given, 0, I32)
    if argument.dtype in ("f32", "f64"):
        return _float(code, given, kind, argument)
    if argument.dtype[0] not in "isu":
        raise LegoError(
            f"argument '{argument.name}' is a number of {argument.dtype}, which TVM FFI has not",
            hint="make it an lg.Scalar of f32, and convert it in the kernel",
        )
    is_number = code.builder.or_(code.equal(kind, i32(_INT)), code.equal(kind, i32(_BOOL)))
    code.check(is_number, f"argument '{argument.name}' is an integer of type {argument.dtype}")
    value = code.field(given, _VALUE, I64)
    bits = 8 * ELEMENT_BYTES[argument.dtype]
    if bits == I64.width:
        return value
    low, high = integer_range(argument.dtype)
    inside = code.builder.and_(
        code.builder.icmp_signed(">=", value, i64(low)),
        code.builder.icmp_signed("<=", value, i64(high)),
    )
    code.check(
        inside, f"argument '{argument.name}' is {{}}, no value of type {argument.dtype}", value
    )
    return code.builder.trunc(value, ir.IntType(bits))


def _float(code: HostCode, given: Any, kind: Any, argument: Argument) -> Any:
    """Return an argument of f32 or f64, for which an integer may stand."""
    builder = code.builder
    is_float = code.equal(kind, i32(_FLOAT))
    is_integer = builder.or_(code.equal(kind, i32(_INT)), code.equal(kind, i32(_BOOL)))
    code.check(
        builder.or_(is_float, is_integer),
        f"argument '{argument.name}' is a number of type {argument.dtype}",
    )
    integer = builder.sitofp(code.field(given, _VALUE, I64), F64)
    value = builder.select(is_float, code.field(given, _VALUE, F64), integer)
    return value if argument.dtype == "f64" else builder.fptrunc(value, F32)


def _tensor(code: HostCode, given: Any, argument: Argument, device: Device) -> Passed:
    """Return a tensor argument."""
    builder, name = code.builder, argument.name
    kind = code.field(given, 0, I32)
    is_object = code.equal(kind, i32(_TENSOR_OBJECT))
    code.check(
        builder.or_(is_object, code.equal(kind, i32(_TENSOR_POINTER))),
        f"argument '{name}' is a tensor; TVM FFI found none",
    )
    pointer = code.field(given, _VALUE, POINTER)
    tensor = builder.select(is_object, code.at(pointer, _OBJECT_BYTES), pointer)
    found = code.field(tensor, _DEVICE, I64)
    where = f"GPU {device.index}" if device.kind == CUDA else "the host"
    code.check(
        code.equal(found, i64(device.kind | device.index << 32)),
        f"argument '{name}' is a tensor on {where}",
    )
    dtype = builder.and_(code.field(tensor, _DTYPE, I64), i64((1 << 32) - 1))
    allowed = [
        code.equal(dtype, i64(kind | bits << 8 | 1 << 16))
        for (kind, bits), names in DLPACK_TYPES.items()
        if argument.dtype in names
    ]
    is_right = code.builder.not_(code.every([code.builder.not_(one) for one in allowed]))
    code.check(
        is_right, f"argument '{name}' has elements of {argument.dtype}, the tensor other ones"
    )
    shape, strides = _form(code, tensor, argument)
    offset = code.field(tensor, _OFFSET, I64)
    address = builder.add(code.field(tensor, 0, I64), offset)
    if argument.alignment > 1:
        low = builder.and_(address, i64(argument.alignment - 1))
        code.check(
            code.equal(low, i64(0)),
            f"argument '{name}' begins at a multiple of {argument.alignment} bytes; the tensor "
            "does not",
        )
    return Passed(address, shape, strides)


def _form(code: HostCode, tensor: Any, argument: Argument) -> tuple[Any, Any]:
    """Check shape and strides of a `DLTensor`, and return those of the buffer that it is."""
    assert argument.shape is not None
    if argument.strides is None and None not in argument.shape:
        shape = known_numbers(argument.shape)
        fits = code.builder.call(fixed_form(code, argument), [tensor])
        code.check(fits, f"argument '{argument.name}' is {described(argument)}; the tensor is not")
        return tuple(map(i64, shape)), tuple(map(i64, row_major(shape)))
    return free_form(code, tensor, argument)


def _check_overlap(code: HostCode, arguments: Sequence[Argument], passed: Sequence[Passed]) -> None:
    """Build checks that no buffer that is written shares bytes with another one."""
    buffers = [
        (argument, one.value, code.builder.add(one.value, _bytes(code, argument, one)))
        for argument, one in zip(arguments, passed, strict=True)
        if argument.shape is not None and 0 not in argument.shape and argument.access != "none"
    ]
    builder = code.builder
    for (a, a_begin, a_end), (b, b_begin, b_end) in combinations(buffers, 2):
        if a.access not in WRITES and b.access not in WRITES:
            continue
        a_is_before = builder.icmp_unsigned("<=", a_end, b_begin)
        b_is_before = builder.icmp_unsigned("<=", b_end, a_begin)
        code.check(
            builder.or_(a_is_before, b_is_before),
            f"the tensors for the arguments '{a.name}' and '{b.name}' overlap in memory, and the "
            "kernel writes one of them",
        )


def _bytes(code: HostCode, argument: Argument, passed: Passed) -> Any:
    """Return the bytes from the first element of a buffer to its last."""
    builder = code.builder
    reach, is_empty = i64(1), ir.Constant(I1, 0)
    for n, stride in zip(passed.shape, passed.strides, strict=True):
        reach = builder.add(reach, builder.mul(builder.sub(n, i64(1)), stride))
        is_empty = builder.or_(is_empty, code.equal(n, i64(0)))
    size = builder.mul(reach, i64(ELEMENT_BYTES[argument.dtype]))
    return builder.select(is_empty, i64(0), size)
