"""The parser of instruction operands. Source: PTX ISA 6 (operands), 4.5 (constants)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NoReturn

from lego_mlir.sim.ptx.parsing.lexer import Token
from lego_mlir.sim.ptx.syntax import (
    Address,
    Float,
    Group,
    Integer,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    TensorAddress,
    Unparsed,
    Vector,
)

_ENDS = (",", ";")
"""What may stand behind an operand of an instruction."""


class _Unknown(Exception):
    """An operand form outside the grammar below."""


def integer_of(operand: Operand) -> int | None:
    """Return the value of an integer constant; None for anything else."""
    return operand.value if isinstance(operand, Integer) else None


class OperandParser:
    """A cursor over tokens, and the grammar of operands."""

    def __init__(self, stream: list[Token]) -> None:
        self.stream = stream
        self.at = 0
        self.register_named: Callable[[str], str | None] = lambda name: None
        self.symbol_named: Callable[[str], str] = lambda name: name

    # --- the cursor ---

    @property
    def token(self) -> Token:
        return self.stream[self.at]

    @property
    def before(self) -> Token:
        return self.stream[self.at - 1]

    @property
    def following(self) -> Token:
        return self.stream[min(self.at + 1, len(self.stream) - 1)]

    def take(self) -> Token:
        token = self.stream[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, text: str) -> bool:
        token = self.stream[self.at]
        if token.text != text or token.kind != "punct":
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            here = repr(self.token.text) if self.token.kind != "end" else "the end of the text"
            self.fail(f"here stands {here} where {text!r} should")

    def name(self, what: str) -> str:
        if self.token.kind != "name":
            self.fail(f"here stands {self.token.text!r} where {what} should")
        return self.take().text

    def number(self) -> int:
        if self.token.kind != "int":
            self.fail(f"here stands {self.token.text!r} where an integer should")
        return _integer(self.take().text)

    def fail(self, message: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        raise NotImplementedError

    # --- operands ---

    def operands(self) -> tuple[Operand, ...]:
        """Parse the operands up to the semicolon, which is not consumed."""
        found: list[Operand] = []
        while self.token.text != ";":
            found.append(self.operand())
            if not self.accept(","):
                break
        return tuple(found)

    def operand(self) -> Operand:
        """Parse one operand; `Unparsed` if its form is unknown."""
        start = self.at
        first = self.stream[start]
        if first.kind == "name" and self.stream[start + 1].text in _ENDS:  # most are registers
            register = self.register_named(first.text)
            if register is not None and first.text != "WARP_SZ":
                self.at = start + 1
                return Register(register, first.column)
        try:
            operand = self._operand()
            if self.token.text not in (",", ";", "}"):
                if self.token.line > self.before.line:
                    self.expect(";")
                raise _Unknown
            return operand
        except _Unknown:
            self.at = start
            return self._unparsed()

    def _unparsed(self) -> Unparsed:
        first = self.token
        words: list[str] = []
        depth = 0
        while self.token.kind != "end":
            if depth == 0 and self.token.text in (",", ";"):
                break
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(self.token.text, 0)
            if depth < 0:
                break
            words.append(self.take().text)
        return Unparsed(" ".join(words), first.column)

    def _operand(self) -> Operand:
        column = self.token.column
        if self.accept("["):
            return self._address(column)
        if self.accept("{"):
            return self._vector(column)
        if self.accept("("):
            return self._group(column)
        return self._element()

    def _vector(self, column: int) -> Vector:
        elements = [self._element()]
        while self.accept(","):
            elements.append(self._element())
        if not self.accept("}"):
            raise _Unknown
        return Vector(tuple(elements), column)

    def _group(self, column: int) -> Group:
        elements: list[Operand] = []
        while not self.accept(")"):
            if elements and not self.accept(","):
                raise _Unknown
            elements.append(self._element())
        return Group(tuple(elements), column)

    def _element(self) -> Operand:
        """Parse an operand that contains no others."""
        column = self.token.column
        if self.accept("!"):
            return Negated(self._register(), column)
        first: Operand = Sink(column) if self.accept("_") else self._plain()
        if isinstance(first, Register | Sink) and self.accept("|"):
            second = Sink(self.before.column) if self.accept("_") else self._register()
            return Pair(first, second, column)
        return first

    def _address(self, column: int) -> Address | TensorAddress:
        base = self._plain()
        offset = 0
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name, 0, base.column), base.offset
        elif isinstance(base, Register) and self.token.text in ("+", "-"):
            offset = self._offset()
        if not isinstance(base, Register | Symbol | Integer):
            raise _Unknown
        address = Address(base, offset, column)
        if self.accept("]"):
            return address
        if not self.accept(","):
            raise _Unknown
        opening = self.token.column
        if not self.accept("{"):
            raise _Unknown
        coordinates = self._vector(opening)
        if not self.accept("]"):
            raise _Unknown
        return TensorAddress(address, coordinates, column)

    def _register(self) -> Register:
        operand = self._plain()
        if not isinstance(operand, Register):
            raise _Unknown
        return operand

    def _plain(self) -> Operand:
        """Parse a register, symbol or constant."""
        token = self.token
        if token.kind == "name":
            self.take()
            if token.text == "WARP_SZ":
                return Integer(32, token.column)
            register = self.register_named(token.text)
            if register is not None:
                return Register(register, token.column)
            offset = self._offset() if self.token.text in ("+", "-") else 0
            return Symbol(self.symbol_named(token.text), offset, token.column)
        if token.kind == "float":
            self.take()
            return _float(token.text, token.column)
        return Integer(self._constant(), token.column)

    def _offset(self) -> int:
        """Parse `+8`, `-8` or `+-8` after a base."""
        sign = -1 if self.take().text == "-" else 1
        return sign * self._constant()

    def _constant(self) -> int:
        signs = []
        while self.token.text in ("-", "~"):
            signs.append(self.take().text)
        if self.token.kind != "int":
            raise _Unknown
        value = _integer(self.take().text)
        for sign in reversed(signs):
            value = -value if sign == "-" else ~value
        return value


def _integer(text: str) -> int:
    digits = text.rstrip("U")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    if digits[:2] in ("0b", "0B"):
        return int(digits, 2)
    return int(digits, 8) if len(digits) > 1 and digits[0] == "0" else int(digits)


def _float(text: str, column: int) -> Float:
    prefix = text[:2].lower()
    if prefix == "0f":
        return Float(int(text[2:], 16), 32, column)
    if prefix == "0d":
        return Float(int(text[2:], 16), 64, column)
    return Float(int.from_bytes(struct.pack("<d", float(text)), "little"), 64, column)
