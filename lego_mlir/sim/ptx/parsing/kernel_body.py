"""The state of parsing a kernel's or function's body. Source: PTX ISA 5.4.6, 9.7.12.1."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

from lego_mlir.sim.ptx.syntax import Instruction, Variable
from lego_mlir.sim.ptx.types import Type


class Body:
    """The registers, variables, instructions and labels so far, and the open scopes.

    A register, label or variable declared between inner braces hides one of the same name outside.
    It is kept under a name of its own, with a prime, and from the third on with a number.

    Args:
        marks: see `lexer.undefined_marks`; those in the kernel and before it are taken out.
        line: of the brace that opens the kernel.
        prefix: before each name that is declared here: that of a function.
    """

    def __init__(self, marks: deque[tuple[int, str]], line: int, prefix: str = "") -> None:
        self.registers: dict[str, Type] = {}
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.undefined: dict[int, tuple[str, ...]] = {}
        self.tables: dict[str, tuple[str, ...]] = {}  # .branchtargets and .calltargets
        self.scopes: list[dict[str, str]] = []
        self.symbol_scopes: list[dict[str, str]] = []
        self.prefix = prefix
        self.taken: Counter[str] = Counter()  # declarations of each name, registers and labels
        self.marks = marks
        self.undefine(line)

    def open(self, labels: list[str]) -> None:
        """Open a scope with these labels; a branch may come before its label."""
        self.scopes.append({})
        self.symbol_scopes.append({name: self._unique(name) for name in labels})

    def close(self) -> None:
        self.scopes.pop()
        self.symbol_scopes.pop()

    def declare(self, name: str, kind: Type) -> str:
        """Declare a register in the innermost scope; return its unique name."""
        unique = self._unique(name)
        self.scopes[-1][name] = unique
        self.registers[unique] = kind
        return unique

    def declare_variable(self, variable: Variable) -> str:
        """Declare a variable in the innermost scope; return its unique name."""
        unique = self._unique(variable.name)
        self.symbol_scopes[-1][variable.name] = unique
        self.variables.append(replace(variable, name=unique))
        return unique

    def undefine(self, line: int) -> None:
        """Start an instruction: registers marked before it have an undefined value."""
        names = []
        while self.marks and self.marks[0][0] < line:
            names.append(self.register_named(self.marks.popleft()[1]))
        known = tuple(name for name in names if name in self.registers)
        if known:
            self.undefined[len(self.instructions)] = known

    def symbol_named(self, name: str) -> str:
        """Return the label or variable that a name refers to here; else the name itself."""
        for scope in reversed(self.symbol_scopes):
            if name in scope:
                return scope[name]
        return name

    def register_named(self, name: str) -> str | None:
        """Return the register that a name refers to here; None for a variable or a label.

        A name with a `%` that is not declared is taken for a special register.
        """
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        register, dot, part = name.partition(".")
        if dot and any(register in scope for scope in self.scopes):
            return f"{self.register_named(register)}.{part}"  # a byte: %r1.b2
        return name if name.startswith("%") else None

    def _unique(self, name: str) -> str:
        """Return a unique name for another declaration of a name: `%r`, `%r'`, `%r'2`, `%r'3`."""
        before = self.taken[name]
        self.taken[name] += 1
        number = "" if before == 0 else f"'{before if before > 1 else ''}"
        return f"{self.prefix}{name}{number}"
