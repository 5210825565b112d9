"""Colors that readers with color-vision deficiencies can tell apart, on light and dark pages.

No fact is told by color alone: cells also have text. Every color is light enough for dark text, or
`ink` says which text it takes.

Source: Paul Tol, "Colour Schemes", SRON technical note 3.2 (2021), the qualitative scheme "light";
Nuñez, Anderton and Renslow, "Optimizing colormaps with consideration for color vision deficiency"
(2018), cividis, by five of its points.
"""

from __future__ import annotations

CATEGORIES = (
    "#77aadd",
    "#eedd88",
    "#ee8866",
    "#bbcc33",
    "#ffaabb",
    "#99ddff",
    "#aaaa00",
    "#44bb99",
)
"""The fills of things that have no order, such as tiles; neighbors take neighboring colors."""

ABSENT = "#c8c8c8"
"""The fill of a cell without an element."""

CONFLICT = "#c1272d"
"""The outline of elements whose banks serve several words; its cells also say how many."""

DARK_INK, LIGHT_INK = "#1b1f24", "#ffffff"

_CIVIDIS = ((0, 32, 77), (65, 77, 107), (124, 123, 120), (188, 175, 111), (255, 234, 70))
_LIGHT = ((255, 243, 196), (190, 217, 200), (119, 170, 221))


def category(n: int) -> str:
    """Return the fill of thing number `n`."""
    return CATEGORIES[n % len(CATEGORIES)]


def bank_color(bank: int, banks: int) -> str:
    """Return the fill of a bank: dark for the first, light for the last."""
    return _between(_CIVIDIS, bank / max(banks - 1, 1))


def progress_color(done: float) -> str:
    """Return the fill of a position in an order: `done` is from 0, the first, to 1, the last."""
    steps = 16  # equal fills are joined to one path of an SVG file
    return _between(_LIGHT, round(done * steps) / steps)


def ink(fill: str) -> str:
    """Return the color of text on a fill: the one that contrasts more."""
    red, green, blue = channels(fill)
    luminance = 0.2126 * _linear(red) + 0.7152 * _linear(green) + 0.0722 * _linear(blue)
    # The contrasts (WCAG 2.1) with black and with white are equal at this luminance.
    return DARK_INK if luminance > 0.18 else LIGHT_INK


def channels(color: str) -> tuple[int, int, int]:
    """Return red, green and blue of `#rrggbb`, each from 0 to 255."""
    red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return red, green, blue


def _linear(channel: int) -> float:
    c = channel / 255
    return c / 12.92 if c <= 0.04045 else float(((c + 0.055) / 1.055) ** 2.4)


def _between(anchors: tuple[tuple[int, int, int], ...], position: float) -> str:
    """Return the color at `position`, from 0 to 1, on the way along the anchors."""
    place = min(max(position, 0.0), 1.0) * (len(anchors) - 1)
    first = min(int(place), len(anchors) - 2)
    part = place - first
    mixed = (
        round(a + (b - a) * part) for a, b in zip(anchors[first], anchors[first + 1], strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
