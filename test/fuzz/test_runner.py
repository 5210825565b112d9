"""The runner finds every way to fail, names the input, and goes on behind it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from random import Random

import pytest

from fuzz.minimise import minimised
from fuzz.mutations import mutated_text, smaller_texts, tokens
from fuzz.runner import Limits, WrongError, run
from lego_mlir.diagnostics import LegoError

LIMITS = Limits(seconds=2.0, megabytes=256)


class Planted:
    """Inputs are their numbers; some of them fail."""

    name = "planted"

    def prepare(self) -> None:
        """Do nothing."""

    def make(self, random: Random) -> int:
        return random.randrange(8)

    def show(self, made: int) -> str:
        return str(made)

    def smaller(self, made: int) -> Iterable[int]:
        return ()

    def check(self, made: int) -> str:
        match made:
            case 0:
                raise LegoError("refused")
            case 1:
                raise WrongError("2 + 2 is 5")
            case 2:
                raise KeyError("x")
            case 3:
                os.kill(os.getpid(), signal.SIGKILL)  # abort would show a traceback here
            case 4:
                time.sleep(60)
            case 5:
                bytearray(1 << 30)
            case 6:
                os._exit(0)
        return "right"


KINDS = {1: "wrong", 2: "exception", 3: "abort", 4: "hang", 5: "memory", 6: "abort"}


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_failure_is_found_and_the_rest_is_tried(jobs: int) -> None:
    fuzzer, seed, indices = Planted(), 10, range(5, 25)
    made = {k: fuzzer.make(Random(f"planted {seed} {k}")) for k in indices}
    assert set(made.values()) == set(range(8))
    report = run(fuzzer, indices, seed, jobs, LIMITS)
    found = [(f.index, f.kind) for f in report.failures]
    assert found == [(k, KINDS[n]) for k, n in made.items() if n in KINDS]
    values = list(made.values())
    assert report.outcomes["right"] == values.count(7)
    assert report.outcomes["refused"] == values.count(0)
    assert report.outcomes.total() == len(indices)


class Text:
    """One text, which fails if it has an x in brackets."""

    name = "text"

    def prepare(self) -> None:
        """Do nothing."""

    def make(self, random: Random) -> str:
        return ""

    def show(self, made: str) -> str:
        return made

    def smaller(self, made: str) -> Iterable[str]:
        return smaller_texts(made)

    def check(self, made: str) -> str:
        if "[" in made and "x" in made.partition("[")[2]:
            raise KeyError("x")
        return "right"


def test_failing_inputs_are_made_small() -> None:
    assert minimised(Text(), "a b\nc [d, x, e]\nf\ng h", "exception", LIMITS) == "[x"


def test_tokens_are_the_text() -> None:
    text = 'a.b = #lego.layout<"OrderBy(Row(-3, 4))"> -> %x:2 // é\n\t@f 1.5e3'
    assert "".join(tokens(text)) == text


def test_mutations_change_most_texts() -> None:
    text = "OrderBy(Row(3, 4)).GroupBy([12])"
    changed = [mutated_text(Random(k), text, ("Col", "0")) for k in range(100)]
    assert len(set(changed) - {text}) > 80
