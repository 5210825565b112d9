"""Launches of a loaded artifact on PyTorch tensors, with all prepared that no tensor changes.

A `LaunchPlan` makes of addresses, numbers and sizes what `loaded.LoadedArtifact.bind` does, without
its errors: what does not fit is declined, and the general road says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lego_mlir.artifact import Argument
from lego_mlir.artifact.expressions import Leaf, Program, tokens
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.cuda.direct import DirectLaunch
from lego_mlir.runtime.cuda.loaded import LoadedArtifact, handle_of
from lego_mlir.runtime.cuda.planned_launch import MOST_KEPT, Number, PlannedLaunch
from lego_mlir.runtime.launch_sizes.extents import Extents, fixed_extents, row_major
from lego_mlir.runtime.launch_sizes.fitting import fitted_extents
from lego_mlir.runtime.launch_sizes.sized import open_texts
from lego_mlir.runtime.overlap import check_overlap
from lego_mlir.runtime.workspaces import Allocation, Needs


class _DoesNotFitError(Exception):
    """Tensors or numbers do not fit; the general road says why."""


@dataclass(slots=True)
class Bound:
    """Launches on certain tensors and numbers.

    Attributes:
        values: addresses of tensors, and NumPy scalars, by position.
        numbers: of the artifact's expressions.
        needs: of the workspaces.
        launches: by the place of the workspaces' memory, None if there are no workspaces.
    """

    values: Sequence[Any]
    numbers: Sequence[int]
    needs: Needs
    launches: dict[tuple[int, int] | None, tuple[DirectLaunch, ...]] = field(default_factory=dict)


class LaunchPlan:
    """What a loaded artifact does with tensors and numbers that fit its arguments.

    Args:
        loaded: the artifact.
    """

    def __init__(self, loaded: LoadedArtifact) -> None:
        artifact = loaded.artifact
        self._artifact = artifact
        texts = open_texts(artifact)
        self._count = len(texts)
        every = [*texts, *(fact.condition for fact in artifact.facts)]
        self._program = Program(every)
        slots = {text: slot for slot, text in enumerate(texts)}
        leaves = [token for text in every for token in tokens(text) if isinstance(token, Leaf)]
        strided = {leaf.argument for leaf in leaves if leaf.asks == "stride"}
        self._arguments = [
            _Scalar(argument.dtype)
            if argument.shape is None
            else _Tensor(position, argument, position in strided)
            for position, argument in enumerate(artifact.arguments)
        ]
        tensors = [x for x in self._arguments if isinstance(x, _Tensor)]
        self._pairs = [
            (a.position, b.position)
            for i, a in enumerate(tensors)
            for b in tensors[i + 1 :]
            if not artifact.in_place and a.is_used and b.is_used and (a.is_written or b.is_written)
        ]
        self._launches = [
            PlannedLaunch(artifact, launch, handle_of(kernel), sizes, slots)
            for launch, (kernel, _, sizes) in zip(artifact.launches, loaded.kernels, strict=True)
        ]
        self._workspaces = [
            (workspace, [Number(n, slots) for n in workspace.shape])
            for workspace in artifact.workspaces
        ]
        is_open = any(isinstance(n, str) for w in artifact.workspaces for n in w.shape)
        self._needs = None if is_open else Needs.of(artifact.workspaces)

    def bind(self, arrays: Sequence[Any]) -> Bound | None:
        """Check tensors and numbers and evaluate what depends on them; None if they do not fit."""
        try:
            return self._bind(arrays)
        except (LegoError, ZeroDivisionError, _DoesNotFitError):
            return None

    def _bind(self, arrays: Sequence[Any]) -> Bound | None:
        values: list[Any] = []
        shapes: list[Sequence[int]] = []
        strides: list[Sequence[int]] = []
        ends: list[int] = []
        for argument, array in zip(self._arguments, arrays, strict=True):
            if isinstance(argument, _Tensor):
                address, shape, steps, elements = argument.placed(array)
                values.append(address)
                shapes.append(shape)
                strides.append(steps)
                ends.append(address + elements * argument.bytes)
            else:
                values.append(dtypes.scalar(argument.dtype, array))
                shapes.append(())
                strides.append(())
                ends.append(0)
        for a, b in self._pairs:
            if values[a] < ends[b] and values[b] < ends[a]:
                self._check_overlap(values, shapes, strides)
                break
        numbers = self._program(values, shapes, strides)
        if not all(numbers[self._count :]):
            return None
        return Bound(values, numbers, self._needs or self._needs_of(numbers))

    def _needs_of(self, numbers: Sequence[int]) -> Needs:
        """Return what workspaces need whose sizes the launch computes."""
        sized = []
        for workspace, shape in self._workspaces:
            found = tuple(n.of(numbers) for n in shape)
            if min(found) < 0:
                raise _DoesNotFitError
            sized.append(replace(workspace, shape=found))
        return Needs.of(sized)

    def launches(self, bound: Bound, memory: Allocation | None) -> tuple[DirectLaunch, ...]:
        """Return launches with their parameters laid out; those without a CTA are left out.

        Args:
            bound: the tensors and numbers.
            memory: of the workspaces; None if there are none.

        Raises:
            LegoError: the driver takes no such tensor map, or no GPU such a grid.
        """
        addresses = () if memory is None else memory.addresses(bound.needs)
        made = [launch.made(bound.values, bound.numbers, addresses) for launch in self._launches]
        found = tuple(launch for launch in made if launch is not None)
        place = None if memory is None else memory.place
        if len(bound.launches) >= MOST_KEPT:
            bound.launches.clear()
        bound.launches[place] = found
        return found

    def _check_overlap(
        self,
        values: Sequence[Any],
        shapes: Sequence[Sequence[int]],
        strides: Sequence[Sequence[int]],
    ) -> None:
        addresses = [None if isinstance(v, np.generic) else v for v in values]
        extents = [
            None if address is None else Extents(tuple(shape), tuple(steps))
            for address, shape, steps in zip(addresses, shapes, strides, strict=True)
        ]
        check_overlap(self._artifact, addresses, extents)


class _Scalar:
    """A scalar argument."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype


class _Tensor:
    """A tensor argument: whether a PyTorch tensor fits it, and where its elements lie.

    Args:
        position: of the argument.
        argument: the argument.
        has_strides: whether an expression asks for its strides.
    """

    def __init__(self, position: int, argument: Argument, has_strides: bool) -> None:
        self.position = position
        self.is_written = argument.access in WRITES
        self.is_used = argument.access != "none"
        self.bytes = ELEMENT_BYTES[argument.dtype]
        self._argument, self._has_strides = argument, has_strides
        self._alignment = argument.alignment
        self._fixed = fixed_extents(argument)
        self._elements = 0 if self._fixed is None else self._fixed.elements
        self._is_dense = argument.layout is None and argument.strides is None
        shape = argument.shape or ()
        self._rank = len(shape)
        self._sizes = [(i, n) for i, n in enumerate(shape) if n is not None]

    def placed(self, tensor: Any) -> tuple[int, Sequence[int], Sequence[int], int]:
        """Return address, shape and strides of the buffer, and its elements from first to last.

        Args:
            tensor: of the argument's type, and of its sizes and strides if these are fixed.

        Raises:
            LegoError: it does not fit.
            _DoesNotFitError: it does not fit.
        """
        address: int = tensor.data_ptr()
        if address % self._alignment:
            raise _DoesNotFitError
        fixed = self._fixed
        if fixed is not None:
            return address, fixed.shape, fixed.strides, self._elements
        shape: tuple[int, ...] = tensor.shape
        if not self._is_dense:
            seen = Extents(tuple(shape), tuple(tensor.stride()))
            found = fitted_extents(seen, self._argument, self.position)
            return address, found.shape, found.strides, found.elements
        if len(shape) != self._rank or not tensor.is_contiguous():
            raise _DoesNotFitError
        for dimension, size in self._sizes:
            if shape[dimension] != size:
                raise _DoesNotFitError
        strides = row_major(shape) if self._has_strides else ()
        return address, shape, strides, tensor.numel()
