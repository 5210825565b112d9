"""What several products of one launch must give: those of a mixture of experts, or of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bench.gemm.product import Product
from bench.movement import Array, Order


@dataclass(frozen=True, slots=True)
class Groups:
    """C = A B for each of several A of one width, one below the other in memory.

    Group g multiplies its rows of A, `rows[g]`×k, and its own B, k×n, into its rows of C.

    Attributes:
        rows: of each A and C.
        n: columns of every B and C.
        k: columns of every A, rows of every B.
        dtype: element type of A and B, MLIR's name.
        out: element type of C.
        b: where the elements of each B lie: `row`, row-major, or `col`. A and C are row-major.
        kind: tells it from other references in a manifest.
    """

    rows: tuple[int, ...]
    n: int
    k: int
    dtype: str
    out: str
    b: Order = "row"
    kind: str = "groups"

    @staticmethod
    def from_json(data: dict[str, Any]) -> Groups:
        """What a manifest says of it, whose tuples are lists."""
        return Groups(**{**data, "rows": tuple(data["rows"])})

    @property
    def members(self) -> tuple[Product, ...]:
        """The product of each group."""
        return tuple(
            Product(m, self.n, self.k, self.dtype, self.out, "row", self.b) for m in self.rows
        )

    @property
    def counts(self) -> tuple[int, int, int]:
        """Elements of all A, of all B and of all C."""
        m, groups = sum(self.rows), len(self.rows)
        return m * self.k, groups * self.k * self.n, m * self.n

    @property
    def ends(self) -> tuple[int, ...]:
        """The row behind the last of each group."""
        return tuple(accumulate(self.rows))

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return sum(member.flops for member in self.members)

    @property
    def tolerance(self) -> tuple[float, float]:
        """What an element may be off: relative to its value, and beside that absolutely."""
        return self.members[0].tolerance

    @property
    def deviation(self) -> float:
        """What the whole output may be off, ‖C - AB‖ / ‖AB‖."""
        return self.members[0].deviation

    def starts(self, arguments: int) -> list[tuple[int, int]]:
        """The matrix, 0 to 2 of A, B and C, and its element at which each argument begins.

        Args:
            arguments: of the kernel: three, the matrices of all groups; a fourth, `ends`, which is
                matrix 3; or three a group.
        """
        if arguments in (3, 4):
            return [(which, 0) for which in range(arguments)]
        found, row = [], 0
        for group, count in enumerate(self.rows):
            found += [(0, row * self.k), (1, group * self.k * self.n), (2, row * self.n)]
            row += count
        return found

    def products(self, a: Array, b: Array, c: Array) -> Iterator[tuple[Array, Array, Array]]:
        """The factors and the output of each group, views of dense memory.

        Any dimensions before the last of the three remain.
        """
        firsts = iter(self.starts(3 * len(self.rows)))
        for member in self.members:
            given = [
                memory[..., first : first + count]
                for memory, count, (_, first) in zip((a, b, c), member.counts, firsts, strict=False)
            ]
            yield from member.products(*given)
