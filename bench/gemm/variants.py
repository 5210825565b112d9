"""Split-K, promotion, GEMMs on tiles and not, and grouped ones: alternatives side by side."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.case import Case, Order
from bench.gemm.cases import (
    OUTPUT_TYPES,
    gemm_case,
    layout_of,
    make_kernel,
    short_name,
)
from bench.gemm.references import GemmReference, GroupedGemmReference

if TYPE_CHECKING:
    from lego_mlir import Kernel

RAGGED = "ragged, group sizes on the device"
ON_TILES = "on tiles"
GROUPED, PER_GROUP = "torch._grouped_mm", "torch.mm per group"

PROMOTE = (1, 4)
"""K-loop iterations after which the tensor cores' accumulator is added to an f32 one."""

_PER_SPLIT = 2
"""Configs for each split_k: those that the cost model ranks first."""


def split_k_case(m: int, n: int, k: int, transposes: str = "NN", dtype: str = "f16") -> Case:
    """Return a GEMM with the library's config, beside configs with split_k 2, 4 and 8."""
    case = gemm_case(m, n, k, dtype, transposes)
    assert isinstance(case.reference, GemmReference)
    name = case.name.replace("gemm_", "split_", 1)
    return replace(case, name=name, alternatives=partial(_split_k_kernels, case.reference))


def _split_k_kernels(reference: GemmReference, target: str) -> dict[str, Kernel]:
    """Return the kernels of the best configs of each number of slices that a cluster adds up."""
    from lego_mlir.hardware.targets import Target
    from lego_mlir.kernels.gemm.problem import Problem
    from lego_mlir.kernels.gemm.wgmma.heuristic import enumerate_configs

    r = reference
    problem = Problem(r.m, r.n, r.k, r.dtype, r.out, r.a, r.b, r.c)
    found: dict[int, list[str]] = {}
    kernels = {}
    for config in enumerate_configs(problem, Target.parse(target)):
        names = found.setdefault(config.split_k, [])
        if config.split_k in (2, 4, 8) and not config.sums_through_l2 and len(names) < _PER_SPLIT:
            names.append(str(config))
            kernels[str(config)] = make_kernel(reference, "", target, config)
    return kernels


def promotion_case(n: int, dtype: str = "f8E4M3FN") -> Case:
    """Return a square NT GEMM of 8-bit floats, beside itself with promoted accumulators."""
    case = gemm_case(n, n, n, dtype, "NT")
    assert isinstance(case.reference, GemmReference)
    name = case.name.replace("gemm_", "promote_", 1)
    return replace(case, name=name, alternatives=partial(_promotion_kernels, case.reference))


def _promotion_kernels(reference: GemmReference, target: str) -> dict[str, Kernel]:
    return {f"promote {n}": make_kernel(reference, "", target, promote=n) for n in PROMOTE}


def grouped_case(
    groups: int, rows: int, n: int, k: int, dtype: str = "bf16", b: Order = "row"
) -> Case:
    """Return a grouped GEMM as in a mixture of experts: each group has its own B and row count.

    Args:
        groups: number of groups (experts).
        rows: mean number of rows of a group.
        n: columns of every B.
        k: columns of every A.
        dtype: element type of A, B and C.
        b: memory order of each B.
    """
    group_rows = uneven_group_rows(groups, rows)
    reference = GroupedGemmReference(group_rows, n, k, dtype, OUTPUT_TYPES[dtype], b)
    letter = "n" if b == "row" else "t"
    return Case(
        f"grouped_{short_name(dtype)}_{groups}x{rows}x{n}x{k}_n{letter}",
        partial(_grouped_kernel, reference),
        dtype,
        reference,
        peers=(GROUPED, PER_GROUP),
        alternatives=partial(_grouped_kernels, reference),
    )


def uneven_group_rows(groups: int, mean: int) -> tuple[int, ...]:
    """Return reproducible row counts between a quarter and 1¾ of the mean, multiples of 8.

    Our kernels take any number of rows; the peers need multiples of 8.
    """
    numbers = random.Random(groups)
    return tuple(max(8, numbers.randint(mean // 4, 7 * mean // 4) // 8 * 8) for _ in range(groups))


def _grouped_kernel(reference: GroupedGemmReference, target: str, config: object = None) -> Kernel:
    from lego_mlir.kernels import grouped_matmul

    groups = reference.groups
    kernel: Kernel = grouped_matmul(
        [(g.m, g.n, g.k) for g in groups],
        reference.dtype,
        out=reference.out,
        b=[layout_of(g.b, g.k, g.n) for g in groups],
        target=target,
        config=config,  # type: ignore[arg-type]
    )
    return kernel


def _grouped_kernels(reference: GroupedGemmReference, target: str) -> dict[str, Kernel]:
    """Return ragged and grouped kernels with configs for few rows and many."""
    from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

    tiles = ((64, 128, 1, 8), (128, 128, 2, 6), (128, 256, 2, 4))
    configs = [WgmmaConfig((m, n, 64), c, stages, persistent_ctas=132) for m, n, c, stages in tiles]
    found = {str(config): _grouped_kernel(reference, target, config) for config in configs}
    for config in configs:
        found[f"{RAGGED}, {config}"] = _ragged_kernel(reference, target, config)
    return {RAGGED: _ragged_kernel(reference, target)} | found


def _ragged_kernel(reference: GroupedGemmReference, target: str, config: object = None) -> Kernel:
    from lego_mlir import OrderBy, RegP
    from lego_mlir.kernels import ragged_matmul

    groups, (m, n, k) = len(reference.rows), (sum(reference.rows), reference.n, reference.k)
    b = OrderBy(RegP([groups, k, n], [0, 2, 1])) if reference.b == "col" else None
    kernel: Kernel = ragged_matmul(
        m, n, k, groups, reference.dtype, out=reference.out, b=b, target=target,
        config=config,  # type: ignore[arg-type]
    )  # fmt: skip
    return kernel


CASES = (
    split_k_case(64, 4096, 4096),
    split_k_case(128, 7168, 16384),
    split_k_case(16, 8192, 8192),
    split_k_case(512, 512, 16384),
    split_k_case(256, 256, 16384),
    split_k_case(128, 128, 16384),
    promotion_case(4096),
    promotion_case(8192),
    grouped_case(8, 512, 4096, 2048),
    grouped_case(8, 512, 7168, 4096, b="col"),
    grouped_case(16, 128, 4096, 4096, b="col"),
    grouped_case(32, 64, 7168, 2048, b="col"),
    grouped_case(64, 64, 7168, 2048, b="col"),
    grouped_case(8, 512, 4096, 4096, "f16"),
)
