"""What a benchmark case is; the cases themselves are in `bench.permute` and `bench.gemm`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from bench.gemm.references import GemmReference, GroupedGemmReference
    from bench.permute.reference import PermuteReference
    from lego_mlir import Kernel

Order = Literal["row", "col"]
"""How a matrix or tensor lies in memory: the last dimension contiguous, or the first."""

Array = Any  # NumPy's or PyTorch's

COPIES = ("memcpy", "copy kernel")
"""The peers that only copy the bytes: the faster of them is the limit of every data movement."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel of ours, its reference, and the peers that it is compared with.

    Attributes:
        name: unique; also the name of the kernel's file in a bundle.
        make: returns the traced kernel for a GPU architecture. Its arguments are the inputs and the
            output.
        dtype: element type of the inputs.
        reference: what the output must be.
        variant: which of several kernels for the same work; empty if the kernel library chooses.
            The figures show only cases in which it chooses.
        peers: names from `bench.peers.PEERS`.
        alternatives: returns, for a GPU architecture, other kernels of ours by name. They do the
            same work and are measured beside the first.
    """

    name: str
    make: Callable[[str], Kernel]
    dtype: str
    reference: PermuteReference | GemmReference | GroupedGemmReference
    variant: str = ""
    peers: tuple[str, ...] = ()
    alternatives: Callable[[str], dict[str, Kernel]] | None = None
