"""Launches of a loaded artifact on PyTorch tensors, with all prepared that no tensor changes.

A `LaunchPlan` makes of addresses, numbers and sizes what `loaded.LoadedArtifact.bind` does, without
its errors: what does not fit is declined, and the general road says why. Launches on new sizes wait
for it, so it is straight-line code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from lego_mlir.artifact import Argument, Artifact
from lego_mlir.artifact.expressions import FUNCTIONS, Leaf, statements
from lego_mlir.artifact.straight_line import function
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.arrays import WRITES
from lego_mlir.runtime.cuda.direct import DirectLaunch
from lego_mlir.runtime.cuda.loaded import LoadedArtifact, handle_of
from lego_mlir.runtime.cuda.planned_launch import planned
from lego_mlir.runtime.launch_sizes.extents import Extents, fixed_extents, row_major
from lego_mlir.runtime.launch_sizes.fitting import fitted_extents
from lego_mlir.runtime.launch_sizes.sized import open_texts
from lego_mlir.runtime.overlap import check_overlap
from lego_mlir.runtime.workspaces import Allocation, Needs

_MOST_PLACES = 16
"""Places of workspaces for which launches on the same tensors are kept."""

Found = tuple[Sequence[Any], Sequence[int]]
"""Addresses of tensors and NumPy scalars by position, and results of the artifact's expressions."""


@dataclass(slots=True)
class Bound:
    """Launches on certain tensors and numbers.

    Attributes:
        values: addresses of tensors, and NumPy scalars, by position.
        numbers: of the artifact's expressions.
        needs: of the workspaces.
        launches: by the key of the memory of the workspaces, None if there are no workspaces.
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
        self._find = _finder(artifact)
        slots = {text: slot for slot, text in enumerate(open_texts(artifact))}
        self._launches = [
            planned(artifact, launch, handle_of(kernel), sizes, slots)
            for launch, (kernel, _, sizes) in zip(artifact.launches, loaded.kernels, strict=True)
        ]
        self._slots = slots
        is_open = any(isinstance(n, str) for w in artifact.workspaces for n in w.shape)
        self._needs = None if is_open else Needs.of(artifact.workspaces)

    def bind(self, key: Sequence[Any], arrays: Sequence[Any]) -> Bound | None:
        """Check tensors and numbers and evaluate what depends on them; None if they do not fit.

        Args:
            key: shape, strides and address of each tensor whose sizes the launch decides, the
                address of each other one, and something for each number; one behind the other.
            arrays: the tensors and numbers.
        """
        try:
            found: Found | None = self._find(key, arrays)
            if found is None:
                return None
            return Bound(*found, self._needs or self._needs_of(found[1]))
        except (LegoError, ZeroDivisionError, ValueError):  # of a shape of another rank
            return None

    def _needs_of(self, numbers: Sequence[int]) -> Needs:
        """Return what workspaces need whose sizes the launch computes.

        Raises:
            LegoError: a size is negative.
        """
        sized = []
        for workspace in self._artifact.workspaces:
            shape = [n if isinstance(n, int) else numbers[self._slots[n]] for n in workspace.shape]
            if min(shape) < 0:
                raise LegoError(f"the workspace '{workspace.name}' has the shape {shape}")
            sized.append(replace(workspace, shape=tuple(shape)))
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
        made = [launch(bound.values, bound.numbers, addresses) for launch in self._launches]
        found = tuple(launch for launch in made if launch is not None)
        if len(bound.launches) >= _MOST_PLACES:
            bound.launches.clear()
        bound.launches[None if memory is None else memory.key] = found
        return found


def _finder(artifact: Artifact) -> Callable[[Sequence[Any], Sequence[Any]], Found | None]:
    """Return what checks tensors and evaluates expressions; arguments are those of `bind`.

    It returns None, or raises LegoError, ZeroDivisionError or ValueError, for what does not fit.
    """
    arguments = [_argument(*each) for each in enumerate(artifact.arguments)]
    tensors = [x for x in arguments if isinstance(x, _Tensor) and x.is_used]
    facts = [fact.condition for fact in artifact.facts]
    lines, results = statements(
        [*facts, *open_texts(artifact)], lambda leaf: arguments[leaf.argument].leaf(leaf)
    )
    pairs = [
        f"{a.address} < {b.end} and {b.address} < {a.end}"
        for a, b in combinations(tensors, 2)
        if not artifact.in_place and (a.is_written or b.is_written)
    ]
    values, shapes, strides = (
        f"({''.join(f'{getattr(x, side)}, ' for x in arguments)})"
        for side in ("value", "shape", "strides")
    )
    each = list(enumerate(artifact.arguments))
    return function(
        ("key", "arrays"),
        [
            f"{''.join(f'{name}, ' for x in arguments for name in x.key)} = key",
            *(line for x in arguments for line in x.lines()),
            f"if {' or '.join(pairs) or 0}: check_overlap({values}, {shapes}, {strides})",
            *lines,
            f"if not ({' and '.join(results[: len(facts)]) or 1}): return None",
            f"return {values}, ({''.join(f'{name}, ' for name in results[len(facts) :])})",
        ],
        {
            "fitted": [partial(fitted_extents, argument=a, position=k) for k, a in each],
            "scalars": [partial(dtypes.scalar, a.dtype) for _, a in each],
            "check_overlap": partial(_check_overlap, artifact),
            "row_major": row_major,
            "Extents": Extents,
            "tuple": tuple,
            "len": len,
            **FUNCTIONS,
        },
    )


def _check_overlap(
    artifact: Artifact,
    values: Sequence[Any],
    shapes: Sequence[Sequence[int]],
    strides: Sequence[Sequence[int]],
) -> None:
    """Check that no tensor overlaps one that is written.

    Raises:
        LegoError: one does.
    """
    addresses = [None if isinstance(v, np.generic) else v for v in values]
    extents = [
        None if address is None else Extents(tuple(shape), tuple(steps))
        for address, shape, steps in zip(addresses, shapes, strides, strict=True)
    ]
    check_overlap(artifact, addresses, extents)


class _Scalar:
    """A scalar argument in straight-line code; attributes are those of `_Tensor`.

    Args:
        position: of the argument.
    """

    shape = strides = "()"

    def __init__(self, position: int) -> None:
        self._position = position
        self.value = f"value{position}"
        self.key = [f"key{position}"]

    def lines(self) -> Iterator[str]:
        yield f"{self.value} = scalars[{self._position}](arrays[{self._position}])"

    def leaf(self, leaf: Leaf) -> str:
        return f"int({self.value})"


class _Tensor:
    """A tensor argument in straight-line code: whether a tensor fits, and where its elements lie.

    Args:
        position: of the argument.
        argument: the argument.

    Attributes:
        key: names for what the key of a launch has of it.
        address: the Python of where it begins.
        end: that of the address behind its last element.
        value: what kernels are passed.
        shape: of its buffer.
        strides: of its buffer.
        is_written: whether a kernel writes it.
        is_used: whether one reads or writes it.
    """

    def __init__(self, position: int, argument: Argument) -> None:
        self._position, self._argument = position, argument
        self._fixed = fixed_extents(argument)
        self.is_written = argument.access in WRITES
        self.is_used = argument.access != "none"
        self.address = self.value = f"address{position}"
        self.end = f"end{position}"
        if self._fixed is not None:
            self.key = [self.address]
            self.shape, self.strides = str(self._fixed.shape), str(self._fixed.strides)
            return
        self.key = [f"shape{position}", f"steps{position}", self.address]
        self.shape, self.strides = f"shape{position}", f"row_major(shape{position})"
        if argument.strides is not None:
            self.shape, self.strides = (f"found{position}.{x}" for x in ("shape", "strides"))

    def lines(self) -> Iterator[str]:
        """Yield the statements that check a tensor."""
        k, argument = self._position, self._argument
        size = ELEMENT_BYTES[argument.dtype]
        yield f"if {self.address} % {argument.alignment}: return None"
        if self._fixed is not None:
            yield f"{self.end} = {self.address} + {self._fixed.elements * size}"
            return
        fitted = f"fitted[{k}](Extents(tuple(shape{k}), tuple(steps{k})))"
        sizes = [f"size{k}_{d}" for d, _ in enumerate(argument.shape or ())]
        if argument.strides is None:  # most tensors are the buffer itself
            others = [f"len(shape{k}) != {len(sizes)}", f"not arrays[{k}].is_contiguous()"]
            others += [
                f"shape{k}[{d}] != {n}" for d, n in enumerate(argument.shape or ()) if n is not None
            ]
            yield f"if {' or '.join(others)}: shape{k} = {fitted}.shape"
            elements = " * ".join(sizes) or "1"
        else:
            yield f"found{k} = {fitted}"
            elements = f"found{k}.elements"
        if sizes:
            yield f"{', '.join(sizes)}, = {self.shape}"
        yield f"{self.end} = {self.address} + {elements} * {size}"

    def leaf(self, leaf: Leaf) -> str:
        """Return the Python of what an expression asks of the tensor."""
        if leaf.asks == "size" and self._fixed is None:
            return f"size{self._position}_{leaf.dimension}"
        return f"{self.shape if leaf.asks == 'size' else self.strides}[{leaf.dimension}]"


def _argument(position: int, argument: Argument) -> _Scalar | _Tensor:
    return _Scalar(position) if argument.shape is None else _Tensor(position, argument)
