"""lego-mlir, a layout compiler: kernels without indices, data and work placed by LEGO layouts.

The public names are here; `import lego_mlir as lg` is how the examples begin. Nothing is imported
before it is asked for, so that a program pays only for the rooms that it enters.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lego_mlir.algebra import (
        Block,
        Col,
        GenP,
        GroupBy,
        Layout,
        OrderBy,
        Permutation,
        RegP,
        Row,
        TileBy,
        TileOrderBy,
        antidiagonal,
        parse_layout,
        reverse,
        size_symbol,
        swizzle,
    )
    from lego_mlir.artifact import Artifact
    from lego_mlir.diagnostics import LegoError
    from lego_mlir.frontend import (
        Kernel,
        Scalar,
        Tensor,
        barrier,
        block_id,
        kernel,
        shared,
        loop,
        thread_id,
    )
    from lego_mlir.index import isqrt, maximum, minimum, where
    from lego_mlir.runtime import RunResult, launch, run

_ROOMS = {
    "lego_mlir.algebra": (
        "Block",
        "Col",
        "GenP",
        "GroupBy",
        "Layout",
        "OrderBy",
        "Permutation",
        "RegP",
        "Row",
        "TileBy",
        "TileOrderBy",
        "antidiagonal",
        "parse_layout",
        "reverse",
        "size_symbol",
        "swizzle",
    ),
    "lego_mlir.artifact": ("Artifact",),
    "lego_mlir.diagnostics": ("LegoError",),
    "lego_mlir.frontend": (
        "Kernel",
        "Scalar",
        "Tensor",
        "barrier",
        "block_id",
        "kernel",
        "shared",
        "loop",
        "thread_id",
    ),
    "lego_mlir.index": ("isqrt", "maximum", "minimum", "where"),
    "lego_mlir.runtime": ("RunResult", "launch", "run"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [  # noqa: PLE0604
    *_HOME,
    "__version__",
]


def __getattr__(name: str) -> Any:
    """A public name, from its room."""
    if name not in _HOME:
        raise AttributeError(f"module 'lego_mlir' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
