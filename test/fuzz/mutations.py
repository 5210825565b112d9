"""Damage done to text, bytes and JSON, and smaller parts of them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

_TOKEN = re.compile(r'\s+|[A-Za-z_$@%#!^][\w.$]*|-?\d+(?:\.\d+)?|"|->|\S')

NUMBERS = ("0", "1", "-1", "2", "3", "7", "8", "16", "31", "32", "33", "64", "127", "1023", "65536")
EXTREME = ("2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807")
BEYOND = ("9223372036854775808", "18446744073709551616", "1" + "0" * 40, "1e308", "0.5", "00")
STRANGE = ("\0", "\t", "\n", "\r", "\\", '"', "é", "∞", "\u202e", "\ufeff", "\x7f", "💥", "٣", "²")


def tokens(text: str) -> list[str]:
    """Cut a text into tokens; joined they are the text again."""
    return _TOKEN.findall(text)


def number(random: Random) -> str:
    """Return a number that is likely to be at some border."""
    return random.choice(random.choice((NUMBERS, NUMBERS, NUMBERS, EXTREME, BEYOND)))


def mutated_text(random: Random, text: str, words: Sequence[str], most: int = 4) -> str:
    """Change some tokens or characters of a text.

    Args:
        random: decides.
        text: what is damaged.
        words: tokens that mean something in such a text.
        most: how many changes at most.
    """
    parts = tokens(text)
    for _ in range(random.choice((1, 1, 1, 2, most))):
        if random.random() < 0.12:
            joined = "".join(parts)
            at = random.randrange(len(joined) + 1)
            cut = random.randint(0, 2)
            put = random.choice([random.choice(STRANGE), "", chr(random.randrange(32, 127))])
            parts = tokens(joined[:at] + put + joined[at + cut :])
        else:
            _mutate_tokens(random, parts, words)
    return "".join(parts)


def _mutate_tokens(random: Random, parts: list[str], words: Sequence[str]) -> None:
    """Replace, drop, double, move or insert a token, in place; numbers are changed more often."""
    positions = [k for k, part in enumerate(parts) if not part.isspace()]
    if not positions:
        parts.append(random.choice(words))
        return
    numbers = [k for k in positions if parts[k][-1].isdigit() and parts[k].lstrip("-")[0].isdigit()]
    if numbers and random.random() < 0.4:
        parts[random.choice(numbers)] = number(random)
        return
    at, other = random.choice(positions), random.choice(positions)
    if random.random() < 0.25:  # everywhere: what agreed still agrees
        old, new = parts[at], number(random) if at in numbers else parts[other]
        parts[:] = [new if part == old else part for part in parts]
        return
    match random.randrange(6):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, parts[other])
        case 2:
            parts[at], parts[other] = parts[other], parts[at]
        case 3:
            parts[at] = parts[other]
        case 4:
            parts[at] = random.choice(words)
        case 5:
            parts.insert(at, random.choice(words))


def mutated_bytes(random: Random, data: bytes) -> bytes:
    """Flip, drop, double, zero or cut some bytes."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 6)):
        if not changed:
            return bytes(changed)
        at = random.randrange(len(changed))
        size = random.choice((1, 1, 1, 2, 4, 8, 100))
        match random.randrange(6):
            case 0:
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                changed[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del changed[at : at + size]
            case 3:
                changed[at:at] = changed[at : at + size]
            case 4:
                changed[at : at + size] = bytes(len(changed[at : at + size]))
            case 5:
                if random.random() < 0.2:
                    del changed[at:]
    return bytes(changed)


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 1023, 1 << 31, 1 << 63, -(1 << 63), 1 << 64, 10**30),
    *(0.5, 1e308, float("inf"), float("nan"), "", "x", "../../x", "/x", "\0", "\x1b[2J", "é"),
    *([], [1], [1, 1, 1], [-1], [[]], ["x"], {}, {"x": 1}, "f16", "f32", "i1", "read", "none"),
)


def mutated_json(random: Random, value: Any) -> Any:
    """Change some items of a JSON value; the value itself stays."""
    value = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        value = _mutate_json(random, value)
    return value


def _mutate_json(random: Random, value: Any) -> Any:
    inside: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        positions = node.items() if isinstance(node, dict) else enumerate(node)
        for key, child in positions:
            inside.append((node, key))
            if isinstance(child, dict | list):
                visit(child)

    if isinstance(value, dict | list):
        visit(value)
    if not inside or random.random() < 0.01:
        return copy.deepcopy(random.choice(ODD_VALUES))
    node, key = random.choice(inside)
    other, other_key = random.choice(inside)
    match random.randrange(8):
        case 0:
            del node[key]
        case 1 if isinstance(node, list):
            node.insert(key, copy.deepcopy(other[other_key]))
        case 1:
            node[random.choice(("extra", "box", "maps", "value", "argument"))] = node[key]
        case 2:
            node[key] = copy.deepcopy(other[other_key])
        case 3 if isinstance(node[key], int):
            node[key] += random.choice((-1, 1, 31, -32))
        case 4 if isinstance(node[key], str):
            node[key] = mutated_text(random, node[key], ("Row", "f64", "0"), 2)
        case _:
            node[key] = copy.deepcopy(random.choice(ODD_VALUES))
    return value


def smaller_texts(text: str) -> Iterator[str]:
    """Return a text without some of its lines, then some of its tokens: large cuts first."""
    for parts in (text.splitlines(keepends=True), tokens(text)):
        size = len(parts) // 2
        while size:
            for start in range(0, len(parts), size):
                yield "".join(parts[:start] + parts[start + size :])
            size //= 2
