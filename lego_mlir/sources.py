"""The texts whose lines errors may show: what was compiled, and nothing else.

The locations in a PTX text, a module or a bundle name files. Who wrote them chose those names, so a
name never leads to a file: a line is shown only of a text that this run has compiled itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts by the names that locations give them; hashable.

    Attributes:
        texts: the names and the texts.
    """

    texts: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(texts: Mapping[str, str]) -> Sources:
        """Return the sources that a mapping from names to texts says."""
        return Sources(tuple(texts.items()))

    def text_of(self, name: str) -> str | None:
        """Return the text of a name, or `None` if there is none to show."""
        return dict(self.texts).get(name)


NO_SOURCES = Sources()
"""What is known of a PTX text that somebody else compiled."""
