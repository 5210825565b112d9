"""The pictures of the documents: which there are, and drawing them.

`docs/pictures/pictures.toml` says of each picture what `legoc` draws. As a program this rewrites
the files; the tests compare them with what is drawn now, and the layouts in the documents with
those that have a picture.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from lego_mlir import cli

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
_FIRST = re.compile(r"\b(?:OrderBy|TileOrderBy|GroupBy|TileBy)\(")
_NEXT = re.compile(r"\.(?:OrderBy|TileOrderBy|GroupBy|TileBy|Window)\(")


def pictures() -> dict[str, list[str]]:
    """Return the arguments of legoc for each picture, without `--draw` and `-o`."""
    table = tomllib.loads((FOLDER / "pictures.toml").read_text())
    return {name: shlex.split(arguments) for name, arguments in table.items()}


def draw(name: str, path: Path) -> None:
    """Draw a picture to a file, as legoc does."""
    assert cli.main([*pictures()[name], "--draw", "-o", str(path)]) == 0, name


def layouts_in(document: str) -> list[str]:
    """Return the texts of all layouts in a document, in the notation: `/` for `//`, no spaces.

    What has `…` or `...` in it is a pattern, what begins with a dot is a part of a layout, and what
    has a quote in it has a bracket that is not closed, in the example of an error.
    """
    found: list[str] = []
    position = 0
    while match := _FIRST.search(document, position):
        end = _end_of_call(document, match.end())
        while part := _NEXT.match(document, end):
            end = _end_of_call(document, part.end())
        position = end
        text = re.sub(r"\s", "", document[match.start() : end]).replace("//", "/")
        is_part = document[match.start() - 1] == "."
        if not (is_part or "…" in text or "..." in text or '"' in text):
            found.append(text)
    return list(dict.fromkeys(found))


def _end_of_call(text: str, start: int) -> int:
    """Return where the bracket that was opened before `start` is closed."""
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return end


if __name__ == "__main__":
    for each in pictures():
        draw(each, FOLDER / f"{each}.svg")
    for old in FOLDER.glob("*.svg"):
        if old.stem not in pictures():
            old.unlink()
