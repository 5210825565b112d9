"""The documents' pictures are those that are drawn now, and every layout there has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doc_pictures import FOLDER, ROOT, draw, layouts_in, pictures

README, LANGUAGE = (ROOT / "README.md").read_text(), (ROOT / "docs" / "language.md").read_text()
DOCUMENTS = (README, LANGUAGE, (ROOT / "docs" / "pictures.md").read_text())
MOST_BYTES = 64_000


def drawn() -> set[str]:
    """Return the texts of all layouts that have pictures, without spaces."""
    words = (word for arguments in pictures().values() for word in arguments)
    return {re.sub(r"\s", "", word) for word in words}


@pytest.mark.parametrize("name", pictures())
def test_a_picture_is_the_one_that_legoc_draws(name: str, tmp_path: Path) -> None:
    draw(name, tmp_path / "now.svg")
    now = (tmp_path / "now.svg").read_text()
    assert (FOLDER / f"{name}.svg").read_text() == now, "`poe pictures` draws it anew"
    assert len(now.encode()) < MOST_BYTES


def test_there_are_no_other_pictures() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(pictures())


@pytest.mark.parametrize("document", [README, LANGUAGE], ids=["README.md", "docs/language.md"])
def test_every_layout_has_a_picture(document: str) -> None:
    layouts = layouts_in(document)
    assert len(layouts) > 5
    assert [text for text in layouts if text not in drawn()] == []


def test_every_named_permutation_has_a_picture() -> None:
    table = LANGUAGE.partition("The named permutations:")[2].partition("Parameters are")[0]
    names = re.findall(r"^\| `(\w+)", table, re.M)
    assert len(names) == 9
    shown = " ".join(drawn())
    assert [name for name in names if f"],{name}" not in shown] == []


def test_every_picture_is_shown() -> None:
    shown = {name for text in DOCUMENTS for name in re.findall(r"pictures/([\w-]+)\.svg", text)}
    assert shown == set(pictures())
