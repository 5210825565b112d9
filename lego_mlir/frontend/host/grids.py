"""Grids: numbers, sizes that the launch knows, and functions of the arguments' sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.host.argument_types import TensorType
from lego_mlir.frontend.trace import source_text, user_location
from lego_mlir.index import Expr, Int, construct
from lego_mlir.index.integers import python_integers

Size: TypeAlias = "Int | LaunchSize | Sequence[Int | LaunchSize]"
Grid: TypeAlias = tuple[Int, Int, Int]


class LaunchSize:
    """A size that the launch knows, in the function of a grid: `+ - * // %` give further ones.

    `lg.ceildiv`, `lg.minimum` and `lg.maximum` take it, too.
    """

    __slots__ = ("expression",)

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: Expr) -> None:
        self.expression = expression

    def __repr__(self) -> str:
        return repr(self.expression)

    def __add__(self, other: Any) -> Any:
        return _combined(construct.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _combined(construct.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _combined(construct.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combined(construct.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _combined(construct.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _combined(construct.mul, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _combined(construct.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _combined(construct.floordiv, other, self)

    def __mod__(self, other: Any) -> Any:
        return _combined(construct.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _combined(construct.mod, other, self)

    def __neg__(self) -> Any:
        return _combined(construct.mul, -1, self)

    def __lego_minimum__(self, a: Any, b: Any) -> Any:
        return _combined(construct.minimum, a, b)

    def __lego_maximum__(self, a: Any, b: Any) -> Any:
        return _combined(construct.maximum, a, b)

    def _compared(self, other: Any) -> NoReturn:
        raise _error(
            f"the size '{self!r}' is compared in the function of a grid, and only the launch knows "
            "it",
            "lg.minimum(a, b) and lg.maximum(a, b) take one of two sizes",
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared

    def __bool__(self) -> bool:
        self._compared(None)

    def _converted(self, *_: Any) -> NoReturn:
        raise _error(
            f"the size '{self!r}' is no number in the function of a grid: only the launch knows it",
            "sizes have + - * // % and lg.ceildiv(size, 128)",
        )

    __index__ = __int__ = __float__ = __truediv__ = __rtruediv__ = __pow__ = _converted


@dataclass(frozen=True, slots=True)
class ArgumentSizes:
    """An argument, as the function of a grid gets it.

    Attributes:
        dtype: MLIR's name of the element type.
        shape: the shape of the buffer.
        dims: the sizes of the dimensions that an index has.
    """

    dtype: str
    shape: tuple[int | LaunchSize, ...]
    dims: tuple[int | LaunchSize, ...]


def grid_of(
    grid: Grid | Callable[..., Size], parameters: Mapping[str, Any], name: str
) -> tuple[Int, Int, Int]:
    """Return a grid, or what a function of the arguments' sizes computes.

    Args:
        grid: three sizes, or a function that takes parameters of the kernel by name.
        parameters: the types of all parameters by name.
        name: of the kernel.

    Raises:
        LegoError: the kernel has no such parameter, the types do not have what the function reads,
            it needs the value of a size that only the launch knows, or it returns no grid.
    """
    if not callable(grid):
        return grid
    wanted = list(inspect.signature(grid).parameters)
    for parameter in wanted:
        if parameter not in parameters:
            raise LegoError(
                f"kernel '{name}': the function of its grid takes '{parameter}', which is no "
                "parameter of the kernel",
                hint=f"its parameters are: {', '.join(parameters)}",
            )
    try:
        size = grid(**{parameter: _argument(parameters[parameter]) for parameter in wanted})
    except (AttributeError, IndexError, TypeError) as e:
        raise LegoError(
            f"kernel '{name}': the function of its grid fails: {e}",
            hint="it gets the types of the arguments: lambda x: x.shape[0]",
        ) from e
    return dim3(size, "grid", name)


def dim3(size: Any, what: str, name: str) -> tuple[Any, Any, Any]:
    """Return a grid or CTA size as three sizes; those of a CTA are numbers.

    Raises:
        LegoError: it is not one to three positive integers, or, in a grid, sizes of the launch.
    """
    size = python_integers(size)
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    sizes = tuple(n.expression if isinstance(n, LaunchSize) else n for n in sizes)
    good = all(
        (type(n) is int and 0 < n < 2**63) or (isinstance(n, Expr) and what == "grid")
        for n in sizes
    )
    if not 1 <= len(sizes) <= 3 or not good:
        raise LegoError(f"kernel '{name}': {what} is one to three positive integers, not {size!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _argument(kind: Any) -> Any:
    """Return what the function of a grid gets for a parameter."""
    if not isinstance(kind, TensorType):
        return kind
    return ArgumentSizes(kind.dtype, _sizes(kind.shape), _sizes(kind.dims))


def _sizes(sizes: Sequence[Int]) -> tuple[int | LaunchSize, ...]:
    return tuple(LaunchSize(n) if isinstance(n, Expr) else n for n in sizes)


def _combined(make: Callable[[Int, Int], Int], a: Any, b: Any) -> Any:
    operands = [x.expression if isinstance(x, LaunchSize) else python_integers(x) for x in (a, b)]
    if not all(type(x) is int or isinstance(x, Expr) for x in operands):
        raise _error(
            f"{a!r} and {b!r} do not meet in the function of a grid",
            "sizes meet sizes and integers",
        )
    found = make(*operands)
    return LaunchSize(found) if isinstance(found, Expr) else found


def _error(message: str, hint: str) -> LegoError:
    location = user_location()
    text = source_text(location.file) or None
    return LegoError(message, location=location, hint=hint, source=text)
