"""Look for a small part of a failing input that still fails."""

from __future__ import annotations

from random import Random
from typing import Any

from fuzz.runner import Fuzzer, Limits, run


def minimised(fuzzer: Fuzzer, made: Any, kind: str, limits: Limits, tries: int = 150) -> Any:
    """Return a part of a failing input that fails in the same way."""

    found = True
    while found and tries > 0:
        found = False
        for part in fuzzer.smaller(made):
            tries -= 1
            report = run(_Given(fuzzer, part), range(1), limits=limits)
            if [f.kind for f in report.failures] == [kind]:
                made, found = part, True
                break
            if tries <= 0:
                break
    return made


class _Given:
    """A fuzzer that has one input."""

    def __init__(self, fuzzer: Fuzzer, made: Any) -> None:
        self.name, self.made, self.fuzzer = fuzzer.name, made, fuzzer
        self.prepare, self.check = fuzzer.prepare, fuzzer.check
        self.show, self.smaller = fuzzer.show, fuzzer.smaller

    def make(self, random: Random) -> Any:
        return self.made
