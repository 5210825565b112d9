"""docs/architecture.md names files that exist, and every room."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "lego_mlir"
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_every_named_file_exists() -> None:
    """A path is relative to the package, to the checkout, or to the room of its paragraph."""
    missing: list[str] = []
    for paragraph in PAGE.split("\n\n"):
        room = re.match(r"\*\*`(\w+)/`\*\*", paragraph)
        folders = [PACKAGE, ROOT] + ([PACKAGE / room[1]] if room else [])
        named = re.findall(r"`([\w/]+(?:\.(?:py|mlir|pipeline)|/))`", paragraph)
        missing += [p for p in named if not any((folder / p).exists() for folder in folders)]
    assert missing == []


def test_every_room_has_a_paragraph() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(re.findall(r"^\*\*`(\w+)/`\*\*", PAGE, re.M)) == rooms
