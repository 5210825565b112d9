"""LLVM IR of host code: memory of C structs, arithmetic as the launch has it, checks that fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from lego_mlir.artifact.expressions import Leaf, folded

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()

FAILED = -1
"""What a function of TVM FFI returns where it has set an error (`TVMFFISafeCallType`)."""


def i32(n: int) -> Any:
    """Return a constant of 32 bits."""
    return ir.Constant(I32, n)


def i64(n: int) -> Any:
    """Return a constant of 64 bits."""
    return ir.Constant(I64, n)


class HostCode:
    """A function under construction.

    Every value that is checked, and every call, belongs to the end of what was built before.

    Args:
        fail: the address of a C function `void(int64 number, int64 value)` that sets the error.

    Attributes:
        module: of LLVM.
        builder: at the end of the function.
        messages: of the checks, by number.
    """

    def __init__(self, fail: int) -> None:
        self.module = ir.Module()
        kind = ir.FunctionType(I32, [POINTER, POINTER, I32, POINTER])
        self.function = ir.Function(self.module, kind, NAME)
        self.builder = ir.IRBuilder(self.function.append_basic_block())
        self.messages: list[str] = []
        self._fail = fail

    def check(self, holds: Any, message: str, value: Any = None) -> None:
        """Leave the function with an error where a condition does not hold.

        Args:
            holds: the condition.
            message: of the error; `{}` is the value.
            value: of 64 bits.
        """
        self.messages.append(message)
        number = i64(len(self.messages) - 1)
        with self.builder.if_then(self.builder.not_(holds), likely=False):
            self.call(self._fail, ir.VoidType(), (number, i64(0) if value is None else value))
            self.builder.ret(i32(FAILED))

    def call(self, address: int, result: Any, arguments: Sequence[Any]) -> Any:
        """Call the C function at an address of this process."""
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(
            self.builder.inttoptr(i64(address), kind.as_pointer()), list(arguments)
        )

    def field(self, struct: Any, offset: int, kind: Any) -> Any:
        """Load a field of a struct, at an offset in bytes."""
        return self.builder.load(self.at(struct, offset), typ=kind)

    def put(self, value: Any, struct: Any, offset: int = 0) -> None:
        """Store a field of a struct, at an offset in bytes."""
        self.builder.store(value, self.at(struct, offset))

    def at(self, struct: Any, offset: int) -> Any:
        """Return the address of a field."""
        return self.builder.gep(struct, [i64(offset)], source_etype=I8) if offset else struct

    def room(self, size: int) -> Any:
        """Return the address of memory on the stack, of a size in bytes."""
        with self.builder.goto_entry_block():
            made = self.builder.alloca(ir.ArrayType(I64, -(-size // 8)))
        made.type = POINTER  # of no element type, as LLVM has them today
        return made

    def kept(self, name: str, words: int) -> Any:
        """Return the address of zeroed memory that lasts from one call to the next.

        Args:
            name: of the memory.
            words: of 8 bytes; it begins at a multiple of 64 bytes, as a `CUtensorMap` must.
        """
        kind = ir.ArrayType(I64, words)
        made = ir.GlobalVariable(self.module, kind, name)
        made.initializer, made.linkage, made.align = ir.Constant(kind, None), "internal", 64
        made.type = POINTER
        return made

    def every(self, conditions: Sequence[Any]) -> Any:
        """Return whether all conditions hold."""
        found = ir.Constant(I1, 1)
        for condition in conditions:
            found = self.builder.and_(found, condition)
        return found

    def equal(self, a: Any, b: Any) -> Any:
        """Return whether two integers are equal."""
        return self.builder.icmp_signed("==", a, b)

    def expression(self, text: str, leaf: Callable[[Leaf], Any]) -> Any:
        """Return the value of an expression of the launch, of 64 bits.

        Args:
            text: the expression (`artifact.expressions`).
            leaf: returns what it asks of an argument.
        """
        return folded(
            text,
            lambda token: i64(token) if isinstance(token, int) else leaf(token),
            lambda a, sign, b: _OPERATORS[sign](self, a, b),
        )

    def _compared(self, sign: str, a: Any, b: Any) -> Any:
        return self.builder.zext(self.builder.icmp_signed(sign, a, b), I64)

    def _selected(self, sign: str, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed(sign, a, b), a, b)

    def _floor_division(self, a: Any, b: Any) -> Any:
        """Divide as Python does; by 0, of which another fact tells, it is the dividend."""
        b = self.builder.select(self.equal(b, i64(0)), i64(1), b)
        quotient = self.builder.sdiv(a, b)
        rest = self.builder.sub(a, self.builder.mul(quotient, b))
        signs_differ = self.builder.icmp_signed("<", self.builder.xor(a, b), i64(0))
        is_off = self.builder.and_(signs_differ, self.builder.not_(self.equal(rest, i64(0))))
        return self.builder.sub(quotient, self.builder.zext(is_off, I64))

    def _modulo(self, a: Any, b: Any) -> Any:
        return self.builder.sub(a, self.builder.mul(self._floor_division(a, b), b))


NAME = "launch"
"""Of the function."""

_OPERATORS: dict[str, Callable[[HostCode, Any, Any], Any]] = {
    "+": lambda code, a, b: code.builder.add(a, b),
    "-": lambda code, a, b: code.builder.sub(a, b),
    "*": lambda code, a, b: code.builder.mul(a, b),
    "//": HostCode._floor_division,
    "%": HostCode._modulo,
    "min": lambda code, a, b: code._selected("<", a, b),
    "max": lambda code, a, b: code._selected(">", a, b),
    "<": lambda code, a, b: code._compared("<", a, b),
    ">=": lambda code, a, b: code._compared(">=", a, b),
    "==": lambda code, a, b: code._compared("==", a, b),
}
