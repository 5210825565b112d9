"""Programs on tiles: random ones, compiled and compared with the interpreter, and damaged ones.

A random program must compile, each pass must leave what it computes, and the simulator must find
the interpreter's results. A damaged one is refused, or it compiles.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from fuzz.mutations import mutated_text, smaller_texts
from fuzz.runner import WrongError
from fuzz.tile_programs import drawn_program
from fuzz.tile_programs.open_sizes import inputs_of
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source
from lego_mlir.step_checks import check_each_step

WORDS = (
    *('"lego.load"', '"lego.store"', '"lego.reduce"', '"lego.scan"', '"lego.broadcast"'),
    *('"lego.reshape"', '"lego.transpose"', '"lego.restrict"', '"lego.iota"', '"lego.full"'),
    *('"lego.dot"', '"lego.take"', '"lego.join"', '"lego.split"', '"lego.item"', '"lego.convert"'),
    *('"lego.gather"', '"lego.reduce_with"', '"lego.scan_with"', '"lego.in_range"'),
    *("arith.addf", "arith.addi", "arith.select", "math.exp2", "math.sqrt", "tensor.splat"),
    *("tensor<8x16xf32>", "tensor<1x1xi32>", "tensor<?xf32>", "tensor<*xf32>", "tensor<f32>"),
    *("vector<4xf32>", "f32", "f16", "i1", "i8", "i32", "index", "1", "0", "2", "16"),
    *("kind", "dim", "order", "slice", "layout", "identity", "other", "reverse", "size"),
    *('"add"', '"max"', '"umin"', '"xor"', "array<i64: 0>", "array<i64: 1, 0>", "%c0", "%b", "%t"),
    *(
        "%v1",
        "%v2",
        "%v3",
        "#X0",
        "scf.yield",
        "gpu.yield",
        "scf.for",
        "scf.if",
        "{",
        "}",
        "(",
        ")",
    ),
)


_REFUSED = (
    "changes between the iterations",  # of invalid elements of what a loop carries
    "do not fit the registers",
)
"""Of errors about right programs."""


@dataclass(frozen=True)
class Program:
    """A program, and whether it is as it was drawn."""

    text: str
    is_right: bool


class Tiles:
    """See the module."""

    name = "tiles"

    def prepare(self) -> None:
        """Load what compiles."""
        Compilation(Source("tiles.mlir", "module {}")).text("placed")

    def make(self, random: Random) -> Program:
        """Return a right program, or a damaged one."""
        is_right = random.random() < 0.6
        text = drawn_program(random)
        return Program(text if is_right else mutated_text(random, text, WORDS, 2), is_right)

    def show(self, made: Program) -> str:
        return made.text

    def smaller(self, made: Program) -> Iterable[Program]:
        for text in smaller_texts(made.text):
            yield Program(text, made.is_right)

    def check(self, made: Program) -> str:
        compilation = Compilation(Source("tiles.mlir", made.text), Options(isolate=True))
        if not made.is_right:
            compilation.text("ptx")
            return "compiled"
        try:
            check_each_step(compilation, inputs_of(made.text), orders=("random",))
        except LegoError as e:
            if any(words in e.message for words in _REFUSED):
                return "refused"
            raise WrongError(f"a right program: {e}") from e
        return "right"


FUZZER: Any = Tiles()
