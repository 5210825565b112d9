"""The kernels on rows that are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.rows.fusions import FUSIONS, GROUP, HEAD, KEYS

if TYPE_CHECKING:
    from lego_mlir.kernels import RowsConfig
    from lego_mlir.kernels.rows.builder import RowsKernel

_BYTES = {"f32": 4, "f16": 2, "bf16": 2}

ARGUMENTS: dict[str, dict[str, str]] = {
    "softmax": {"x": "element", "y": "element"},
    "rmsnorm": {"x": "element", "w": "column", "y": "element"},
    "layernorm": {"x": "element", "w": "column", "b": "column", "y": "element"},
    "cross_entropy": {"logits": "element", "labels": "label", "loss": "row"},
    "softmax_backward": {"y": "element", "dy": "element", "dx": "element"},
    "rmsnorm_backward": {
        "x": "element", "w": "column", "dy": "element", "rstd": "row", "dx": "element",
        "dw": "column",
    },
    "layernorm_backward": {
        "x": "element", "w": "column", "dy": "element", "mean": "row", "rstd": "row",
        "dx": "element", "dw": "column", "db": "column",
    },
    "cross_entropy_backward": {
        "logits": "element", "labels": "label", "lse": "row", "dloss": "row", "dlogits": "element",
    },
    **{name: fusion.arguments for name, fusion in FUSIONS.items()},
}  # fmt: skip
"""What the arguments of each kernel have a number for, in order: each element, or a byte for each;
each column; each row; each group of a row's columns; the launch. Labels are numbers of columns.
Keys have fewer heads than the matrix; each head has columns of its own, and angles at positions."""

OUTPUTS = (
    "y", "loss", "dx", "dw", "db", "dlogits", "prenorm", "scale", "q_out", "k_out",
)  # fmt: skip
"""The names of outputs. The gradient of softmax takes y, which is then an input."""


OPEN_SIZES = ("any rows", "any columns", "any rows and columns")
"""Names of kernels that take the sizes of a case at the launch."""


@dataclass(frozen=True, slots=True)
class RowsCase:
    """One kernel.

    Attributes:
        kernel: its name.
        dtype: element type of the matrices and of what has a number for each column.
        rows: of the matrices.
        columns: of the matrices.
    """

    kernel: str
    dtype: str
    rows: int
    columns: int

    @property
    def name(self) -> str:
        """A unique name."""
        return f"{self.kernel}_{self.dtype}_{self.rows}x{self.columns}"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the arguments that are written."""
        is_backward = self.kernel.endswith("backward")
        return tuple(
            name
            for name in ARGUMENTS[self.kernel]
            if name in OUTPUTS and not (name == "y" and is_backward)
        )

    @property
    def bytes(self) -> int:
        """The bytes that it must move: of its matrices, and of angles."""
        element = _BYTES[self.dtype]
        each = {
            "element": self.columns * element,
            "byte": self.columns,
            "key": self.columns // KEYS * element,
            "angle": HEAD // 2 * _BYTES["f32"],
            "group": self.columns // GROUP * _BYTES["f32"],
        }
        return self.rows * sum(each.get(role, 0) for role in ARGUMENTS[self.kernel].values())

    def make(self, config: RowsConfig | None = None, *, open_sizes: str = "") -> RowsKernel:
        """Return the kernel.

        Args:
            config: its tiles; by default the heuristic chooses.
            open_sizes: those that only the launch knows, one of `OPEN_SIZES`.
        """
        from lego_mlir import kernels

        rows = None if "rows" in open_sizes else self.rows
        columns = None if "columns" in open_sizes else self.columns
        if self.kernel in FUSIONS:
            fused: RowsKernel = FUSIONS[self.kernel].make(kernels, rows, columns, self.dtype)
            return fused
        options: dict[str, Any] = {"labels": "i64"} if "entropy" in self.kernel else {}
        made: RowsKernel = getattr(kernels, self.kernel)(
            rows, columns, self.dtype, config=config, **options
        )
        return made


_MATRIX_BYTES = 1 << 29
"""The bytes of a matrix, beyond every cache."""

_FORWARD = ("softmax", "rmsnorm", "layernorm", "cross_entropy")


def case(kernel: str, dtype: str, columns: int, rows: int | None = None) -> RowsCase:
    """Return a case; by default with as many rows as matrices of 512 MiB have."""
    count = _MATRIX_BYTES // (columns * _BYTES[dtype]) if rows is None else rows
    return RowsCase(kernel, dtype, count, columns)


_ODD = (3000, 5120, 7168, 11008, 50257, 128256, 151936)
"""Row lengths of models that are no power of two."""

CASES = (
    *(
        case(kernel, dtype, columns)
        for columns in (256, 512, *(1 << n for n in range(10, 19)), *_ODD)
        for kernel in (*_FORWARD, *(f"{name}_backward" for name in _FORWARD))
        for dtype in ("bf16", "f32")
    ),
    *(
        case(kernel, "bf16", columns, rows)
        for columns, rows in ((4096, 1), (4096, 128), (8192, 32))
        for kernel in _FORWARD
    ),
    *(
        case(kernel, "bf16", columns)
        for kernel in FUSIONS
        for columns in ((4096, 8192, 32768) if "rope" not in kernel else (4096,))
        if columns < 32768 or "groups" not in kernel
    ),
)
