"""Sizes of all tensors of a run: those of the arrays that are given, and what follows from them.

The facts of an artifact say which sizes are equal, so an output that nobody passes has the sizes
that an input gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lego_mlir.artifact import Argument, Artifact, Fact
from lego_mlir.artifact.expressions import OPERATORS, Leaf, tokens
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime.dtypes import Array
from lego_mlir.runtime.launch_sizes.extents import Known, extents_of_array, fixed_extents, row_major
from lego_mlir.runtime.launch_sizes.fitting import of_tensor_shape, shape_text

_Sizes = dict[Leaf, int]


def known_of_run(
    artifact: Artifact,
    values: Sequence[Array | np.generic | None],
    shapes: Mapping[str, Sequence[int]],
) -> Known:
    """Return what a run knows of its arguments.

    Args:
        artifact: whose arguments.
        values: of the scalars, and the logical tensors that are given.
        shapes: of logical tensors that are not given, by name.

    Raises:
        LegoError: a tensor cannot have its shape, or a size follows from nothing that is given.
    """
    sizes: _Sizes = {}
    for position, (argument, value) in enumerate(zip(artifact.arguments, values, strict=True)):
        if argument.shape is None:
            if isinstance(value, np.integer | np.bool_):
                sizes[Leaf(position)] = int(value)
            continue
        fixed = argument
        if fixed_extents(argument) is None:
            shape = value.shape if isinstance(value, np.ndarray) else shapes.get(argument.name)
            if shape is not None:
                fixed = _fixed(argument, tuple(shape), position)
        sizes |= {
            Leaf(position, "size", i): n for i, n in enumerate(fixed.shape or ()) if n is not None
        }
    every = following_shapes(artifact, sizes)
    strides = [
        _strides(argument, shape, value)
        for argument, shape, value in zip(artifact.arguments, every, values, strict=True)
    ]
    return Known(values, every, strides)


def following_shapes(artifact: Artifact, sizes: Mapping[Leaf, int]) -> list[tuple[int, ...]]:
    """Return the shapes of all buffers, empty ones for scalars.

    Args:
        artifact: whose arguments.
        sizes: scalars and sizes of buffers that are known; those of fixed shapes need not be there.

    Raises:
        LegoError: a size follows from nothing that is known.
    """
    known = dict(sizes)
    for position, argument in enumerate(artifact.arguments):
        for i, n in enumerate(argument.shape or ()):
            if n is not None:
                known.setdefault(Leaf(position, "size", i), n)
    has_more = True
    while has_more:  # one size may follow from another that did
        has_more = False
        for fact in artifact.facts:
            has_more |= _follows(fact, known)
    return [_shape(artifact, position, known) for position in range(len(artifact.arguments))]


def _fixed(argument: Argument, shape: tuple[int, ...], position: int) -> Argument:
    """Return an argument with the sizes that its tensor's shape gives it."""
    found = of_tensor_shape(argument, shape, position)
    if found is None:
        layout = f" and the layout {argument.layout}" if argument.layout else ""
        raise LegoError(
            f"argument '{argument.name}' has shape {shape_text(argument.shape or ())}{layout}, "
            f"the array has {list(shape)}"
        )
    return found


def _follows(fact: Fact, sizes: _Sizes) -> bool:
    """Add the size that a fact of equality gives; return whether it gives one."""
    *operands, last = tokens(fact.condition)
    if last != "==":
        return False
    for leaf, others in ((operands[-1], operands[:-1]), (operands[0], operands[1:])):
        if isinstance(leaf, Leaf) and leaf.asks == "size" and leaf not in sizes:
            value = _value(others, sizes)
            if value is not None:
                sizes[leaf] = value
                return True
    return False


def _value(postfix: Sequence[Leaf | int | str], sizes: _Sizes) -> int | None:
    """Return the value of an expression; None if not all of it is known, or it is not one."""
    stack: list[int] = []
    for token in postfix:
        if isinstance(token, str):
            if len(stack) < 2 or (token in ("//", "%") and stack[-1] == 0):
                return None
            b, a = stack.pop(), stack.pop()
            stack.append(OPERATORS[token](a, b))
        else:
            number = sizes.get(token) if isinstance(token, Leaf) else token
            if number is None:
                return None
            stack.append(number)
    return stack[0] if len(stack) == 1 and stack[0] >= 0 else None


def _shape(artifact: Artifact, position: int, sizes: _Sizes) -> tuple[int, ...]:
    argument = artifact.arguments[position]
    found = [sizes.get(Leaf(position, "size", i)) for i in range(len(argument.shape or ()))]
    if None in found:
        dimension = found.index(None)
        raise LegoError(
            f"argument '{argument.name}' is not given, and nothing that is given tells its size "
            f"along dimension {dimension}",
            hint=f"pass an array for '{argument.name}', or its shape, which legoc takes as "
            + "x".join("100" if n is None else str(n) for n in argument.shape or ()),
        )
    return tuple(n for n in found if n is not None)  # PyTorch's own integers, too


def _strides(
    argument: Argument, shape: tuple[int, ...], value: Array | np.generic | None
) -> tuple[int, ...]:
    """Return the strides of a buffer: the promised ones, those of the array, or dense ones."""
    if argument.strides is None:
        return row_major(shape)
    own: tuple[int | None, ...] = (None,) * len(shape)
    if isinstance(value, np.ndarray) and all(step >= 0 for step in value.strides):
        own = extents_of_array(value).strides
    found: list[int] = []
    reach = 1
    for n, promised, step in reversed(list(zip(shape, argument.strides, own, strict=True))):
        found.append(next(s for s in (promised, step, reach) if s is not None))
        reach = max(reach, found[-1] * n)
    return tuple(reversed(found))
