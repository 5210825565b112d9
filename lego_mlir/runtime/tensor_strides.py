"""Where the elements of a tensor lie, as strides: what an array must have to be passed as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lego_mlir.artifact import Argument, known_numbers
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime.launch_sizes.extents import row_major


@dataclass(frozen=True, slots=True)
class TensorStrides:
    """The logical tensor of an argument.

    Attributes:
        shape: in elements.
        strides: in elements, one a dimension.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def match(self, strides: Sequence[int]) -> bool:
        """Return whether an array has these strides; dimensions of size 1 do not count."""
        each = zip(self.shape, self.strides, strides, strict=True)
        return all(size == 1 or own == stride for size, own, stride in each)

    @property
    def remedy(self) -> str:
        """The expression in Python that makes an array with these strides."""
        if self.match(row_major(self.shape)):
            return "np.ascontiguousarray(x) is such a copy, in PyTorch x.contiguous()"
        if self.match(row_major(self.shape[::-1])[::-1]):
            return (
                "np.asfortranarray(x) is such a copy, in PyTorch x.T.contiguous().T; "
                "if x holds the transpose, pass x.T"
            )
        return "kernel.run(...) takes arrays of any strides, and copies them"


@lru_cache(maxsize=1024)
def tensor_strides(argument: Argument) -> TensorStrides | None:
    """Return shape and strides of an argument's logical tensor; `None` where it has no strides.

    The sizes of its buffer, and the symbols of its layout, are numbers.
    """
    if argument.shape is None:
        return None
    if argument.layout is None:
        shape = known_numbers(argument.shape)
        return TensorStrides(shape, row_major(shape))
    from lego_mlir.algebra import Layout, parse_layout

    try:
        layout = parse_layout(argument.layout, {name: int(n) for name, n in argument.symbols})
        if layout.orders and layout.view is not None and layout.view.kind == "TileBy":
            layout = Layout(layout.orders)  # tiles do not move the elements
        found = layout.to_strides()
    except LegoError:  # functions that are not here, or a swizzle
        return None
    sizes, strides = (
        [n for n in side if isinstance(n, int)] for side in (found.shape, found.stride)
    )
    if len(sizes) != layout.rank or len(strides) != layout.rank:
        return None
    return TensorStrides(tuple(sizes), tuple(strides))
