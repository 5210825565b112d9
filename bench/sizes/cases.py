"""GEMMs of layers with rows that only the launch knows, beside those compiled for the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle
from typing import Any

from bench.contenders.case import Built, Call, ContenderCase, Contenders

LAYERS = ((4096, 4096), (14336, 4096), (4096, 14336))
"""Columns of B and rows of B: projections of attention, and the two sides of an MLP."""

ROWS = (1, 16, 64, 100, 128, 500, 1024, 3000, 4096, 8192)

STATIC, FEW, MANY, SAME = "static", "4 configs", "16 configs", "same config"
_CONFIGS = {FEW: 4, MANY: 16}
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


def cases() -> Iterator[ContenderCase]:
    """Yield the cases."""
    for n, k in LAYERS:
        for m in ROWS:
            yield ContenderCase(
                name=f"matmul {m}x{n}x{k}",
                figure="rows at run time",
                printed={},
                kernels=partial(_kernels, m, n, k),
                contenders=partial(_contenders, m, n, k),
                work=2.0 * m * n * k,
                unit="TFLOP/s",
            )


@cache
def _of_any_rows(n: int, k: int, configs: int, config: Any = None) -> Any:
    from lego_mlir.kernels import matmul

    return matmul(None, n, k, target="sm_90a", configs=configs, config=config)


def _kernels(m: int, n: int, k: int) -> Mapping[str, Any]:
    from lego_mlir import OrderBy, Row
    from lego_mlir.hardware.targets import Target
    from lego_mlir.kernels import WgmmaConfig, matmul
    from lego_mlir.kernels.gemm.planner import plan
    from lego_mlir.kernels.gemm.problem import Problem

    found: dict[str, Any] = {STATIC: matmul(m, n, k, target="sm_90a")}
    for name, configs in _CONFIGS.items():
        found[name] = _Sized(_of_any_rows(n, k, configs), m)
    layouts = [OrderBy(Row(*sizes)) for sizes in ((m, k), (k, n), (m, n))]
    config = plan(Problem(m, n, k, "f16", "f16"), layouts, Target.parse("sm_90a")).config
    if isinstance(config, WgmmaConfig) and not config.sums_through_l2:
        found[SAME] = _Sized(_of_any_rows(n, k, 1, config), m)
    return found


def _contenders(m: int, n: int, k: int, built: Built) -> Contenders:
    torch = built.torch
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    copies = [b, *(b.clone() for _ in range(_L2_BYTES // (2 * n * k)))]
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
