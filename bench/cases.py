"""What is measured: kernels by name, with all that is needed to build and to check them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lego_mlir import Kernel


@dataclass(frozen=True, slots=True)
class Case:
    """A transpose of an m×n matrix.

    Attributes:
        output: where the output's elements lie, `row` or `col`.
        tile: side of the tile.
    """

    m: int
    n: int
    dtype: str = "f32"
    output: str = "row"
    tile: int = 32

    @property
    def name(self) -> str:
        """Also the name of its file in a bundle."""
        return f"transpose_{self.dtype}_{self.m}x{self.n}_{self.output}_tile{self.tile}"

    def kernel(self) -> Kernel:
        """The kernel, traced."""
        from lego_mlir import Col, OrderBy
        from lego_mlir.kernels import transpose

        b = OrderBy(Col(self.n, self.m)) if self.output == "col" else None
        return transpose(self.m, self.n, self.dtype, b=b, tile=self.tile)


_SIZES = [(256, 256), (1024, 1024), (8192, 8192), (4096, 2048), (32, 8192), (96, 160)]

CASES = (
    *(Case(m, n, dtype) for m, n in _SIZES for dtype in ("f32", "i8", "f16", "f64")),
    *(Case(m, n, output="col") for m, n in _SIZES),
    *(Case(m, n, tile=16) for m, n in _SIZES),
)
