"""Host code that checks shapes and strides of tensors.

A `DLTensor` whose strides are a null pointer is dense and row-major.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from lego_mlir.artifact import Argument, known_numbers
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.launch_sizes.extents import row_major
from lego_mlir.runtime.tensor_strides import TensorStrides, tensor_strides
from lego_mlir.tvm_ffi.code import I1, I8, I32, I64, POINTER, HostCode, i32, i64

_RANK, _SHAPE, _STRIDES = 16, 24, 32
"""Fields of a `DLTensor`."""

_TRUE, _FALSE = ir.Constant(I1, 1), ir.Constant(I1, 0)


def fixed_form(code: HostCode, argument: Argument) -> Any:
    """Return a function that says whether a `DLTensor` has a form that an argument may have.

    Args:
        code: that calls it.
        argument: whose sizes are numbers.
    """
    kind = ir.FunctionType(I1, [POINTER])
    made = ir.Function(code.module, kind, f"fits {argument.name}")
    made.linkage = "internal"
    builder, (tensor,) = ir.IRBuilder(made.append_basic_block()), made.args

    def field(struct: Any, offset: int, kind: Any) -> Any:
        at = builder.gep(struct, [i64(offset)], source_etype=I8)
        return builder.load(at, typ=kind)

    def all_equal(at: Any, numbers: dict[int, int]) -> Any:
        found = _TRUE
        for k, n in numbers.items():
            same = builder.icmp_signed("==", field(at, 8 * k, I64), i64(n))
            found = builder.and_(found, same)
        return found

    rank = field(tensor, _RANK, I32)
    shape, strides = field(tensor, _SHAPE, POINTER), field(tensor, _STRIDES, POINTER)
    for form in _forms(argument):
        is_rank = builder.icmp_signed("==", rank, i32(len(form.shape)))
        with (
            builder.if_then(is_rank),
            builder.if_then(all_equal(shape, dict(enumerate(form.shape)))),
        ):
            is_dense = builder.icmp_unsigned("==", builder.ptrtoint(strides, I64), i64(0))
            with builder.if_then(is_dense):
                builder.ret(_TRUE if form.match(row_major(form.shape)) else _FALSE)
            counts = {
                k: stride
                for k, (n, stride) in enumerate(zip(form.shape, form.strides, strict=True))
                if n != 1 and 0 not in form.shape
            }
            with builder.if_then(all_equal(strides, counts)):
                builder.ret(_TRUE)
    builder.ret(_FALSE)
    return made


def described(argument: Argument) -> str:
    """Return the shapes and strides that an argument may have, for a message."""
    each = (
        f"{'×'.join(map(str, form.shape)) or 'one element'} with strides {list(form.strides)}"
        for form in _forms(argument)
    )
    return " or ".join(each)


def _forms(argument: Argument) -> list[TensorStrides]:
    """Return the shapes and strides that an argument may have: its buffer's, and its tensor's."""
    assert argument.shape is not None
    shape = known_numbers(argument.shape)
    forms = [TensorStrides(shape, row_major(shape))]
    tensor = tensor_strides(argument)
    return forms if tensor is None or tensor in forms else [*forms, tensor]


def free_form(
    code: HostCode, tensor: Any, argument: Argument
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return sizes and strides of a tensor's buffer after checking those that are promised.

    Args:
        code: to build it in.
        tensor: the address of a `DLTensor`.
        argument: some of whose sizes or strides are known at launch.
    """
    assert argument.shape is not None
    builder, name, rank = code.builder, argument.name, len(argument.shape)
    found = code.field(tensor, _RANK, I32)
    code.check(
        code.equal(found, i32(rank)),
        f"argument '{name}' has {rank} dimensions, the tensor {{}}",
        builder.sext(found, I64),
    )
    sizes = code.field(tensor, _SHAPE, POINTER)
    shape = tuple(code.field(sizes, 8 * k, I64) for k in range(rank))
    for k, n in enumerate(argument.shape):
        if n is not None:
            code.check(
                code.equal(shape[k], i64(n)),
                f"argument '{name}': its size along dimension {k} is {{}}, not {n}",
                shape[k],
            )
    dense = _dense_strides(code, shape)
    strides = _strides(code, tensor, dense)
    promised = argument.strides or dense
    some = code.every([code.builder.not_(code.equal(n, i64(0))) for n in shape])
    for k, (stride, wanted) in enumerate(zip(strides, promised, strict=True)):
        if wanted is None:
            code.check(
                builder.icmp_signed(">=", stride, i64(0)),
                f"argument '{name}': its stride along dimension {k} is {{}}, which is negative",
                stride,
            )
            continue
        is_one = builder.icmp_signed("<", shape[k], i64(2))
        wanted = i64(wanted) if isinstance(wanted, int) else wanted
        fits = builder.or_(code.equal(stride, wanted), builder.or_(is_one, builder.not_(some)))
        code.check(
            fits,
            f"argument '{name}': its stride along dimension {k} is {{}}; the kernel takes "
            + ("rows without gaps" if argument.strides is None else str(promised[k])),
            stride,
        )
    if argument.strides is not None and argument.access in WRITES:
        _check_apart(code, argument, shape, strides)
    return shape, strides


def _check_apart(
    code: HostCode, argument: Argument, shape: tuple[Any, ...], strides: tuple[Any, ...]
) -> None:
    """Build the check that no two elements of a tensor that is written share memory.

    Each dimension steps over all that the dimensions behind it reach.
    """
    builder, reach = code.builder, i64(0)
    for k in reversed(range(len(shape))):
        steps_over = builder.icmp_signed(">", strides[k], reach)
        is_one = builder.icmp_signed("<", shape[k], i64(2))
        code.check(
            builder.or_(steps_over, is_one),
            f"argument '{argument.name}' is written: its stride along dimension {k} is {{}}, which "
            "does not step over the dimensions behind it",
            strides[k],
        )
        last = builder.mul(builder.sub(shape[k], i64(1)), strides[k])
        reach = builder.add(reach, builder.select(is_one, i64(0), last))


def _dense_strides(code: HostCode, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the strides of a dense row-major tensor."""
    strides = [i64(1)]
    for n in reversed(shape[1:]):
        strides.append(code.builder.mul(strides[-1], n))
    return tuple(reversed(strides[: len(shape)]))


def _strides(code: HostCode, tensor: Any, dense: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the strides of a `DLTensor`."""
    builder = code.builder
    pointer = code.field(tensor, _STRIDES, POINTER)
    is_dense = builder.icmp_unsigned("==", builder.ptrtoint(pointer, I64), i64(0))
    before = builder.block
    with builder.if_then(builder.not_(is_dense)):
        given = [code.field(pointer, 8 * k, I64) for k in range(len(dense))]
        branch = builder.block
    found = []
    for stride, other in zip(dense, given, strict=True):
        chosen = builder.phi(I64)
        chosen.add_incoming(stride, before)
        chosen.add_incoming(other, branch)
        found.append(chosen)
    return tuple(found)
