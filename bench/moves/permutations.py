"""Permutations of random tensors: what shapes do when nobody has tuned for them."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from bench.moves.case import BYTES, OURS, MoveCase, Tensor

if TYPE_CHECKING:
    from lego_mlir import Kernel

COUNT, SEED = 200, 19
_DTYPES = ("i8", "f16", "f32", "f64")
_NAME = re.compile(rf"(\w+?)_({'|'.join(_DTYPES)})_(\d+(?:x\d+)*)_(\d+)")
_MOST_SIZE = 8192
_LEAST_BYTES, _MOST_BYTES = 1 << 22, 1 << 30
_VARIANTS = ("vector", "runs", "words", "squares", "gathers")
"""What is measured besides our choice."""


def random_cases(count: int = COUNT, seed: int = SEED) -> list[MoveCase]:
    """Return cases of rank 2 to 6, whose sizes are log-uniform from 1 to 8192.

    The same number of cases begins with the same ones.
    """
    generator = random.Random(seed)
    return [_case(seed, number, *_drawn(generator)) for number in range(count)]


def _drawn(generator: random.Random) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Return a shape, axes and an element type; the identity is no permutation."""
    while True:
        rank, dtype = generator.randint(2, 6), generator.choice(_DTYPES)
        shape = tuple(round(_MOST_SIZE ** generator.random()) for _ in range(rank))
        axes = list(range(rank))
        generator.shuffle(axes)
        size = prod(shape) * BYTES[dtype]
        if _LEAST_BYTES <= size <= _MOST_BYTES and axes != sorted(axes):
            return shape, tuple(axes), dtype


def case_of_name(name: str) -> MoveCase | None:
    """Return the case of a permutation by its name, of any seed; `None` if it has another name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    prefix, dtype, sizes, order = found.groups()
    shape, axes = tuple(map(int, sizes.split("x"))), tuple(map(int, order))
    if sorted(axes) != list(range(len(shape))) or axes == tuple(sorted(axes)):
        return None  # a movement along these axes
    return permute_case(prefix, shape, axes, dtype)


def permute_case(
    name: str, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, *, variants: bool = True
) -> MoveCase:
    """Return the case of a permutation of a row-major tensor."""
    sizes, order = "x".join(map(str, shape)), "".join(map(str, axes))
    return MoveCase(
        f"{name}_{dtype}_{sizes}_{order}",
        (Tensor(shape, dtype),),
        (Tensor(tuple(shape[k] for k in axes), dtype),),
        partial(_kernels, shape, axes, dtype, _VARIANTS if variants else ()),
        partial(_by_torch, axes),
    )


def _case(
    seed: int, number: int, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str
) -> MoveCase:
    return permute_case(f"random{seed}_{number:03}", shape, axes, dtype)


def _kernels(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, variants: Sequence[str]
) -> Mapping[str, Kernel]:
    from lego_mlir.kernels import permute

    return {
        OURS: permute(shape, axes, dtype),
        **{v: permute(shape, axes, dtype, variant=v) for v in variants},
    }


def _by_torch(
    axes: tuple[int, ...], torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
) -> None:
    outputs[0].copy_(inputs[0].permute(axes))
