"""Random programs on tiles: operations of all kinds, sizes, types, padding, and numbers of warps.

Floats stay near 1, and what depends on them by comparison is compared where it is exact, so that
the program's results are the same, within rounding, however it is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

from tile_modules import memref, tile_module

from lego_mlir.analysis.distributed import coalesced

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


# Each function adds something, or nothing where the tiles do not allow it.
def load(p: Program) -> None:
    r = p.random
    shape = drawn_shape(r)
    element = r.choice((*FLOATS, *INTEGERS))
    name = f"X{len(p.tensors)}"
    tensor, origins = [], []
    for dim, n in enumerate(shape):
        tiles = p.grid if dim == 0 else 1
        short = r.choice((0, 0, 0, r.randrange(n)))
        tensor.append(max(1, tiles * n - short))
        if tiles > 1:
            origin = p.name()
            size = p.name()
            p.lines.append(f"{INDENT}%{size} = arith.constant {n} : index")
            p.lines.append(f"{INDENT}%{origin} = arith.muli %b, %{size} : index")
            origins.append(f"%{origin}")
        else:
            origins.append("%c0")
    p.tensors[name] = element, tuple(tensor)
    draw_order(p, name)
    dims = ", ".join(map(str, range(len(shape))))
    kinds = ", ".join([memref(element, tuple(tensor)), *["index"] * len(shape)])
    p.add(
        shape,
        element,
        f'"lego.load"(%{name}, {", ".join(origins)}) {{layout = #{name}, '
        f"slice = array<i64: {dims}>}} : ({kinds}) -> {tile_type(shape, element)}",
    )


def draw_order(p: Program, tensor: str) -> None:
    """Give a tensor another order of dimensions than row-major, or not."""
    if p.random.random() < 0.3:
        p.layouts[tensor] = f"OrderBy(Col({', '.join(map(str, p.tensors[tensor][1]))}))"


def drawn_shape(r: Random) -> tuple[int, ...]:
    """Return the shape of a tile that is loaded."""
    while True:
        rank = r.choice((1, 2, 2, 2))
        sizes = SIZES if r.random() < 0.8 else (3, 6, 12, 24, 48, 96)
        shape = tuple(r.choice(sizes) for _ in range(rank))
        if 8 <= prod(shape) <= MOST_ELEMENTS:
            return shape


def pointwise(p: Program) -> None:
    r = p.random
    a = p.pick()
    if a is None or a.element == "i1":
        return
    b = p.pick(shape=a.shape, element=a.element) or a
    exact = a.is_exact and b.is_exact
    if a.is_float:
        name = r.choice(("addf", "subf", "mulf", "maximumf", "minimumf"))
        exact = exact and name in ("maximumf", "minimumf")
        made = p.add(a.shape, a.element, f"arith.{name} %{a.name}, %{b.name} : {a.type}", exact)
        p.tamed(made)
        return
    names = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
    p.add(a.shape, a.element, f"arith.{r.choice(names)} %{a.name}, %{b.name} : {a.type}", exact)


def unary(p: Program) -> None:
    a = p.pick(is_float=True)
    if a is None:
        return
    name = p.random.choice(("arith.negf", "math.absf", "math.exp2", "math.tanh"))
    if a.element != "f32":
        name = "arith.negf"
    exact = a.is_exact and name in ("arith.negf", "math.absf")
    p.tamed(p.add(a.shape, a.element, f"{name} %{a.name} : {a.type}", exact))


def compare(p: Program) -> None:
    r = p.random
    a = p.pick(is_exact=True)
    if a is None or a.element == "i1":
        return
    b = p.pick(shape=a.shape, element=a.element, is_exact=True) or a
    predicates = ("olt", "oge", "oeq") if a.is_float else ("slt", "uge", "eq")
    name = f"{'cmpf' if a.is_float else 'cmpi'} {r.choice(predicates)}"
    mask = p.add(a.shape, "i1", f"arith.{name}, %{a.name}, %{b.name} : {a.type}")
    x = p.pick(shape=a.shape)
    y = x and p.pick(shape=a.shape, element=x.element)
    if x is None or y is None:
        return
    exact = x.is_exact and y.is_exact
    p.add(
        x.shape,
        x.element,
        f"arith.select %{mask.name}, %{x.name}, %{y.name} : {mask.type}, {x.type}",
        exact,
    )


def cast(p: Program) -> None:
    r = p.random
    a = p.pick()
    if a is None or a.element == "i1":
        return
    if a.is_float:
        to = r.choice(("f32", "f16", "bf16"))
        if to == a.element or {to, a.element} == {"f16", "bf16"}:
            return
        name = "extf" if to == "f32" else "truncf"
    else:
        to = r.choice(("i8", "i16", "i32", "i64"))
        if to == a.element:
            return
        wider = WIDTHS[to] > WIDTHS[a.element]
        name = r.choice(("extsi", "extui")) if wider else "trunci"
    p.add(
        a.shape,
        to,
        f"arith.{name} %{a.name} : {a.type} to {tile_type(a.shape, to)}",
        a.is_exact,
    )


def reduce(p: Program) -> None:
    r = p.random
    a = p.pick()
    if a is None:
        return
    dim = r.randrange(len(a.shape))
    kinds: Sequence[str] = ("add", "mul", "max", "min", "umax", "umin", "and", "or", "xor")
    if a.is_float:
        kinds = ("add", "max", "min")
    elif a.element == "i1":
        kinds = ("and", "or", "xor")
    kind = r.choice(kinds)
    shape = (*a.shape[:dim], 1, *a.shape[dim + 1 :])
    exact = a.is_exact and (not a.is_float or kind != "add")
    text = p.op("reduce", a, attributes=f'kind = "{kind}", dim = {dim} : i64')
    made = p.tamed(p.add(shape, a.element, text + tile_type(shape, a.element), exact))
    if r.random() < 0.7:
        _broadcast(p, made, a.shape)


def _broadcast(p: Program, tile: Tile, shape: tuple[int, ...]) -> Tile:
    if tile.shape == shape:
        return tile
    kind = tile_type(shape, tile.element)
    return p.add(shape, tile.element, p.op("broadcast", tile) + kind, tile.is_exact)


def broadcast(p: Program) -> None:
    a = p.pick()
    if a is None or 1 not in a.shape:
        return
    shape = tuple(p.random.choice((1, 2, 4, 8)) if n == 1 else n for n in a.shape)
    if prod(shape) <= MOST_ELEMENTS:
        _broadcast(p, a, shape)


def scan(p: Program) -> None:
    a = p.pick()
    if a is None or a.element == "i1":
        return
    dim = p.random.randrange(len(a.shape))
    kind = p.random.choice(("add", "max", "min"))
    reverse = ", reverse" if p.random.random() < 0.3 else ""
    exact = a.is_exact and (not a.is_float or kind != "add")
    text = p.op("scan", a, attributes=f'kind = "{kind}", dim = {dim} : i64{reverse}')
    p.tamed(p.add(a.shape, a.element, text + a.type, exact))


def iota(p: Program) -> None:
    a = p.pick()
    if a is None:
        return
    dim = p.random.randrange(len(a.shape))
    kind = tile_type(a.shape, "i32")
    p.add(a.shape, "i32", f'"lego.iota"() {{dim = {dim} : i64}} : () -> {kind}')


def restrict(p: Program) -> None:
    a = p.pick()
    mask = a and p.pick(shape=a.shape, element="i1", is_exact=True)
    if a is not None and mask is not None:
        p.add(a.shape, a.element, p.op("restrict", a, mask) + a.type, a.is_exact)


def argmax(p: Program) -> None:
    """Reduce pairs of a number and its index: the greatest, and of equal ones the first."""
    a = p.pick(is_exact=True)
    if a is None or a.element == "i1":
        return
    dim = p.random.randrange(len(a.shape))
    index = p.add(
        a.shape,
        "i32",
        f'"lego.iota"() {{dim = {dim} : i64}} : () -> {tile_type(a.shape, "i32")}',
    )
    shape = (*a.shape[:dim], 1, *a.shape[dim + 1 :])
    kinds = [tile_type(shape, a.element), tile_type(shape, "i32")]
    value, at = Tile(p.name(), shape, a.element), Tile(p.name(), shape, "i32")
    compared = "arith.cmpf {}, %p, %r" if a.is_float else "arith.cmpi {}, %p, %r"
    greater = compared.format("ogt" if a.is_float else "sgt")
    equal = compared.format("oeq" if a.is_float else "eq")
    e = a.element
    if a.is_float:
        bits = {"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}[e]
        lowest = f"{bits} : {e}"
    else:
        lowest = f"{-(1 << WIDTHS[e] - 1)} : {e}"
    p.lines.append(
        f"""{INDENT}%{value.name}, %{at.name} = "lego.reduce_with"(%{a.name}, %{index.name}) ({{
        ^bb0(%p: {e}, %q: i32, %r: {e}, %s: i32):
          %gt = {greater} : {e}
          %eq = {equal} : {e}
          %lt = arith.cmpi slt, %q, %s : i32
          %first = arith.andi %eq, %lt : i1
          %take = arith.ori %gt, %first : i1
          %u = arith.select %take, %p, %r : {e}
          %w = arith.select %take, %q, %s : i32
          gpu.yield %u, %w : {e}, i32
        }}) {{dim = {dim} : i64, identity = [{lowest}, 2147483647 : i32],
            operandSegmentSizes = array<i32: 1, 1, 0, 0>,
            resultSegmentSizes = array<i32: 1, 1, 0, 0>}}
          : ({a.type}, {index.type}) -> ({", ".join(kinds)})"""
    )
    p.tiles += [value, at]


def transpose(p: Program) -> None:
    a = p.pick()
    if a is None or len(a.shape) < 2:
        return
    order = list(range(len(a.shape)))
    p.random.shuffle(order)
    shape = tuple(a.shape[d] for d in order)
    text = p.op("transpose", a, attributes=f"order = array<i64: {', '.join(map(str, order))}>")
    p.add(shape, a.element, text + tile_type(shape, a.element), a.is_exact)


def reshape(p: Program) -> None:
    r = p.random
    a = p.pick()
    if a is None:
        return
    total = prod(a.shape)
    first = r.choice([n for n in range(1, total + 1) if total % n == 0])
    shape = r.choice(((total,), (first, total // first), (1, *a.shape), (*a.shape, 1)))
    if len(shape) <= 3:
        text = p.op("reshape", a) + tile_type(shape, a.element)
        p.add(shape, a.element, text, a.is_exact)


def join(p: Program) -> None:
    a = p.pick()
    b = a and p.pick(shape=a.shape, element=a.element)
    if a is None or b is None or len(a.shape) > 2 or 2 * prod(a.shape) > MOST_ELEMENTS:
        return
    shape = (*a.shape, 2)
    exact = a.is_exact and b.is_exact
    p.add(shape, a.element, p.op("join", a, b) + tile_type(shape, a.element), exact)


def split(p: Program) -> None:
    a = p.pick()
    if a is None or len(a.shape) < 2 or a.shape[-1] not in (2, 4):
        return
    shape = a.shape[:-1]
    parts = [Tile(p.name(), shape, a.element, a.is_exact) for _ in range(a.shape[-1])]
    names = ", ".join(f"%{t.name}" for t in parts)
    kinds = ", ".join(t.type for t in parts)
    p.lines.append(f"{INDENT}{names} = {p.op('split', a)}({kinds})")
    p.tiles += parts


def take(p: Program) -> None:
    a = p.pick()
    if a is None:
        return
    dim = p.random.randrange(len(a.shape))
    kind = tile_type(a.shape, "i32")
    step = p.add(a.shape, "i32", f'"lego.iota"() {{dim = {dim} : i64}} : () -> {kind}')
    factor = p.constant(a.shape, "i32", p.random.randrange(1, 6))
    size = p.constant(a.shape, "i32", a.shape[dim])
    times = p.add(a.shape, "i32", f"arith.muli %{step.name}, %{factor.name} : {kind}")
    index = p.add(a.shape, "i32", f"arith.remui %{times.name}, %{size.name} : {kind}")
    text = p.op("take", a, index, attributes=f"dim = {dim} : i64")
    p.add(a.shape, a.element, text + a.type, a.is_exact)


def dot(p: Program) -> None:
    r = p.random
    element = r.choice(("f16", "bf16", "f32", "f16"))
    m, n, k = (r.choice((16, 32)) for _ in range(3))
    operands = []
    for shape in ((m, k), (k, n)):
        found = p.pick(element=element)
        if found is None:
            return
        if prod(found.shape) == prod(shape):
            text = p.op("reshape", found) + tile_type(shape, element)
            operands.append(p.add(shape, element, text, found.is_exact))
        elif len(found.shape) == 2 and all(map(_is_repeated, found.shape, shape)):
            operands.append(_broadcast(p, found, shape))
        else:
            return
    zero = p.constant((m, n), "f32", 0.0)
    made = p.add((m, n), "f32", p.op("dot", *operands, zero) + zero.type, False)
    scale = p.constant((m, n), "f32", 1 / k)
    p.tiles.remove(made)
    p.tamed(p.add((m, n), "f32", f"arith.mulf %{made.name}, %{scale.name} : {made.type}", False))


def _is_repeated(n: int, m: int) -> bool:
    return n in (1, m)


def given(p: Program) -> None:
    """Convert a tile to a layout and back."""
    a = p.pick()
    if a is None:
        return
    order = p.random.sample(range(len(a.shape)), len(a.shape))
    layout = coalesced(a.shape, max(1, WIDTHS.get(a.element, 32) // 8), p.warps, order=order)
    there = f'{a.type[:-1]}, #lego.layout<"{layout.text}">>'
    name = p.name()
    p.lines.append(f"{INDENT}%{name} = {p.op('convert', a)}{there}")
    text = f'"lego.convert"(%{name}) : ({there}) -> {a.type}'
    p.add(a.shape, a.element, text, a.is_exact)


def item(p: Program) -> None:
    a = p.pick(shape=(1, 1)) or p.pick(shape=(1,))
    if a is None:
        return
    number, shape = p.name(), drawn_shape(p.random)
    p.lines.append(f"{INDENT}%{number} = {p.op('item', a)}{a.element}")
    kind = tile_type(shape, a.element)
    p.add(shape, a.element, f'"lego.full"(%{number}) : ({a.element}) -> {kind}', a.is_exact)


def loop(p: Program) -> None:
    """Carry a tile round a loop, in which operations on elements change it."""
    a = p.pick()
    if a is None or a.element == "i1":
        return
    b = p.pick(shape=a.shape, element=a.element) or a
    turns, result, inside = p.name(), p.name(), p.name()
    p.lines.append(f"{INDENT}%{turns} = arith.constant {p.random.randrange(0, 4)} : index")
    p.lines.append(
        f"{INDENT}%{result} = scf.for %i{result} = %c0 to %{turns} step %c1 "
        f"iter_args(%{inside} = %{a.name}) -> ({a.type}) {{"
    )
    outside = list(p.tiles)
    p.tiles = [Tile(inside, a.shape, a.element, a.is_exact), b]
    for _ in range(p.random.randrange(1, 4)):
        p.random.choice((pointwise, pointwise, scan))(p)
    last = p.pick(shape=a.shape, element=a.element) or b
    p.lines += [f"{INDENT}scf.yield %{last.name} : {a.type}", f"{INDENT}}}"]
    p.tiles = [*outside, Tile(result, a.shape, a.element, False if a.is_float else a.is_exact)]


def branch(p: Program) -> None:
    """Choose between tiles by the number of the CTA."""
    a = p.pick()
    if a is None:
        return
    b = p.pick(shape=a.shape, element=a.element) or a
    condition, result = p.name(), p.name()
    p.lines += [
        f"{INDENT}%{condition} = arith.cmpi eq, %b, %c0 : index",
        f"{INDENT}%{result} = scf.if %{condition} -> ({a.type}) {{",
        f"{INDENT}scf.yield %{a.name} : {a.type}",
        f"{INDENT}}} else {{",
        f"{INDENT}scf.yield %{b.name} : {b.type}",
        f"{INDENT}}}",
    ]
    p.tiles.append(Tile(result, a.shape, a.element, a.is_exact and b.is_exact))


def store(p: Program, tile: Tile) -> None:
    """Store a tile of each CTA into a tensor of its own, which may be smaller."""
    name = f"Y{len(p.tensors)}"
    shape = tile.shape
    tensor = (p.grid, *(max(1, n - p.random.choice((0, 0, p.random.randrange(n)))) for n in shape))
    element = tile.element
    if element == "i1":
        wide = tile_type(shape, "i8")
        tile = p.add(shape, "i8", f"arith.extui %{tile.name} : {tile.type} to {wide}")
        element = "i8"
    p.tensors[name] = element, tensor
    draw_order(p, name)
    origin = ", ".join(["%b", *["%c0"] * len(shape)])
    dims = ", ".join(str(k + 1) for k in range(len(shape)))
    kinds = ", ".join([tile.type, memref(element, tensor), *["index"] * (len(shape) + 1)])
    p.lines.append(
        f'{INDENT}"lego.store"(%{tile.name}, %{name}, {origin}) {{layout = #{name}, '
        f"slice = array<i64: {dims}>}} : ({kinds}) -> ()"
    )


_STEPS = (
    *(pointwise,) * 6,
    *(unary, unary, compare, compare, cast, cast),
    *(reduce,) * 4,
    *(scan, iota, restrict, restrict, argmax, transpose, transpose, reshape, reshape),
    *(join, split, take, dot, given, item, loop, branch, broadcast, load),
)


def drawn_program(random: Random) -> str:
    """Return the text of a random module with one kernel on tiles."""
    grid, warps = random.choice((1, 1, 2, 3)), random.choice((1, 1, 2, 3, 4, 8))
    p = Program(random, grid=grid, warps=warps)
    for _ in range(random.randrange(1, 4)):
        load(p)
    for _ in range(random.randrange(1, 12)):
        random.choice(_STEPS)(p)
    last = p.tiles[-6:]
    for tile in random.sample(last, min(len(last), random.randrange(1, 4))):
        store(p, tile)
    body = "\n".join(p.lines)
    return tile_module(p.tensors, body, grid=grid, warps=warps, layouts=p.layouts)
