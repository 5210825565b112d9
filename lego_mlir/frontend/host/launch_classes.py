"""Classes of launches: what compiled code relies on of sizes that only the launch knows.

A kernel whose tensors have such sizes is compiled once for each class of sizes that it is launched
on. A class says which sizes are multiples of 16, so that rows can be accessed by vectors, which of
the declared bounds a size keeps, and whether 32 bits hold every offset. What the user promises,
`N{16}`, makes no classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from lego_mlir.algebra.sizes import size_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.host.argument_types import Parameter, TensorType
from lego_mlir.frontend.host.host_arithmetic import size_sources
from lego_mlir.index import Int, Sym, evaluate
from lego_mlir.index.integers import python_integers
from lego_mlir.runtime import torch_tensors, views
from lego_mlir.runtime.launch_sizes.extents import row_major

MULTIPLE = 16
"""Elements: 16 bytes of any element type, and the rows of TMA's boxes."""

NARROW_ELEMENTS = 2**31 - 2**16
"""Fewer elements have offsets of 32 bits, also those of tiles that extend past the end."""

Key = tuple[int, ...]
"""For each name that matters whether it is a multiple, for each bounded one which bound it keeps,
and a further entry where offsets are wide."""

Source = tuple[int, int, bool]
"""Where a name's value is found: the argument, the dimension, and whether it is the stride."""


@dataclass(frozen=True, slots=True)
class LaunchClass:
    """What code relies on of the sizes of a launch.

    Attributes:
        multiples: names of sizes and strides that are multiples of `MULTIPLE`.
        bounds: by name what a size is at most.
        least: by name what it is at least: more than the bound before, if there is one.
        is_wide: a tensor may have so many elements that offsets need 64 bits.
    """

    multiples: tuple[str, ...] = ()
    bounds: tuple[tuple[str, int], ...] = ()
    is_wide: bool = False
    least: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        parts = [f"{MULTIPLE} divides {name}" for name in self.multiples]
        least = dict(self.least)
        for name, most in self.bounds:
            low = f"{least[name]} <= " if name in least else ""
            parts.append(f"{low}{name} <= {most}")
        parts += ["offsets of 64 bits"] if self.is_wide else []
        return ", ".join(parts) or "any sizes"


ANY_SIZES = LaunchClass()
"""The class of a kernel all of whose sizes are numbers."""


class RunTimeSizes:
    """The sizes of a host function's tensors that only the launch knows.

    Attributes:
        names: of sizes and strides, in order.
        bounds: by name the declared bounds, ascending.
        divisors: by name what is promised to divide it.

    Raises:
        LegoError: two parameters declare a name differently, or no dimension is a name's size.
    """

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = parameters
        self._tensors = {
            name: kind for name, kind in parameters.items() if isinstance(kind, TensorType)
        }
        self._numbers = {name: number for number, name in enumerate(parameters)}
        found = [s for kind in self._tensors.values() for s in kind.symbols]
        self.names = tuple(dict.fromkeys(s.name for s in found))
        self.divisors: dict[str, frozenset[Int]] = dict.fromkeys(self.names, frozenset())
        for s in found:
            self.divisors[s.name] |= s.divisors
        self.bounds: dict[str, tuple[int, ...]] = {}
        for name, kind in self._tensors.items():
            for symbol, bounds in kind.bounds:
                if self.bounds.setdefault(symbol, bounds) != bounds:
                    raise LegoError(
                        f"parameter '{name}': the size {symbol} has other bounds than in another "
                        "parameter",
                        hint="declare them once, or alike",
                    )
        self._sources = self._found_sources()

    def __bool__(self) -> bool:
        return bool(self.names)

    def __str__(self) -> str:
        return ", ".join(map(self._declared, self.names))

    def _declared(self, name: str) -> str:
        """Return how a size is declared, and where its multiples make a class of their own."""
        promised = ", ".join(sorted(map(size_text, self.divisors[name])))
        bounds = "|".join(map(str, self.bounds.get(name, ())))
        classes = f" (classes: {MULTIPLE} divides it, or not)" if name in self.dividing else ""
        return name + f"{{{promised}}}" * bool(promised) + f"<={bounds}" * bool(bounds) + classes

    def _found_sources(self) -> dict[str, list[Source]]:
        found: dict[str, list[Source]] = {name: [] for name in self.names}
        for name, kind in self._tensors.items():
            for is_stride, entries in ((False, kind.array_shape), (True, kind.strides or ())):
                for dim, n in enumerate(entries):
                    if isinstance(n, Sym):
                        found[n.name].append((self._numbers[name], dim, is_stride))
        told = {source.symbol.name for source in size_sources(self._parameters)}
        for symbol, sources in found.items():
            is_stride = any(is_stride for _, _, is_stride in sources)
            if not sources or not (is_stride or symbol in told):
                name = next(
                    n for n, t in self._tensors.items() if symbol in {s.name for s in t.symbols}
                )
                raise LegoError(
                    f"parameter '{name}': no tensor has a dimension of the size {symbol}, so that "
                    "nothing says what it is",
                    hint=f'one tensor is declared as lg.Tensor["f32", "{symbol}, ..."], row-major '
                    "or with strides: M, N : 1, S",
                )
        return found

    # Classes.
    @cached_property
    def dividing(self) -> tuple[str, ...]:
        """The names whose multiples make classes, because vectors may begin or end at them.

        They are the sizes that rows have, and strides. Those of which something is promised to be a
        divisor make none.
        """
        used: list[Int] = []
        for kind in self._tensors.values():
            if kind.strides is not None:
                used += [*kind.shape[-1:], *kind.strides]
            elif len(kind.shape) == len(kind.layout.tensor_shape):
                used += [*kind.shape[1:], *kind.shape[-1:]]
            else:
                used += kind.layout.symbols
        names = dict.fromkeys(n.name for n in used if isinstance(n, Sym))
        return tuple(name for name in names if not self.divisors[name])

    @property
    def general(self) -> LaunchClass:
        """The class of any sizes within their bounds whose offsets take 32 bits."""
        return LaunchClass(bounds=tuple((name, b[-1]) for name, b in self.bounds.items()))

    def promised_types(
        self, promised: LaunchClass, parameters: Mapping[str, Parameter] | None = None
    ) -> dict[str, Parameter]:
        """Return the types of the parameters, whose sizes say what a class promises of them.

        Args:
            promised: the class.
            parameters: of one of several kernels, where these are the sizes of all.
        """
        parameters = self._parameters if parameters is None else parameters
        divisors = {
            name: known | ({MULTIPLE} if name in promised.multiples else frozenset())
            for name, known in self.divisors.items()
        }
        return {
            name: kind.with_divisors(divisors) if isinstance(kind, TensorType) else kind
            for name, kind in parameters.items()
        }

    def of_sizes(self, sizes: Mapping[str, int]) -> LaunchClass:
        """Return the class of sizes by name, where names that are not given may be anything.

        Raises:
            LegoError: there is no such name, or a size is no positive integer or above its largest
                bound.
        """
        sizes = self.checked(sizes)
        kept = tuple(
            (name, self._bound(name, sizes.get(name, b[-1]))) for name, b in self.bounds.items()
        )
        multiples = tuple(n for n in self.dividing if n in sizes and sizes[n] % MULTIPLE == 0)
        least = tuple(
            (name, self.bounds[name][place - 1] + 1)
            for name, bound in kept
            if name in sizes and (place := self.bounds[name].index(bound))
        )
        return LaunchClass(multiples, kept, self._is_wide(sizes), least)

    def checked(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes by name, as Python's integers.

        Raises:
            LegoError: there is no such name, or a size is no positive integer.
        """
        found: dict[str, int] = python_integers(dict(sizes))
        for name, n in found.items():
            if name not in self.names:
                raise LegoError(
                    f"there is no size '{name}'",
                    hint=f"the sizes that the launch knows are {', '.join(self.names) or 'none'}",
                )
            is_stride = self._sources[name][0][2]
            if type(n) is not int or n < 1 - is_stride:  # a stride of 0 repeats elements
                raise LegoError(f"the size {name} is a positive integer, not {n!r}")
        return found

    def _bound(self, name: str, size: int) -> int:
        """Return the least declared bound of a size; raise LegoError if there is none."""
        bounds = self.bounds[name]
        found = next((bound for bound in bounds if size <= bound), None)
        if found is not None:
            return found
        number, dim, _ = self._sources[name][0]
        argument = self._argument(number)
        raise LegoError(
            f"argument '{argument}': its size along dimension {dim} is {size}, which is above "
            f"{bounds[-1]}, the largest bound that the kernel declares for {name}",
            hint=f"declare a larger one, such as {name}<={1 << (size - 1).bit_length()}, or "
            f"leave the bound out and loop over tiles, {argument}.tile({bounds[-1]})",
        )

    def _is_wide(self, sizes: Mapping[str, int]) -> bool:
        """Return whether a tensor needs wide offsets; names that are not given are taken for 1."""
        values = {name: sizes.get(name, 1) for name in self.names}
        for kind in self._tensors.values():
            shape = [evaluate(n, values) for n in kind.shape]
            steps = None if kind.strides is None else [evaluate(n, values) for n in kind.strides]
            if _extent(shape, steps) >= NARROW_ELEMENTS:
                return True
        return False

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of those tensors that have them by sizes of these names."""
        return {
            name: tuple(evaluate(n, sizes) for n in kind.layout.tensor_shape)
            for name, kind in self._tensors.items()
            if kind.symbols and all(s.name in sizes for s in kind.layout.symbols)
        }

    def of_launch(
        self, arrays: Sequence[Any], given: Mapping[str, int] | None = None
    ) -> dict[str, int]:
        """Return the sizes by name of a launch on arrays, of which some may be `None` or missing.

        Args:
            arrays: one a parameter, in order.
            given: sizes by name.

        Raises:
            LegoError: an array does not have the dimensions of its parameter, or no array says what
                a size is.
        """
        sizes = self.checked(given or {})
        for name, kind in self._tensors.items():
            number = self._numbers[name]
            array = arrays[number] if number < len(arrays) else None
            if array is None or not kind.symbols:
                continue
            shape, steps = _shape_and_strides(array, name)
            declared = kind.array_shape
            if len(shape) != len(declared):
                raise LegoError(
                    f"argument '{name}' has {len(declared)} dimensions, "
                    f"{', '.join(map(str, declared))}, the array has the shape {list(shape)}"
                )
            if 0 in shape:
                raise LegoError(
                    f"argument '{name}': its size along dimension {list(shape).index(0)} is 0, and "
                    "a kernel takes arrays with elements"
                )
            for dim, step in enumerate(steps if kind.strides else ()):
                if step < 0:
                    raise LegoError(
                        f"argument '{name}': its stride along dimension {dim} is {step}; strides "
                        "are not negative",
                        hint="x.copy() is an array whose elements lie in their order",
                    )
            found = [*zip(declared, shape, strict=True)]
            found += zip(kind.strides or (), steps, strict=False)
            for n, value in found:
                if isinstance(n, Sym):
                    sizes.setdefault(n.name, value)
        missing = [name for name in self.names if name not in sizes]
        if missing:
            argument = self._argument(self._sources[missing[0]][0][0])
            raise LegoError(
                f"no array says what the size {missing[0]} is",
                hint=f"pass one for argument '{argument}', or by run(..., sizes=...) the size",
            )
        return sizes

    def reader(self, name: str) -> Callable[[Sequence[Any]], int]:
        """Return the function that reads a size from tensors that have `shape`."""
        number, dim, _ = self._sources[name][0]
        return lambda arrays: int(arrays[number].shape[dim])

    def _argument(self, number: int) -> str:
        return next(name for name, n in self._numbers.items() if n == number)

    @cached_property
    def key(self) -> Callable[[Sequence[Any]], Key | None]:
        """The function that returns a key of the class of tensors that have `shape` and `stride()`.

        Tensors of one key have one class. Arrays of other kinds have the key `None`.
        """
        dividing = [self._sources[name][0] for name in self.dividing]
        bounded = [(*self._sources[name][0][:2], b) for name, b in self.bounds.items()]
        # Of tensors of the same sizes the first is looked at: that they are the same is a fact.
        of_sizes: dict[object, tuple[int, bool]] = {}
        for name, kind in self._tensors.items():
            if kind.symbols:
                sizes = (*map(repr, kind.shape), "" if kind.strides is None else name)
                of_sizes.setdefault(sizes, (self._numbers[name], kind.strides is not None))
        tensors = list(of_sizes.values())

        def key(arrays: Sequence[Any]) -> Key | None:
            # Every launch on PyTorch tensors comes here: no more than it takes.
            try:
                shapes = {number: arrays[number].shape for number, _ in tensors}
                found = [
                    (arrays[number].stride()[dim] if is_stride else shapes[number][dim]) % MULTIPLE
                    == 0
                    for number, dim, is_stride in dividing
                ]
                for number, dim, bounds in bounded:
                    size = shapes[number][dim]
                    place = 0
                    while place < len(bounds) and size > bounds[place]:
                        place += 1
                    found.append(place)
                for number, is_strided in tensors:
                    shape = shapes[number]
                    extent = _extent(shape, arrays[number].stride()) if is_strided else prod(shape)
                    if extent >= NARROW_ELEMENTS:
                        found.append(True)
                        break
            except (AttributeError, IndexError, TypeError):
                return None
            return tuple(found)

        return key


def _extent(shape: Sequence[int], strides: Sequence[int] | None) -> int:
    """Return the elements from a tensor's first to its last one."""
    if strides is None:
        return prod(shape)
    return sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + 1


def _shape_and_strides(array: Any, name: str) -> tuple[Sequence[int], Sequence[int]]:
    """Return shape and strides of an array, in elements.

    Raises:
        LegoError: it is no array; names the argument.
    """
    if isinstance(array, np.ndarray):
        return array.shape, [step // array.itemsize for step in array.strides]
    if torch_tensors.is_tensor(array):
        return tuple(array.shape), array.stride()
    on_gpu = views.gpu_of(array) is not None
    seen = views.view(array, name, stream=torch_tensors.NOTHING_WAITS if on_gpu else None)
    return seen.shape, seen.strides or row_major(seen.shape)
