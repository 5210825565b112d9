"""Templates and printed layouts: damaged ones, and random layouts printed in NumPy.

A damaged template or text is refused, or it is printed: nothing but a worded error comes of it. The
functions printed of a random layout compute its enumeration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from random_layouts import L, built, every_index, table_of

from fuzz import drawn
from fuzz.layouts import MOST_ELEMENTS, SEEDS, WORDS
from fuzz.mutations import mutated_text, smaller_texts
from fuzz.runner import WrongError
from lego_mlir.printers import to_numpy
from lego_mlir.printers.command import printed_layout
from lego_mlir.printers.templates import LANGUAGES, language_of, render

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.j2"))
VALUES: dict[str, int | str] = {
    "BM": 16,
    "BN": 16,
    "BK": 16,
    "GM": 2,
    "N": 64,
    "T": 16,
    "WIDTH": 64,
    "R": 1,
    "A": "row",
    "B": 16,
    "SHAPE": "star",
    "BUFF": "row",
    "TYPE": "float16",
    "SHARED": "yes",
}
TEMPLATE_WORDS = (
    *WORDS,
    *("{{", "}}", "{%", "%}", "set", "for", "in", "if", "else", "endif", "endfor", "range(9)"),
    *("loop", "|", "~", "'x'", "var('i')", "size('N')", "header", "triton", "cute", "self", "None"),
    *(".text", ".inv", ".__class__", "join", "-1", "10**9", "99999999999999999999"),
)


@dataclass(frozen=True)
class Damaged:
    """A text for a template, or for a layout, and the language that it is printed in."""

    text: str
    language: str
    is_template: bool


class Templates:
    """See the module."""

    name = "templates"

    def prepare(self) -> None:
        """Import what is imported lazily."""
        self.check(drawn.layout(Random(0), [2, 3, 4]))
        self.check(Damaged("{{ 1 }}", "c", True))

    def make(self, random: Random) -> Damaged | L:
        """Return a damaged text, or the description of a layout."""
        choice = random.random()
        if choice < 0.5:
            file = random.choice(EXAMPLES)
            text = mutated_text(random, file.read_text(), TEMPLATE_WORDS)
            return Damaged(text, language_of(file.name), True)
        if choice < 0.75:
            text = mutated_text(random, random.choice(SEEDS), WORDS)
            return Damaged(text, random.choice([*LANGUAGES, "cute"]), False)
        return drawn.layout(random, drawn.pool(random, MOST_ELEMENTS))

    def show(self, made: Damaged | L) -> str:
        return f"{made.language}:\n{made.text}" if isinstance(made, Damaged) else built(made).text

    def smaller(self, made: Damaged | L) -> Iterable[Damaged | L]:
        if isinstance(made, L):
            return ()
        return (Damaged(t, made.language, made.is_template) for t in smaller_texts(made.text))

    def check(self, made: Damaged | L) -> str:
        if isinstance(made, L):
            _check_numpy(made)
            return "right"
        if made.is_template:
            render(made.text, VALUES, made.language)
            return "filled"
        printed_layout(made.text, made.language, "A", {})
        return "printed"


def _check_numpy(description: L) -> None:
    layout, truth = built(description), table_of(description)
    names: dict[str, Any] = {}
    exec(to_numpy(layout, "A"), names)  # noqa: S102  # our own text
    index = every_index(layout.dims)
    if (np.broadcast_to(names["A_apply"](*index), truth.shape) != truth).any():
        raise WrongError("the printed apply differs from the enumeration")
    for back, i in zip(names["A_inv"](truth), index, strict=True):
        if (np.broadcast_to(back, i.shape) != i).any():
            raise WrongError("the printed inv does not undo apply")


FUZZER = Templates()
