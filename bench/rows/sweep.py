"""Other configs than the heuristic's, by which the heuristic is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING

from bench.rows.cases import RowsCase

if TYPE_CHECKING:
    from lego_mlir.kernels import RowsConfig

_SMS, _CLUSTERED_SMS = 132, 128
"""Multiprocessors of an H200, and those that clusters of 4 to 16 CTAs reach at once."""

_SUMS = ("rmsnorm_backward", "layernorm_backward")
"""The kernels that add up columns."""

_STAGED_BYTES = 200 << 10
"""Shared memory of a multiprocessor that stages may have."""

_CLUSTERS = {1: 132, 2: 66, 4: 30, 8: 15, 16: 7}
"""The clusters of so many CTAs, of 16 warps, that an H200 runs at once."""

_WARPS = 32
"""Threads of a warp."""


def configs(case: RowsCase) -> Iterator[tuple[str, RowsConfig]]:
    """Yield configs by name."""
    if case.kernel in _SUMS:
        yield from _persistent(case)
        yield from _streamed(case)
    elif case.columns >= 32768:
        yield from _clusters(case)
    else:
        yield from _whole(case)


def _whole(case: RowsCase) -> Iterator[tuple[str, RowsConfig]]:
    """Yield configs whose CTAs have whole rows, or one in pieces that stay in registers."""
    from lego_mlir.kernels import RowsConfig

    n, most = case.columns, 4 if case.dtype == "f32" else 8
    vector = gcd(n, most)
    for warps in (1, 2, 4, 8, 16):
        for rows in (1, 2, 4):
            if 8 <= n * rows // (warps * _WARPS) <= 96:
                yield f"{rows}x{warps}", RowsConfig(rows, warps)
        for piece in (1, 2):
            config = RowsConfig(1, warps, piece * most // vector, vector, held=True)
            if n // (warps * _WARPS) <= 96:
                yield f"held {warps} {piece}", config


def _clusters(case: RowsCase) -> Iterator[tuple[str, RowsConfig]]:
    """Yield configs whose clusters have a row each."""
    from lego_mlir.kernels import RowsConfig

    held = (8, 16, 32) if case.dtype == "f32" else (16, 32, 64)
    for warps in (8, 16):
        for cluster in (2, 4, 8, 16):
            if case.columns // (cluster * warps * _WARPS) not in held:
                continue
            for ahead in (0, 1) if "norm" in case.kernel else (0,):
                config = RowsConfig(1, warps, cluster=cluster, ahead=ahead)
                yield f"cluster {cluster} {warps}{' ahead' * ahead}", config


def _persistent(case: RowsCase) -> Iterator[tuple[str, RowsConfig]]:
    """Yield configs whose CTAs or clusters are persistent, and load some rows ahead."""
    from lego_mlir.kernels import RowsConfig

    n, is_wide = case.columns, case.dtype == "f32"
    for held in (4, 8, 16) if is_wide else (8, 16, 32):
        threads = 1 << (-(-n // held) - 1).bit_length()
        for warps in (4, 8, 16):
            cluster = max(1, threads // (warps * _WARPS))
            rows = max(1, warps * _WARPS // threads)
            if cluster > 16 or rows > 16 or (cluster > 1 and warps == 4):
                continue
            sms = _CLUSTERED_SMS if cluster > 2 else _SMS
            count = sms * max(1, 512 // (warps * _WARPS)) // cluster
            for ahead in (1, 2, 3, 4):
                if held * ahead * (2 if is_wide else 1) <= 32:
                    name = f"{rows}x{warps} c{cluster} /{count} a{ahead}"
                    config = RowsConfig(rows, warps, cluster=cluster, ctas=count, ahead=ahead)
                    yield name, config
                    if ahead > 1:
                        yield f"{name} together", replace(config, together=ahead)


def _streamed(case: RowsCase) -> Iterator[tuple[str, RowsConfig]]:
    """Yield configs whose rows pass through stages in shared memory."""
    from lego_mlir.kernels import RowsConfig

    vector = 4 if case.dtype == "f32" else 8
    if case.columns % vector:
        return
    for warps in (8, 16):
        for held in (vector, 2 * vector, 4 * vector):
            cluster = 1 << (-(-case.columns // (warps * _WARPS * held)) - 1).bit_length()
            stage = 2 * case.columns * (16 // vector) // cluster
            for stages in (2, 3):
                if cluster > 16 or stages * stage > _STAGED_BYTES // (16 // warps):
                    continue
                count = _CLUSTERS[cluster] * (16 // warps)
                for masked in (False, True):
                    name = f"stream {warps} c{cluster} /{count} s{stages}{' masked' * masked}"
                    yield (
                        f"{name} {held}",
                        RowsConfig(
                            1, warps, 1, vector, cluster=cluster, ctas=count, stages=stages,
                            masked=masked, ctas_per_sm=16 // warps,
                        ),
                    )  # fmt: skip
