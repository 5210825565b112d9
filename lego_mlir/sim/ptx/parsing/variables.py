"""The parser of variables and their initial values. Source: PTX ISA 5.4."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

from lego_mlir.sim.ptx.parsing.lexer import Token
from lego_mlir.sim.ptx.parsing.operands import OperandParser, integer_of
from lego_mlir.sim.ptx.syntax import Float, Pointer, Symbol, Variable
from lego_mlir.sim.ptx.types import TYPES, Type

SPACES = {".global", ".const", ".shared", ".local"}

_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


class VariableParser(OperandParser):
    """The grammar of variables."""

    def extent(self) -> tuple[int | None, bool]:
        """Parse `[4][8]`; return the elements (None for `[]`), and whether there is any."""
        count: int | None = 1
        is_array = False
        while self.accept("["):
            is_array = True
            if self.accept("]"):
                count = None
            else:
                factor = self.number()
                count = None if count is None else count * factor
                if count is not None and count >= 1 << 63:
                    self.fail("an array has more elements than 64 bits count", self.before)
                self.expect("]")
        return count, is_array

    def variable(self) -> Variable:
        space = self.take()
        align, kind, vector = 0, None, 1
        while self.token.kind == "directive":
            word = self.take()
            if word.text == ".align":
                align = self.number()
            elif word.text in (".v2", ".v4"):
                vector = int(word.text[2])
            elif word.text[1:] in TYPES:
                kind = TYPES[word.text[1:]]
            else:
                self.fail(f"the variable attribute {word.text} is not modelled", word)
        if kind is None or kind.kind == "pred":
            self.fail("a variable needs a type of known size")
        name = self.name("the variable's name")
        count, _ = self.extent()
        initial, pointers = bytearray(), list[Pointer]()
        if self.accept("="):
            if space.text not in (".global", ".const"):
                self.fail("only .global and .const variables have an initial value", self.before)
            for value in self.initializer(kind):
                if isinstance(value, Pointer):
                    pointers.append(replace(value, at=len(initial)))
                    initial += bytes(value.size)
                else:
                    initial += value
        self.expect(";")
        size = None if count is None else count * kind.bytes * vector
        if size is None and initial:
            size = len(initial)
        if size is not None and len(initial) > size:
            self.fail(f"{name} has {size} bytes and an initial value of {len(initial)}", space)
        return Variable(
            name,
            space.text[1:],
            size,
            align or kind.bytes * vector,
            space.line,
            bytes(initial),
            tuple(pointers),
        )

    def initializer(self, kind: Type) -> Iterator[bytes | Pointer]:
        """Parse the values of an initial value, in any braces; return the bytes of each."""
        depth = 0
        while True:
            while self.accept("{"):
                depth += 1
            yield self.initial_number(kind)
            while depth and self.accept("}"):
                depth -= 1
            if depth == 0:
                return
            self.expect(",")

    def initial_number(self, kind: Type) -> bytes | Pointer:
        token = self.token
        if token.text == "generic" and self.following.text == "(":
            self.take()
            self.take()
            symbol = Symbol(self.name("a variable"))
            self.expect(")")
            if self.token.text in ("+", "-"):
                symbol = replace(symbol, offset=self._offset())
            return self.pointer(kind, symbol, token, generic=True)
        match self.operand():
            case Symbol() as symbol:
                return self.pointer(kind, symbol, token, generic=False)
            case Float(bits, width) if kind.is_float and width == 32 and kind.bits == 32:
                return bits.to_bytes(4, "little")
            case Float(bits, 64) if kind.is_float:
                return self.rounded(bits, kind, token)
            case operand:
                number = integer_of(operand)
                if number is None or kind.is_float:
                    self.fail(f"the initial value {operand} is not modelled (PTX ISA 5.4.4)", token)
                return (number % (1 << kind.bits)).to_bytes(kind.bytes, "little")

    def pointer(self, kind: Type, symbol: Symbol, token: Token, *, generic: bool) -> Pointer:
        if kind.bits not in (32, 64) or kind.is_float:
            self.fail(f"an address as the initial value of {kind} (PTX ISA 5.4.4)", token)
        return Pointer(0, kind.bytes, symbol, generic)

    def rounded(self, bits: int, kind: Type, token: Token) -> bytes:
        """Return the bytes of a 64-bit float converted to another type."""
        (value,) = struct.unpack("<d", bits.to_bytes(8, "little"))
        if kind.name not in _FORMATS:
            self.fail(f"initial values of type {kind.name} are not modelled (PTX ISA 5.4.4)", token)
        try:
            return struct.pack(_FORMATS[kind.name], value)
        except OverflowError:
            self.fail(f"the initial value {value} does not fit {kind.name}", token)
