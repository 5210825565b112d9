"""Control characters from a file never reach the terminal."""

from __future__ import annotations

import pytest

from lego_mlir.diagnostics import LegoError, Location, printable

HOSTILE = [
    "\x1b]0;title\x07",
    "\x9b2J",
    "a\rb",
    "\u202egnp.exe",
    "\u2066",
    "\x7f",
    "\ud800",
    "\u2028",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_control_characters_are_escaped_in_every_field_of_an_error(text: str) -> None:
    error = LegoError(
        text, location=Location(f"f{text}", 2, 3), hint=text, source=f"one\n{text}two\n"
    )
    rendered = error.render()
    assert all(c.isprintable() or c in "\n×" for c in rendered), ascii(rendered)
    assert ascii(text)[1:-1] in rendered
    assert printable(text, "\n") == printable(text)


def test_printable_characters_stay() -> None:
    assert printable("größe × β → b") == "größe × β → b"
    assert printable("a\nb", "\n") == "a\nb"
    assert printable("a\nb") == r"a\nb"


def test_the_caret_stands_under_its_character_after_control_characters() -> None:
    error = LegoError("x", location=Location("f", 1, 4), source="\x1b[0mhere\n")
    _, row, caret = error.render().splitlines()
    assert row == r"  \x1b[0mhere"
    assert row[caret.index("^")] == "m"


def test_lines_end_where_mlir_ends_them() -> None:
    source = "a\x0bb\x0cc\x85d\u2028e\r\nsecond\r\n"
    rendered = LegoError("x", location=Location("f", 2, 1), source=source).render()
    assert rendered.splitlines()[1:] == ["  second", "  ^"]
