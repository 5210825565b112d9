"""The lexer of PTX. Source: PTX ISA 4.1–4.5 (source format, identifiers, constants)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from lego_mlir.diagnostics import LegoError, Location

_TOKEN = re.compile(
    r"""
    [ \t\r\f]*(?:
      (?P<newline> \n )
    | (?P<space>   //[^\n]* | (?<=[ \t\r\f])\Z )
    | (?P<comment> /\*.*?\*/ )
    | (?P<string>  "(?:[^"\\\n]|\\.)*" )
    | (?P<float>   0[fF][0-9a-fA-F]{8}\b | 0[dD][0-9a-fA-F]{16}\b
                 | \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ )
    | (?P<int>     0[xX][0-9a-fA-F]+U? | 0[bB][01]+U? | 0[0-7]*U?(?!\d) | [1-9]\d*U? )
    | (?P<name>    (?:%[A-Za-z0-9_$]+ | [A-Za-z$][A-Za-z0-9_$]* | _[A-Za-z0-9_$]+)
                   (?:(?:\.|::)[A-Za-z0-9_$]+)* )
    | (?P<directive> \.[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z0-9_]+)* )
    | (?P<punct>   [{}()\[\]<>,;:+\-*/=!~|@&^?%_] )
    )""",
    re.VERBOSE | re.DOTALL,
)

_MOST_DIGITS = 66
"""Characters of an integer: 64 bits in binary, and its prefix."""

_UNDEFINED = re.compile(r"\n|//[ \t]*implicit-def:[ \t]*(?P<name>%[A-Za-z0-9_$]+)")


class Token(NamedTuple):
    """A token of the text, with its 1-based line and column.

    Its kind is `name`, `directive`, `int`, `float`, `string`, `punct` or `end`.
    """

    kind: str
    text: str
    line: int
    column: int


def tokens(text: str, file: str) -> list[Token]:
    """Return all tokens of `text`, ending with one of kind `end`.

    An instruction with its modifiers (`ld.global.v4.b32`) is one name token.

    Raises:
        LegoError: a character that begins no token.
    """
    found: list[Token] = []
    line, start, end = 1, 0, 0
    for match in _TOKEN.finditer(text):
        if match.start() != end:
            break
        kind = match.lastgroup
        assert kind is not None
        at, end = match.span(kind)
        if kind == "newline":
            line, start = line + 1, end
        elif kind == "comment":
            breaks = text.count("\n", at, end)
            if breaks:
                line, start = line + breaks, text.rindex("\n", at, end) + 1
        elif kind != "space":
            if kind == "int" and end - at > _MOST_DIGITS:
                raise LegoError(
                    f"an integer of {end - at} digits does not fit 64 bits (PTX ISA 4.5.1)",
                    location=Location(file, line, at - start + 1),
                    source=text,
                )
            found.append(Token(kind, match[kind], line, at - start + 1))
    if end < len(text):
        end += len(text[end:]) - len(text[end:].lstrip(" \t\r\f"))
        raise LegoError(
            f"the character {text[end]!r} begins nothing that PTX knows",
            location=Location(file, line, end - start + 1),
            source=text,
        )
    found.append(Token("end", "", line, end - start + 1))
    return found


def undefined_marks(text: str) -> deque[tuple[int, str]]:
    """Return the comments `// implicit-def: %r5` as (line, register), in order.

    With such a comment LLVM says that a register has a value from here on, and that it does not
    matter which.
    """
    found: deque[tuple[int, str]] = deque()
    if "implicit-def:" in text:
        line = 1
        for match in _UNDEFINED.finditer(text):
            if match["name"]:
                found.append((line, match["name"]))
            else:
                line += 1
    return found


def labels_ahead(stream: list[Token], start: int) -> Iterator[Token]:
    """Return the labels from a position to the end of its scope, without inner scopes."""
    depth = 0
    for at in range(start, len(stream) - 1):
        token = stream[at]
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if depth < 0:
            return
        if depth == 0 and token.kind == "name" and stream[at + 1].text == ":":
            yield token


def unquoted(literal: str) -> str:
    """Return what a quoted string spells: LLVM writes bytes that do not print in octal."""
    escape = re.compile(rb"\\(?:([0-7]{1,3})|(.))", re.DOTALL)

    def byte(found: re.Match[bytes]) -> bytes:
        return bytes([int(found[1], 8) & 0xFF]) if found[1] else found[2]

    return escape.sub(byte, literal[1:-1].encode()).decode(errors="replace")
