"""Host code that reads the arguments of a call, and checks them.

A call has `TVMFFIAny` values (tvm/ffi/c_api.h): 16 bytes each, the type in the first 4, the value in
the last 8. A tensor is a pointer to DLPack's `DLTensor` (dlpack.h), or to an object that holds one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

from llvmlite import ir

from lego_mlir.artifact import Argument, Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES, integer_range
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.tensor_strides import TensorStrides, row_major, tensor_strides
from lego_mlir.runtime.views import DLPACK_TYPES
from lego_mlir.tvm_ffi.code import F32, F64, I1, I32, I64, POINTER, HostCode, i32, i64

_ANY_BYTES, _VALUE = 16, 8
_INT, _BOOL, _FLOAT, _TENSOR_POINTER, _TENSOR_OBJECT = 1, 2, 3, 7, 70
_OBJECT_BYTES = 24
"""Of the header of an object, behind which a tensor object has its `DLTensor`."""

_DEVICE, _RANK, _DTYPE, _SHAPE, _STRIDES, _OFFSET = 8, 16, 20, 24, 32, 40
"""The fields of a `DLTensor` behind the first, the address of the data."""


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


def read_arguments(code: HostCode, artifact: Artifact, device: Device) -> list[Any]:
    """Build what reads and checks the arguments; return their values, addresses as integers.

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
    values = []
    for position, argument in enumerate(artifact.arguments):
        given = code.at(arguments, _ANY_BYTES * position)
        if argument.shape is None:
            values.append(_number(code, given, argument))
        else:
            values.append(_address(code, given, argument, device))
    if not artifact.in_place:
        _check_overlap(code, artifact.arguments, values)
    return values


def _number(code: HostCode, given: Any, argument: Argument) -> Any:
    """Return a scalar argument, as wide as its type; an index has 64 bits."""
    kind = code.field(given, 0, I32)
    if argument.dtype in ("f32", "f64"):
        return _float(code, given, kind, argument)
    if argument.dtype[0] not in "isu":
        raise LegoError(
            f"argument '{argument.name}' is a number of {argument.dtype}, which TVM FFI cannot pass",
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


def _address(code: HostCode, given: Any, argument: Argument, device: Device) -> Any:
    """Return the address of the first element of a tensor argument."""
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
    code.check(is_right, f"argument '{name}' has elements of {argument.dtype}, the tensor other ones")
    fits = builder.call(_form_check(code, argument), [tensor])
    code.check(fits, f"argument '{name}' is {_description(argument)}; the tensor is not")
    offset = code.field(tensor, _OFFSET, I64)
    address = builder.add(code.field(tensor, 0, I64), offset)
    if argument.alignment > 1:
        low = builder.and_(address, i64(argument.alignment - 1))
        code.check(
            code.equal(low, i64(0)),
            f"argument '{name}' begins at a multiple of {argument.alignment} bytes; the tensor "
            "does not",
        )
    return address


def _forms(argument: Argument) -> list[TensorStrides]:
    """Return the shapes and strides that an argument may have: its buffer's, and its tensor's."""
    assert argument.shape is not None
    forms = [TensorStrides(argument.shape, row_major(argument.shape))]
    tensor = tensor_strides(argument)
    return forms if tensor is None or tensor in forms else [*forms, tensor]


def _description(argument: Argument) -> str:
    each = (
        f"{'×'.join(map(str, form.shape)) or 'one element'} with strides {list(form.strides)}"
        for form in _forms(argument)
    )
    return " or ".join(each)


def _form_check(code: HostCode, argument: Argument) -> Any:
    """Return a function that says whether a `DLTensor` has a form of an argument."""
    name = f"fits {argument.name}"
    made = ir.Function(code.module, ir.FunctionType(I1, [POINTER]), name)
    made.linkage = "internal"
    builder, (tensor,) = ir.IRBuilder(made.append_basic_block()), made.args

    def field(struct: Any, offset: int, kind: Any) -> Any:
        at = builder.gep(struct, [i64(offset)], source_etype=ir.IntType(8))
        return builder.load(at, typ=kind)

    rank = field(tensor, _RANK, I32)
    shape, strides = field(tensor, _SHAPE, POINTER), field(tensor, _STRIDES, POINTER)
    for form in _forms(argument):
        is_rank = builder.icmp_signed("==", rank, i32(len(form.shape)))
        with builder.if_then(is_rank):
            fits = ir.Constant(I1, 1)
            for k, n in enumerate(form.shape):
                same = builder.icmp_signed("==", field(shape, 8 * k, I64), i64(n))
                fits = builder.and_(fits, same)
            with builder.if_then(fits):
                is_dense = builder.icmp_unsigned("==", builder.ptrtoint(strides, I64), i64(0))
                with builder.if_then(is_dense):  # DLPack's word for row-major
                    builder.ret(ir.Constant(I1, int(form.match(row_major(form.shape)))))
                lie = ir.Constant(I1, 1)
                if 0 not in form.shape:
                    for k, (n, stride) in enumerate(zip(form.shape, form.strides, strict=True)):
                        if n != 1:
                            found = field(strides, 8 * k, I64)
                            same = builder.icmp_signed("==", found, i64(stride))
                            lie = builder.and_(lie, same)
                with builder.if_then(lie):
                    builder.ret(ir.Constant(I1, 1))
    builder.ret(ir.Constant(I1, 0))
    return made


def _check_overlap(code: HostCode, arguments: Sequence[Argument], addresses: Sequence[Any]) -> None:
    """Build checks that no buffer that is written shares bytes with another one."""
    buffers = [
        (argument, address, prod(argument.shape) * ELEMENT_BYTES[argument.dtype])
        for argument, address in zip(arguments, addresses, strict=True)
        if argument.shape is not None and prod(argument.shape) and argument.access != "none"
    ]
    builder = code.builder
    for (a, a_begin, a_bytes), (b, b_begin, b_bytes) in combinations(buffers, 2):
        if a.access not in WRITES and b.access not in WRITES:
            continue
        a_is_before = builder.icmp_unsigned("<=", builder.add(a_begin, i64(a_bytes)), b_begin)
        b_is_before = builder.icmp_unsigned("<=", builder.add(b_begin, i64(b_bytes)), a_begin)
        code.check(
            builder.or_(a_is_before, b_is_before),
            f"the tensors for the arguments '{a.name}' and '{b.name}' overlap in memory, and the "
            "kernel writes one of them",
        )
