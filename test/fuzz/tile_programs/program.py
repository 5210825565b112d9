"""A random program while it is drawn: its tiles, its operations, its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

FLOATS = ("f32", "f32", "f16", "bf16")
INTEGERS = ("i32", "i32", "i8", "i16", "i64")
WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
SIZES = (1, 2, 4, 8, 16, 32, 64)
MOST_ELEMENTS = 2048
INDENT = "      "


@dataclass(frozen=True)
class Tile:
    """A tile of the program.

    Attributes:
        name: of its SSA value.
        shape: of it.
        element: the type of its elements.
        is_exact: whether its elements are the same bits, however it is compiled.
    """

    name: str
    shape: tuple[int, ...]
    element: str
    is_exact: bool = True

    @property
    def type(self) -> str:
        """The type in MLIR's notation."""
        return tile_type(self.shape, self.element)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return self.element not in WIDTHS


def tile_type(shape: Sequence[int], element: str) -> str:
    """Return the type of a tile."""
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


@dataclass
class Program:
    """A program while it is drawn.

    Attributes:
        random: decides.
        lines: the kernel's operations.
        tiles: those that may be used from here on.
        tensors: element type and shape of each argument.
        layouts: those of the arguments that are not row-major.
        grid: the number of CTAs.
        warps: of a CTA.
    """

    random: Random
    lines: list[str] = field(default_factory=list)
    tiles: list[Tile] = field(default_factory=list)
    tensors: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)
    grid: int = 1
    warps: int = 1
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def add(self, shape: Sequence[int], element: str, text: str, is_exact: bool = True) -> Tile:
        """Add an operation with one tile as its result: `text` follows the `=`."""
        made = Tile(self.name(), tuple(shape), element, is_exact)
        self.lines.append(f"{INDENT}%{made.name} = {text}")
        self.tiles.append(made)
        return made

    def constant(self, shape: Sequence[int], element: str, number: float) -> Tile:
        shown = f"{number:.6e}" if element not in WIDTHS else str(int(number))
        kind = tile_type(shape, element)
        made = Tile(self.name(), tuple(shape), element)
        self.lines.append(f"{INDENT}%{made.name} = arith.constant dense<{shown}> : {kind}")
        return made

    def pick(self, **like: object) -> Tile | None:
        """Return one of the tiles whose attributes are as given, more often a late one."""
        fitting = [t for t in self.tiles if all(getattr(t, k) == v for k, v in like.items())]
        if not fitting:
            return None
        return self.random.choice(fitting[-4:] if self.random.random() < 0.7 else fitting)

    def op(self, name: str, *operands: Tile, attributes: str = "") -> str:
        """Return a lego operation without its result's type."""
        values = ", ".join(f"%{t.name}" for t in operands)
        kinds = ", ".join(t.type for t in operands)
        braces = f" {{{attributes}}}" if attributes else ""
        return f'"lego.{name}"({values}){braces} : ({kinds}) -> '

    def tamed(self, tile: Tile) -> Tile:
        """Keep floats near 1."""
        if not tile.is_float:
            return tile
        self.tiles.remove(tile)
        low, high = (self.constant(tile.shape, tile.element, x) for x in (-4.0, 4.0))
        a = self.add(
            tile.shape,
            tile.element,
            f"arith.maximumf %{tile.name}, %{low.name} : {tile.type}",
            tile.is_exact,
        )
        self.tiles.remove(a)
        return self.add(
            tile.shape,
            tile.element,
            f"arith.minimumf %{a.name}, %{high.name} : {tile.type}",
            tile.is_exact,
        )


def drawn_shape(r: Random) -> tuple[int, ...]:
    """Return the shape of a tile that is loaded."""
    while True:
        rank = r.choice((1, 2, 2, 2))
        sizes = SIZES if r.random() < 0.8 else (3, 6, 12, 24, 48, 96)
        shape = tuple(r.choice(sizes) for _ in range(rank))
        if 8 <= prod(shape) <= MOST_ELEMENTS:
            return shape
