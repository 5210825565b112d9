"""Modules: generated ones run and compared, and damaged ones of these and of the repository.

A generated module moves a tensor from one random layout to another, through a third, and its
result follows from the enumerations of the three. It must compile and be right in the simulator.
A damaged module is refused, or it compiles; if it was generated, it is then run, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from own_permutations import FUNCTIONS_MLIR
from random_layouts import L, built, table_of

from fuzz import drawn
from fuzz.mutations import mutated_bytes, mutated_text, smaller_texts
from fuzz.runner import WrongError
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import dtypes, launch, run

TEST = Path(__file__).resolve().parents[1]
MOST_ELEMENTS = 400
LONGEST = 12_000
"""Longer files of the repository take too long to compile to be damaged often."""

WORDS = (
    *("arith.addi", "arith.constant", "arith.muli", "scf.for", "func.func", "gpu.launch", "module"),
    *('"lego.apply"', '"lego.inv"', '"lego.load"', '"lego.store"', '"lego.size"', '"lego.alloc"'),
    *('"lego.mask"', '"lego.check"', '"lego.table"', '"lego.pick"', "gpu.barrier", "return"),
    *("layout", "slice", "shared", "dim", "bijective", "lego.sizes", "lego.reference", "values"),
    *("index", "f32", "f16", "i1", "i64", "vector<4xf32>", "memref<?xf32>", "memref<4x4xf16>"),
    *("%0", "%1", "%a", "%c0", "%c1", "#A", "#B", "array<i64: 0>", "array<i64: 1, 0>", '""'),
    *("(", ")", "{", "}", "[", "]", "<", ">", ":", ",", "=", "->", "x", "?", "Row", "GenP", "N"),
)

_MODULE = """\
#A = #lego.layout<"{a}">
#B = #lego.layout<"{b}">
#C = #lego.layout<"{c}">
#rows_A = #lego.layout<"OrderBy(Row({dims_a}))">
#rows_B = #lego.layout<"OrderBy(Row({dims_b}))">
#rows_C = #lego.layout<"OrderBy(Row({dims_c}))">
module {{
{functions}
  func.func @move(%a: memref<{size}x{dtype}> {{lego.layout = #A}},
                  %b: memref<{size}x{dtype}> {{lego.layout = #B}}) {{
    %c1 = arith.constant 1 : index
    %grid = arith.constant {grid} : index
    %block = arith.constant {block} : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %grid, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %block, %sy = %c1, %sz = %c1) {{
      %start = arith.muli %bx, %block : index
      %t = arith.addi %start, %tx : index
      {indices_c} = "lego.inv"(%t) {{layout = #C}} : (index) -> ({types_c})
      %f = "lego.apply"({indices_c}) {{layout = #rows_C}} : ({types_c}) -> index
      {indices_a} = "lego.inv"(%f) {{layout = #rows_A}} : (index) -> ({types_a})
      {indices_b} = "lego.inv"(%t) {{layout = #rows_B}} : (index) -> ({types_b})
      %v = "lego.load"(%a, {indices_a}) {{layout = #A}}
          : (memref<{size}x{dtype}>, {types_a}) -> {dtype}
      "lego.store"(%v, %b, {indices_b}) {{layout = #B}}
          : ({dtype}, memref<{size}x{dtype}>, {types_b}) -> ()
      gpu.terminator
    }}
    return
  }}
}}
"""


@dataclass
class Move:
    """A generated module: element `C⁻¹(t)` of A becomes element t of B."""

    a: L
    b: L
    c: L
    size: int
    block: int
    dtype: str

    @cached_property
    def text(self) -> str:
        """The module."""
        values: dict[str, Any] = {}
        for name, description in (("a", self.a), ("b", self.b), ("c", self.c)):
            layout = built(description)
            values[name] = layout.text
            values[f"dims_{name}"] = ", ".join(map(str, layout.dims))
            values[f"indices_{name}"] = ", ".join(f"%i{name}{k}" for k in range(layout.rank))
            values[f"types_{name}"] = ", ".join(["index"] * layout.rank)
        grid = self.size // self.block
        named = "@" in values["a"] + values["b"] + values["c"]
        return _MODULE.format(
            **values,
            size=self.size,
            grid=grid,
            block=self.block,
            dtype=self.dtype,
            functions=FUNCTIONS_MLIR if named else "",
        )

    def expected(self, source: Any) -> Any:
        """The buffer of B, by the enumerations of the layouts."""
        result = np.empty_like(source)
        through = np.argsort(table_of(self.c))
        result[table_of(self.b)] = source[table_of(self.a)[through]]
        return result


@dataclass(frozen=True)
class Damaged:
    """A text that was a module, and where it is from."""

    text: str
    origin: str


def drawn_move(random: Random) -> Move:
    """Return a module whose three layouts have equally many elements."""
    factors = drawn.pool(random, MOST_ELEMENTS)
    size = prod(factors)
    a, b, c = (drawn.layout(random, factors) for _ in range(3))
    block = random.choice([n for n in range(1, min(size, 256) + 1) if size % n == 0][-3:])
    return Move(a, b, c, size, block, random.choice(("f32", "f16", "f64", "i8", "i32", "bf16")))


class Modules:
    """See the module."""

    name = "modules"

    def __init__(self) -> None:
        self.corpus: list[tuple[str, str]] = []

    def prepare(self) -> None:
        """Read the repository's modules, and compile once."""
        found = [*TEST.rglob("*.mlir"), *TEST.parent.glob("docs/examples/*.mlir")]
        for path in sorted(found):
            text = path.read_text(errors="replace")
            if len(text) <= LONGEST:
                self.corpus.append((path.relative_to(TEST.parent).as_posix(), text))
        self.check(drawn_move(Random(0)))

    def make(self, random: Random) -> Move | Damaged:
        """Return a right module, or a damaged one."""
        choice = random.random()
        if choice < 0.2:
            return drawn_move(random)
        origin, text = "generated", ""
        if choice < 0.5:
            text = drawn_move(random).text
        else:
            origin, text = random.choice(self.corpus)
        if random.random() < 0.15:
            data = mutated_bytes(random, text.encode())
            return Damaged(data.decode("utf-8", errors="replace"), origin)
        return Damaged(mutated_text(random, text, WORDS, 2), origin)

    def show(self, made: Move | Damaged) -> str:
        return made.text

    def smaller(self, made: Move | Damaged) -> Iterable[Move | Damaged]:
        if isinstance(made, Damaged):
            for text in smaller_texts(made.text):
                yield Damaged(text, made.origin)

    def check(self, made: Move | Damaged) -> str:
        if isinstance(made, Damaged):
            return check_damaged(made)
        try:
            check_move(made)
        except LegoError as e:
            raise WrongError(f"a right module is refused: {e}") from e
        return "right"


def check_move(made: Move) -> None:
    """Compile, run in the simulator, and compare every element."""
    artifact = Compilation(Source("move.mlir", made.text)).artifact(assemble=False)
    dtype = dtypes.numpy_dtype(made.dtype)
    source = (np.arange(made.size) % 251).astype(np.uint8)
    a = np.resize(source, made.size * dtype.itemsize).view(dtype)
    b = np.zeros_like(a)
    launch(artifact, a, b, device="sim")
    if b.tobytes() != made.expected(a).tobytes():
        raise WrongError("the result differs from the enumeration")


def check_damaged(made: Damaged) -> str:
    """Compile a module as `legoc` does; run it if it is small."""
    compilation = Compilation(Source("damaged.mlir", made.text), Options(isolate=True))
    if "gpu." not in made.text and "lego.reference" not in made.text:
        compilation.text("index")
        return "lowered"
    artifact: Artifact = compilation.artifact(assemble=False)
    if made.origin == "generated":
        run(artifact, device="sim", functions=compilation.functions)
        return "ran"
    return "compiled"


FUZZER = Modules()
