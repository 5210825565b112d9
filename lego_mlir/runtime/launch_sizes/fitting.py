"""Whether an array can stand for an argument, and which sizes and strides its buffer has then.

An array is the argument's buffer itself, or the logical tensor, whose elements lie where the
argument's layout says. What the argument leaves to the launch, the array fixes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from lego_mlir.artifact import Argument, known_numbers
from lego_mlir.artifact.expressions import Leaf, tokens
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.compatibility import check_alignment
from lego_mlir.runtime.launch_sizes.extents import Extents, row_major
from lego_mlir.runtime.tensor_strides import tensor_strides
from lego_mlir.runtime.views import View

_WRITES = ("write", "readwrite")


def fitted(seen: View, argument: Argument, position: int) -> Extents:
    """Return the extents of an argument's buffer, for which an array stands.

    Args:
        seen: the array.
        argument: the argument.
        position: of the argument.

    Raises:
        LegoError: type, shape, strides, alignment or write protection forbid it.
    """
    name = argument.name
    check_type(seen, argument)
    extents = fitted_extents(Extents(seen.shape, seen.strides), argument, position)
    if seen.read_only and argument.access in _WRITES:
        raise LegoError(f"the kernels write argument '{name}', the array is read-only")
    if seen.gpu is not None:  # what lies on the host is copied, and copies are aligned
        check_alignment(argument, seen.pointer)
    return extents


def check_type(seen: View, argument: Argument) -> None:
    """Check that an array's elements can be those of an argument.

    Raises:
        LegoError: they cannot.
    """
    if argument.dtype not in seen.types:
        raise LegoError(
            f"argument '{argument.name}' holds {dtypes.describe(argument.dtype)}, "
            f"the array holds {seen.type_name}"
        )


def fitted_extents(seen: Extents, argument: Argument, position: int) -> Extents:
    """Return the extents of an argument's buffer, for which an array with others may stand.

    Args:
        seen: shape and strides of the array; these may be negative.
        argument: the argument.
        position: of the argument.

    Raises:
        LegoError: shape or strides forbid it.
    """
    if argument.strides is not None:
        return _strided(seen, argument)
    if agrees(seen.shape, argument.shape or ()) and seen.is_dense:
        return Extents(seen.shape, row_major(seen.shape))
    known = argument
    if None in (argument.shape or ()):
        known = of_tensor_shape(argument, seen.shape, position) or argument
        if known is argument:
            raise LegoError(
                f"argument '{argument.name}' has shape {shape_text(argument.shape or ())}, "
                f"the array has {list(seen.shape)}"
            )
    _check_tensor(seen, known)
    shape = known_numbers(known.shape or ())
    return Extents(shape, row_major(shape))


def agrees(found: Sequence[int], wanted: Sequence[int | None]) -> bool:
    """Return whether sizes are those that are wanted; None is any."""
    return len(found) == len(wanted) and all(
        w is None or n == w for n, w in zip(found, wanted, strict=True)
    )


def shape_text(shape: Sequence[int | None]) -> str:
    """Return a shape for a message; a size that the launch decides is `?`."""
    return f"[{', '.join('?' if n is None else str(n) for n in shape)}]"


def of_tensor_shape(argument: Argument, shape: tuple[int, ...], position: int) -> Argument | None:
    """Return an argument with the sizes that it has if its logical tensor has a shape.

    Args:
        argument: leaves sizes to the launch.
        shape: of the logical tensor.
        position: of the argument.

    Returns:
        The argument with numbers for sizes and symbols; None if it cannot have this shape, or if
        the shape does not tell them.

    Raises:
        LegoError: the sizes break what the layout promises of them.
    """
    if argument.layout is None:
        fits = agrees(shape, argument.shape or ())
        return replace(argument, shape=shape) if fits else None
    from lego_mlir.algebra import parse_layout
    from lego_mlir.index import Sym

    sizes = parse_layout(argument.layout).tensor_shape
    if len(sizes) != len(shape):
        return None
    found = {s.name: n for s, n in zip(sizes, shape, strict=True) if isinstance(s, Sym)}
    try:
        bound = parse_layout(argument.layout, found).tensor_shape
    except LegoError as e:
        raise LegoError(
            f"argument '{argument.name}' has the layout {argument.layout}, the array has the shape "
            f"{list(shape)}: {e.message}"
        ) from None
    buffer = list(argument.shape or ())
    if len(buffer) == len(shape):  # a row-major tensor is its buffer
        buffer = [n if own is None else own for own, n in zip(buffer, shape, strict=True)]
    for name, value in argument.symbols:
        (leaf, *more) = tokens(value)
        is_own = isinstance(leaf, Leaf) and not more and leaf.argument == position
        if name in found and is_own and isinstance(leaf, Leaf) and leaf.asks == "size":
            if buffer[leaf.dimension] not in (None, found[name]):
                return None
            buffer[leaf.dimension] = found[name]
    if buffer == [None]:  # of one dimension, it holds all elements
        buffer = [prod(shape)]
    if bound != shape or None in buffer or any(name not in found for name, _ in argument.symbols):
        return None
    symbols = tuple((name, str(found[name])) for name, _ in argument.symbols)
    return replace(argument, shape=tuple(buffer), symbols=symbols)


def _strided(seen: Extents, argument: Argument) -> Extents:
    """Return the extents of an array that has strides of its own."""
    name, shape, promised = argument.name, argument.shape or (), argument.strides or ()
    if not agrees(seen.shape, shape):
        raise LegoError(
            f"argument '{name}' has shape {shape_text(shape)}, the array has {list(seen.shape)}"
        )
    steps = tuple(zip(seen.shape, seen.strides, promised, strict=True))
    for dimension, (n, step, own) in enumerate(steps if 0 not in seen.shape else ()):
        if n > 1 and own is not None and step != own:
            raise LegoError(
                f"argument '{name}' has strides {shape_text(promised)}, in elements, the array "
                f"has {list(seen.strides)}: they differ along dimension {dimension}",
                hint="np.ascontiguousarray(x) is a row-major copy, in PyTorch x.contiguous()",
            )
        if n > 1 and step < 0:
            raise LegoError(
                f"the array for argument '{name}' has the negative stride {step} along dimension "
                f"{dimension}, and kernels take none",
                hint="np.ascontiguousarray(x) is a row-major copy, in PyTorch x.contiguous()",
            )
    # Where there is one element, an array may have any stride, also one that no kernel takes.
    strides = tuple(max(step, 0) if own is None else own for n, step, own in steps)
    extents = Extents(seen.shape, strides)
    if argument.access in _WRITES and 0 not in seen.shape and not _is_injective(extents):
        raise LegoError(
            f"elements of the array for argument '{name}' share memory, and the kernels write it: "
            f"its shape is {list(seen.shape)}, its strides are {list(seen.strides)}",
            hint="np.ascontiguousarray(x) is a row-major copy, in PyTorch x.contiguous()",
        )
    return extents


def _is_injective(extents: Extents) -> bool:
    """Return whether each dimension steps over all that the dimensions inside it reach."""
    reach = 0
    for step, n in sorted(zip(extents.strides, extents.shape, strict=True)):
        if n > 1 and step <= reach:
            return False
        reach += (n - 1) * step
    return True


def _check_tensor(seen: Extents, argument: Argument) -> None:
    """Check an array that is not the buffer itself: the logical tensor, its elements in place.

    Raises:
        LegoError: it has another shape, or its elements lie elsewhere than the layout says.
    """
    name, buffer = argument.name, argument.shape or ()
    tensor = tensor_strides(argument)
    if tensor is None or seen.shape != tensor.shape:
        if seen.shape == buffer:
            raise LegoError(
                f"the array for argument '{name}' is not dense and row-major: its strides are "
                f"{list(seen.strides)}",
                hint="np.ascontiguousarray(x) is a copy that is, in PyTorch x.contiguous()",
            )
        expected = str(list(buffer))
        if tensor is not None and tensor.shape != buffer:
            expected = f"{list(tensor.shape)}, or as a buffer {expected}"
        raise LegoError(
            f"argument '{name}' has shape {expected}, the array has {list(seen.shape)}",
            hint=_of_other_shape(seen, argument),
        )
    if 0 not in seen.shape and not tensor.match(seen.strides):
        if argument.layout is None or seen.shape == buffer:
            what = f"the array for argument '{name}' is not dense and row-major"
        else:
            what = f"the array for argument '{name}' does not lie in memory as {argument.layout}"
        raise LegoError(
            f"{what}: its strides are {list(seen.strides)}, those of the argument "
            f"{list(tensor.strides)}, in elements",
            hint=tensor.remedy,
        )


def _of_other_shape(seen: Extents, argument: Argument) -> str | None:
    """Return the hint for an array with a buffer's size and another shape."""
    is_tensor = argument.layout is not None and argument.shape is not None
    if not is_tensor or prod(seen.shape) != prod(known_numbers(argument.shape or ())):
        return None
    return (
        f"what is passed is the buffer, whose elements lie as {argument.layout} says; "
        "kernel.run(...) takes the logical tensor"
    )
