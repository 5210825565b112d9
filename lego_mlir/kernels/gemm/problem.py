"""The GEMM that is to be computed: sizes, element types, and orders of the matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lego_mlir.hardware.dtypes import ELEMENT_BYTES

_TRANSPOSED = {"row": "col", "col": "row", "a": "b", "b": "a"}
"""Orders and operands of a GEMM by those of the GEMM of the transposes."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A GEMM, as far as its config depends on it.

    Attributes:
        m: rows of A and of C; as those of n, a symbol where only the launch knows their number.
        n: columns of B and of C.
        k: columns of A, rows of B.
        dtype: element type of A and B.
        out: element type of C.
        a: the contiguous dimension of A, `row` or `col`.
        b: the contiguous dimension of B.
        c: the contiguous dimension of C.
        batch: GEMMs of this size in one launch.
        repitched: which of the operands, `a`, `b`, `ab` or none, are copies whose rows begin at
            multiples of 128 bytes, whatever their sizes.
    """

    m: int
    n: int
    k: int
    dtype: str
    out: str
    a: str = "row"
    b: str = "row"
    c: str = "row"
    batch: int = 1
    repitched: str = ""

    @property
    def is_along_k(self) -> bool:
        """Whether 8-bit elements of A and B are contiguous along k; true for wider ones."""
        return ELEMENT_BYTES[self.dtype] > 1 or (self.a, self.b) == ("row", "col")

    @property
    def transpose(self) -> Problem:
        """The GEMM C' = B' A', which computes the transpose of C."""
        other = _TRANSPOSED
        return replace(
            self,
            m=self.n,
            n=self.m,
            a=other[self.b],
            b=other[self.a],
            c=other[self.c],
            repitched="".join(sorted(other[name] for name in self.repitched)),
        )


def operands_of(problem: Problem, names: str) -> str:
    """Return the operands of a GEMM, by name, that some are of the GEMM with a row-major C."""
    return "".join(sorted(_TRANSPOSED[name] for name in names)) if problem.c == "col" else names
