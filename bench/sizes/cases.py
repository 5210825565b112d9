"""Kernels of sizes that only the launch knows.

GEMMs of layers stand beside those that are compiled for their rows; tensors of more than 2³¹
elements beside PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle
from typing import Any

from bench.contenders.case import OURS, Built, Call, ContenderCase, Contenders

LAYERS = ((4096, 4096), (14336, 4096), (4096, 14336))
"""Columns of B and rows of B: projections of attention, and the two sides of an MLP."""

ROWS = (1, 16, 64, 100, 128, 500, 1024, 3000, 4096, 8192)

FEW_ROWS = (1, 4, 8, 16, 32)
"""Rows that kernels for few rows take, of a B whose columns are contiguous."""

STATIC, RUN_TIME = "static", "run time"
_L2_BYTES = 1 << 26
"""Matrices B that are rotated have more bytes together than the L2 cache."""


@dataclass(frozen=True)
class _Sized:
    """A function that is compiled for launches of some rows."""

    function: Any
    rows: int

    def compile(self, target: str) -> Any:
        """Return the artifact."""
        return self.function.compile(target, sizes={"M": self.rows})


LARGE = 65552, 32776
"""Rows and columns of matrices of more than 2³¹ elements."""

_LINE = 4096
"""Elements of a tile of a long vector."""


def cases() -> Iterator[ContenderCase]:
    """Yield the cases."""
    for name in ("elementwise", "softmax", "transpose", "gather"):
        yield ContenderCase(
            name=f"{name} {LARGE[0]}x{LARGE[1]}",
            figure="more than 2^31 elements",
            printed={},
            kernels=partial(_large_kernels, name),
            contenders=partial(_large, name),
            work=8.0 * LARGE[0] * LARGE[1],
            unit="GB/s",
        )
    for n, k in LAYERS:
        for m, order in (*((m, "row") for m in ROWS), *((m, "col") for m in FEW_ROWS)):
            yield ContenderCase(
                name=f"matmul {m}x{n}x{k}" + ", B by col" * (order == "col"),
                figure="rows at run time",
                printed={},
                kernels=partial(_kernels, m, n, k, order),
                contenders=partial(_contenders, m, n, k, order),
                work=2.0 * m * n * k,
                unit="TFLOP/s",
            )


@cache
def _of_any_rows(n: int, k: int, order: str) -> Any:
    from lego_mlir.kernels import matmul

    return matmul(None, n, k, b=_layout(k, n, order), target="sm_90a")


def _layout(k: int, n: int, order: str) -> Any:
    """Return the layout of B."""
    from lego_mlir import Col, OrderBy, Row

    return OrderBy((Row if order == "row" else Col)(k, n))


def _kernels(m: int, n: int, k: int, order: str) -> Mapping[str, Any]:
    from lego_mlir.kernels import matmul

    static = matmul(m, n, k, b=_layout(k, n, order), target="sm_90a")
    return {STATIC: static, RUN_TIME: _Sized(_of_any_rows(n, k, order), m)}


def _contenders(m: int, n: int, k: int, order: str, built: Built) -> Contenders:
    torch = built.torch
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    copies = [b.clone() for _ in range(1 + _L2_BYTES // (2 * n * k))]
    if order == "col":
        copies = [each.T.contiguous().T for each in copies]
    expected = (a.float() @ b.float()).half()
    calls = {
        path.stem: _rotated([built.ours(path.stem, a, each, c) for each in copies])
        for path in sorted(built.folder.glob("*.lego"))
    }
    calls["PyTorch"] = _rotated([partial(torch.mm, a, each, out=c) for each in copies])
    return Contenders(calls, [c], [expected], 2e-3)


def _rotated(calls: list[Callable[[], Any]]) -> Call:
    """Return a call that makes the next one of several each time."""
    following = cycle(calls)

    def call() -> None:
        next(following)()

    return call


# --------------------------------------------------------------- more than 2^31 elements
def _large_kernels(name: str) -> Mapping[str, Any]:
    import lego_mlir as lg
    from lego_mlir.kernels import softmax, transpose

    m, n = LARGE
    match name:
        case "elementwise":
            line = lg.Tensor["f32", "M"]

            def doubled(x: Any, y: Any) -> None:
                k = lg.block_id()
                y.tile(_LINE)[k] = x.tile(_LINE)[k] * 2.0 + 1.0

            types = {"x": line, "y": line}
            made = lg.kernel(grid=_lines, warps=8, parameters=types)(doubled)
            return {OURS: _Sized(made, m * n)}
        case "softmax":
            return {OURS: _Sized(softmax(None, n), m)}
        case "transpose":
            return {OURS: _Sized(transpose(None, n), m)}
    table, index = lg.Tensor["f32", f"M, {n}"], lg.Tensor["i32", "M"]

    def rows(x: Any, at: Any, y: Any) -> None:
        i, j = lg.block_id(), lg.block_id("y")
        column = j * 1024 + lg.arange(1024)
        column = lg.restrict(column, column < n)
        y[lg.arange(1) + i, column] = x[at.tile(1)[i], column]

    types = {"x": table, "at": index, "y": table}
    grid = lambda x: (x.shape[0], -(-n // 1024))  # noqa: E731
    made = lg.kernel(grid=grid, warps=4, parameters=types)(rows)
    return {OURS: _Sized(made, m)}


def _lines(x: Any) -> Any:
    from lego_mlir import ceildiv

    return ceildiv(x.shape[0], _LINE)


def _large(name: str, built: Built) -> Contenders:
    torch = built.torch
    m, n = LARGE
    shape = (m * n,) if name == "elementwise" else (m, n)
    x = torch.randn(shape, device="cuda")
    y = torch.empty_like(x) if name != "transpose" else torch.empty(n, m, device="cuda")
    inputs = [x]
    match name:
        case "elementwise":
            expected = x * 2.0 + 1.0
            peer = partial(torch.add, torch.ones((), device="cuda"), x, alpha=2.0, out=y)
        case "softmax":
            expected = torch.softmax(x, dim=1)
            peer = partial(torch.softmax, x, dim=1, out=y)
        case "transpose":
            expected = x.T.contiguous()
            peer = partial(y.copy_, x.T)
        case _:
            at = torch.randint(0, m, (m,), device="cuda", dtype=torch.int32)
            inputs.append(at)
            expected = x[at.long()]
            peer = partial(torch.index_select, x, 0, at, out=y)
    calls = {OURS: built.ours(OURS, *inputs, y), "PyTorch": peer}
    return Contenders(calls, [y], [expected], 1e-6)
