"""The tokens of a layout's text, one after the other, with their positions for errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.limits import check_limit

_TOKEN = re.compile(r"([0-9]+)|([A-Za-z_]\w*)|(//|->|<=|[-+*/%()\[\]{},.:@|])|(\S)")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token.

    Attributes:
        text: the token.
        at: where it begins in the text, from 0.
    """

    text: str
    at: int


class Tokens:
    """The tokens of a text, and which of them is next.

    Args:
        text: what is read.
        file: what errors call it.

    Raises:
        LegoError: it has characters that no layout has, or a bracket without its other.
    """

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.tokens = list(self._tokenize())
        self.next = 0

    def _tokenize(self) -> Iterator[Token]:
        open_brackets: list[Token] = []
        for count, m in enumerate(_TOKEN.finditer(self.text), 1):
            token = Token(m[m.lastindex or 0], m.start(m.lastindex or 0))
            self.check("layout_tokens", count, "the layout has {} words and signs", token.at)
            if m.lastindex == 4:
                raise self.error(f"unexpected character '{token.text}'", token.at)
            if m.lastindex == 1:
                self.check("layout_digits", len(token.text), "a number has {} digits", token.at)
            if token.text in _CLOSING:
                open_brackets.append(token)
                depth = len(open_brackets)
                self.check("layout_nesting", depth, "{} brackets are open here", token.at)
            elif token.text in ")]}":
                if not open_brackets or _CLOSING[open_brackets[-1].text] != token.text:
                    raise self._mismatch(token, open_brackets)
                open_brackets.pop()
            yield token
        if open_brackets:
            opening = open_brackets[-1]
            raise self.error(
                f"'{opening.text}' is never closed",
                opening.at,
                hint=f"close it with '{_CLOSING[opening.text]}'",
            )

    def _mismatch(self, token: Token, open_brackets: list[Token]) -> LegoError:
        if not open_brackets:
            return self.error(f"'{token.text}' closes nothing", token.at)
        opening = open_brackets[-1]
        return self.error(
            f"'{token.text}' does not match the '{opening.text}' of column {opening.at + 1}",
            token.at,
            hint=f"that one is closed by '{_CLOSING[opening.text]}'",
        )

    def error(self, message: str, at: int, hint: str | None = None) -> LegoError:
        """Return an error at a position in the text."""
        return LegoError(
            message, location=Location(self.file, 1, at + 1), hint=hint, source=self.text
        )

    def check(self, limit: str, value: int, what: str, at: int) -> None:
        """Raise the error of a limit that a value exceeds at a position in the text."""
        try:
            check_limit(limit, value, what)
        except LegoError as e:
            raise e.at(Location(self.file, 1, at + 1), self.text) from None

    def peek(self) -> str:
        """Return the next token; empty at the end."""
        return self.tokens[self.next].text if self.next < len(self.tokens) else ""

    def at(self) -> int:
        """Return where the next token begins, or the text ends."""
        return self.tokens[self.next].at if self.next < len(self.tokens) else len(self.text)

    def take(self) -> Token:
        """Return the next token, which is then behind us."""
        token = Token(self.peek(), self.at())
        self.next += 1
        return token

    def expect(self, text: str, context: str) -> Token:
        """Return the next token, if it is this one; an error otherwise."""
        if self.peek() != text:
            found = f"'{self.peek()}'" if self.peek() else "the end"
            raise self.error(f"expected '{text}' {context}, found {found}", self.at())
        return self.take()

    def listed(self, item: Callable[[], Any], close: str) -> list[Any]:
        """Read items with commas between them, and the token that closes the list."""
        items = [item()]
        while self.peek() == ",":
            self.take()
            items.append(item())
        self.expect(close, "or ',' after an item")
        return items
