"""Ways of ours to compute one product, measured beside each other and beside others' libraries.

Parts of k that blocks of a cluster share, sums of 8-bit floats that are promoted, and products of
several sizes in one launch.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.cases import Case
from bench.gemm.cases import OUTPUTS, layout_of, make, multiplied, short_name
from bench.gemm.groups import Groups
from bench.gemm.product import Product
from bench.movement import Order

if TYPE_CHECKING:
    from lego_mlir import Kernel

RAGGED = "rows known to the device alone"
GROUPED, LOOP = "torch._grouped_mm", "torch.mm, a group at a time"

PROMOTED = (1, 4)
"""Steps over k that tensor cores add up before threads do."""

_BEST = 2
"""Divisions for each number of parts: those that the cost model likes best."""


def divided(m: int, n: int, k: int, transposes: str = "NN", dtype: str = "f16") -> Case:
    """A product as the library divides it, beside divisions with 2, 4 and 8 blocks a tile."""
    case = multiplied(m, n, k, dtype, transposes)
    assert isinstance(case.reference, Product)
    name = case.name.replace("gemm_", "split_", 1)
    return replace(case, name=name, alternatives=partial(_parts, case.reference))


def _parts(product: Product, target: str) -> dict[str, Kernel]:
    """The best divisions by number of parts."""
    from lego_mlir.hardware.targets import Target
    from lego_mlir.kernels.gemm.problem import Problem
    from lego_mlir.kernels.gemm.wgmma_heuristic import rank

    p = product
    problem = Problem(p.m, p.n, p.k, p.dtype, p.out, p.a, p.b, p.c)
    found: dict[int, list[str]] = {}
    kernels = {}
    for estimate in rank(problem, Target.parse(target)):
        config = estimate.config
        names = found.setdefault(config.split_k, [])
        if config.split_k > 1 and len(names) < _BEST:
            names.append(str(config))
            kernels[str(config)] = make(product, "", target, config)
    return kernels


def promoted(n: int, dtype: str = "f8E4M3FN") -> Case:
    """A square product of 8-bit floats, NT, beside itself with sums that are promoted."""
    case = multiplied(n, n, n, dtype, "NT")
    assert isinstance(case.reference, Product)
    name = case.name.replace("gemm_", "promote_", 1)
    return replace(case, name=name, alternatives=partial(_promoted, case.reference))


def _promoted(product: Product, target: str) -> dict[str, Kernel]:
    return {f"promote {steps}": make(product, "", target, promote=steps) for steps in PROMOTED}


def grouped(groups: int, rows: int, n: int, k: int, dtype: str = "bf16", b: Order = "row") -> Case:
    """The products of a mixture of experts: each has its own B and as many rows as chose it.

    Args:
        groups: experts.
        rows: of an A on average.
        n: columns of every B.
        k: columns of every A.
        dtype: element type of A and B; C is of it too.
        b: where the elements of each B lie.
    """
    reference = Groups(uneven(groups, rows), n, k, dtype, OUTPUTS[dtype], b)
    letter = "n" if b == "row" else "t"
    return Case(
        f"grouped_{short_name(dtype)}_{groups}x{rows}x{n}x{k}_n{letter}",
        partial(_grouped, reference),
        dtype,
        reference,
        peers=(GROUPED, LOOP),
        alternatives=partial(_divisions, reference),
    )


def uneven(groups: int, rows: int) -> tuple[int, ...]:
    """Rows of each group, always the same: between a quarter and 1¾ of the mean, multiples of 8.

    TMA stores whole 16 bytes, but any number of rows: 8 is what the peers want.
    """
    numbers = random.Random(groups)
    return tuple(max(8, numbers.randint(rows // 4, 7 * rows // 4) // 8 * 8) for _ in range(groups))


def _grouped(reference: Groups, target: str, config: object = None) -> Kernel:
    from lego_mlir.kernels import grouped_matmul

    members = reference.members
    kernel: Kernel = grouped_matmul(
        [(p.m, p.n, p.k) for p in members],
        reference.dtype,
        out=reference.out,
        b=[layout_of(p.b, p.k, p.n) for p in members],
        target=target,
        config=config,  # type: ignore[arg-type]
    )
    return kernel


def _divisions(reference: Groups, target: str) -> dict[str, Kernel]:
    """Some divisions that suit few rows, and many."""
    from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

    tiles = ((64, 128, 1, 8), (128, 128, 2, 6), (128, 256, 2, 4))
    configs = [WgmmaConfig((m, n, 64), c, stages, persistent_ctas=132) for m, n, c, stages in tiles]
    found = {str(config): _grouped(reference, target, config) for config in configs}
    return {RAGGED: _ragged(reference, target)} | found


def _ragged(reference: Groups, target: str) -> Kernel:
    from lego_mlir import OrderBy, RegP
    from lego_mlir.kernels import ragged_matmul

    groups, (m, n, k) = len(reference.rows), (sum(reference.rows), reference.n, reference.k)
    b = OrderBy(RegP([groups, k, n], [0, 2, 1])) if reference.b == "col" else None
    kernel: Kernel = ragged_matmul(
        m, n, k, groups, reference.dtype, out=reference.out, b=b, target=target
    )
    return kernel


CASES = (
    divided(64, 4096, 4096),
    divided(128, 7168, 16384),
    divided(16, 8192, 8192),
    divided(512, 512, 16384),
    divided(256, 256, 16384),
    divided(128, 128, 16384),
    promoted(4096),
    promoted(8192),
    grouped(8, 512, 4096, 2048),
    grouped(8, 512, 7168, 4096, b="col"),
    grouped(16, 128, 4096, 4096, b="col"),
    grouped(32, 64, 7168, 2048, b="col"),
    grouped(64, 64, 7168, 2048, b="col"),
    grouped(8, 512, 4096, 4096, "f16"),
)
