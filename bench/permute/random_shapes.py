"""Permutations of random tensors: what shapes do when nobody has tuned for them."""

from __future__ import annotations

import random
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from bench.case import COPIES, Case
from bench.permute.reference import PermuteReference

if TYPE_CHECKING:
    from lego_mlir import Kernel

COUNT = 200
_SEED = 19
_MOST_SIZE = 8192
_LEAST_BYTES, _MOST_BYTES = 1 << 22, 1 << 30
_BYTES = {"i8": 1, "f16": 2, "f32": 4, "f64": 8}
_VARIANTS = ("vector", "runs")
"""What is measured besides our choice."""


def random_cases(count: int = COUNT) -> list[Case]:
    """Return cases of rank 2 to 6, whose sizes are log-uniform from 1 to 8192.

    The same number of cases begins with the same ones.
    """
    generator = random.Random(_SEED)
    return [_case(number, *_drawn(generator)) for number in range(count)]


def _drawn(generator: random.Random) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Return a shape, axes and an element type; the identity is no permutation."""
    while True:
        rank, dtype = generator.randint(2, 6), generator.choice(list(_BYTES))
        shape = tuple(round(_MOST_SIZE ** generator.random()) for _ in range(rank))
        axes = list(range(rank))
        generator.shuffle(axes)
        size = prod(shape) * _BYTES[dtype]
        if _LEAST_BYTES <= size <= _MOST_BYTES and axes != sorted(axes):
            return shape, tuple(axes), dtype


def _case(number: int, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> Case:
    sizes, order = "x".join(map(str, shape)), "".join(map(str, axes))
    return Case(
        f"random_{number:03}_{dtype}_{sizes}_{order}",
        partial(_permute, shape, axes, dtype, None),
        dtype,
        PermuteReference(shape, axes),
        peers=(*COPIES, "torch.compile"),
        alternatives=partial(_alternatives, shape, axes, dtype),
    )


def _permute(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, variant: str | None, _: str
) -> Kernel:
    from lego_mlir.kernels import permute

    return permute(shape, axes, dtype, variant=variant)


def _alternatives(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, target: str
) -> dict[str, Kernel]:
    return {v: _permute(shape, axes, dtype, v, target) for v in _VARIANTS}
