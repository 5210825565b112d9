"""Kernels on placed tiles: random layouts that convert, reduce, scan and take, against NumPy.

python test/fuzz placed_tiles --count 20000 --seed 1 --jobs 2
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from random import Random

import numpy as np
from random_distributed import SHAPES, primes
from tile_kernels import ELEMENTS, kernel, load, outputs, store, tile

from fuzz.runner import WrongError
from lego_mlir.analysis.distributed import DistributedLayout, Factor, reduced, replicas
from lego_mlir.diagnostics import LegoError

WARPS = ((), (), (2,), (3,), (2, 2), (2, 2, 2))
TYPES = (np.int8, np.int16, np.float16, np.int32, np.float32, np.int64, np.float64)
WHATS = ("convert", "convert", "convert", "reduce", "scan", "take")
KINDS = {"add": np.add, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True)
class Drawn:
    """A kernel: load in one layout, one operation, store.

    Attributes:
        what: the operation, one of `WHATS`.
        source: the layout that is loaded.
        target: that of a conversion's result, or of the indices of a take.
        dtype: of the elements.
        dim: the dimension of the operation.
        kind: of a reduction or scan.
        is_reverse: of a scan.
        seed: of the numbers.
    """

    what: str
    source: DistributedLayout
    target: DistributedLayout
    dtype: type
    dim: int
    kind: str
    is_reverse: bool
    seed: int


class Tiles:
    """See the module."""

    name = "placed_tiles"

    def prepare(self) -> None:
        """Import what is imported lazily."""
        self.check(self.make(Random(0)))

    def make(self, random: Random) -> Drawn:
        """Return a kernel."""
        shape, warps = random.choice(SHAPES), random.choice(WARPS)
        what = random.choice(WHATS)
        dim = random.randrange(len(shape))
        taken = list(shape)
        if what == "take":
            taken[dim] = random.choice((1, 4, 8))
        return Drawn(
            what,
            drawn_layout(random, shape, warps),
            drawn_layout(random, tuple(taken), warps),
            random.choice(TYPES),
            dim,
            random.choice(tuple(KINDS)),
            random.random() < 0.5,
            random.randrange(1 << 16),
        )

    def show(self, made: Drawn) -> str:
        text, _, _ = kernel_of(made)
        return f"{made}\n{text}"

    def smaller(self, made: Drawn) -> Iterable[Drawn]:
        return ()

    def check(self, made: Drawn) -> str:
        text, arguments, expected = kernel_of(made)
        order = ("late", "early", f"random:{made.seed}")[made.seed % 3]
        try:
            found = outputs(text, arguments, order)["y"]
        except LegoError as e:
            raise WrongError(f"a right kernel is refused: {e}") from e
        if not np.array_equal(found, expected):
            raise WrongError(f"{made.what} gives wrong elements")
        return made.what


def drawn_layout(
    random: Random, shape: tuple[int, ...], warps: tuple[int, ...]
) -> DistributedLayout:
    """Return a layout: prime factors of the shape in any order, each in any place with room."""
    atoms = []
    for dim, n in enumerate(shape):
        stride = 1
        factors = primes(n)
        for p in random.sample(factors, len(factors)):
            atoms.append(Factor(dim, p, stride))
            stride *= p
    room = [list(warps), [2] * 5]
    places: list[list[Factor]] = [[], [], []]
    for atom in random.sample(atoms, len(atoms)):
        fitting = [k for k in range(2) if atom.size in room[k]]
        place = random.choice([2, *fitting, *fitting])
        if place < 2:
            room[place].remove(atom.size)
        places[place].append(atom)
    for k in range(2):
        places[k] += [replicas(p) for p in room[k]]
    if random.random() < 0.15:
        places[2].append(replicas(random.choice((2, 3))))
    mixed = [random.sample(p, len(p)) for p in places]
    return DistributedLayout.of(shape, warps=mixed[0], lanes=mixed[1], registers=mixed[2])


def kernel_of(made: Drawn) -> tuple[str, dict[str, np.ndarray], np.ndarray]:
    """Return the module's text, its arguments, and what it shall leave in `y`."""
    random = np.random.default_rng(made.seed)
    shape, dim = made.source.shape, made.dim
    x = random.integers(-3, 4, shape).astype(made.dtype)
    element = ELEMENTS[x.dtype]
    before = tile(made.source, element)
    arguments = {"x": x}
    attributes = f"dim = {dim} : i64"
    operands, types, target = "%v", before, made.target
    indices = ""
    match made.what:
        case "convert":
            x = (np.arange(prod(shape)) * 37 % 127).astype(made.dtype).reshape(shape)
            arguments, expected, attributes = {"x": x}, x, ""
        case "reduce":
            expected = KINDS[made.kind].reduce(x, axis=dim, keepdims=True, dtype=made.dtype)
            target, attributes = reduced(made.source, dim), f'kind = "{made.kind}", {attributes}'
        case "scan":
            turned = np.flip(x, dim) if made.is_reverse else x
            expected = KINDS[made.kind].accumulate(turned, axis=dim, dtype=made.dtype)
            expected = np.flip(expected, dim).copy() if made.is_reverse else expected
            reverse = ", reverse" if made.is_reverse else ""
            target, attributes = made.source, f'kind = "{made.kind}", {attributes}{reverse}'
        case _:
            at = random.integers(0, shape[dim], made.target.shape).astype(np.int32)
            expected = np.take_along_axis(x, at.astype(np.int64), dim)
            arguments["i"] = at
            indices = f"%i0 = {load(arguments, 'i', tile(target, 'i32'))}"
            operands, types = "%v, %i0", f"{before}, {tile(target, 'i32')}"
    arguments["y"] = np.zeros_like(expected)
    after = tile(target, element)
    body = f"""
    %v = {load(arguments, "x", before)}
    {indices}
    %w = "lego.{made.what}"({operands}) {{{attributes}}} : ({types}) -> {after}
    {store(arguments, "y", "%w", after)}
    """
    return kernel(arguments, made.source.warps, body), arguments, expected


FUZZER = Tiles()
