"""lego-mlir, a layout compiler: kernels without indices, data and work placed by LEGO layouts.

The public names are here; `import lego_mlir as lg` is how the examples begin. Nothing is imported
before it is used, so that a program pays only for the rooms that it enters. Type checkers
read the names from `__init__.pyi`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "algebra": "Block Col GenP GroupBy Layout OrderBy Permutation RegP Row Strides TileBy "
    "TileOrderBy antidiagonal block_cyclic bricks ceildiv from_strides hilbert "
    "inverse morton parse_layout reverse row_groups size_symbol swizzle tma_swizzle",
    "artifact": "Artifact",
    "diagnostics": "LegoError LegoWarning",
    "frontend": "Kernel KernelSequence Scalar ScalarType Tensor TensorType Tile Workspace abs all "
    "any arange argmax argmin argsort atomic_add atomic_and atomic_exchange atomic_max "
    "atomic_min atomic_or atomic_xor barrier block_id broadcast_to ceil check choose "
    "clamp commit_group concatenate cond convert copy_async cos cta_rank cummax cummin "
    "cumprod cumsum dot erf exp exp2 "
    "fence fill floor fma fold full gelu if_ inline_ptx iota item join kernel "
    "launch_dependents log log2 loop "
    "max min mma op pick pow printf prod reduce reduce_scatter relu restrict ring round "
    "rsqrt scan search segment select "
    "sequence shared sigmoid silu sin sized softplus sort split sqrt sum "
    "table take tanh thread_id topk wait_group while_ zeros zeros_like",
    "limits": "Limits",
    "pictures": "Picture draw",
    "index": "isqrt maximum minimum where",
    "runtime": "RunResult launch run",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Return a public name, from its room."""
    if name not in _HOME:
        message = f"module 'lego_mlir' has no attribute '{name}'"
        error = AttributeError(message, name=name, obj=sys.modules[__name__])
        if note := _elsewhere(name):
            error.add_note(note)
        raise error
    return getattr(import_module(f"lego_mlir.{_HOME[name]}"), name)


def _elsewhere(name: str) -> str | None:
    """Return where a name is that is not here, if it is a module or a ready-made kernel."""
    if name.startswith("_"):
        return None
    if find_spec(f"lego_mlir.{name}"):
        return f"import lego_mlir.{name} makes it one"
    if name in import_module("lego_mlir.kernels").__all__:
        return f"lego_mlir.kernels.{name} makes such a kernel, which is called with arrays"
    return None


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
