"""The state of parsing a kernel's body. Source: PTX ISA 5.4.6, 9.7.12.1."""

from __future__ import annotations

from collections import Counter, deque

from lego_mlir.sim.ptx.syntax import Instruction, Variable
from lego_mlir.sim.ptx.types import Type


class Body:
    """The registers, variables, instructions and labels so far, and the open scopes.

    A register or label declared between inner braces hides one of the same name outside. It is
    kept under a name of its own, with a prime, and from the third on with a number.

    Args:
        marks: see `lexer.undefined_marks`; those in the kernel and before it are taken out.
        line: of the brace that opens the kernel.
    """

    def __init__(self, marks: deque[tuple[int, str]], line: int) -> None:
        self.registers: dict[str, Type] = {}
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.undefined: dict[int, tuple[str, ...]] = {}
        self.scopes: list[dict[str, str]] = []
        self.label_scopes: list[dict[str, str]] = []
        self.taken: Counter[str] = Counter()  # declarations of each name, registers and labels
        self.marks = marks
        self.undefine(line)

    def open(self, labels: list[str]) -> None:
        """Open a scope with these labels; a branch may come before its label."""
        self.scopes.append({})
        self.label_scopes.append({name: self._unique(name) for name in labels})

    def close(self) -> None:
        self.scopes.pop()
        self.label_scopes.pop()

    def declare(self, name: str, kind: Type) -> None:
        unique = self._unique(name)
        self.scopes[-1][name] = unique
        self.registers[unique] = kind

    def undefine(self, line: int) -> None:
        """Start an instruction: registers marked before it have an undefined value."""
        names = []
        while self.marks and self.marks[0][0] < line:
            names.append(self.register_named(self.marks.popleft()[1]))
        known = tuple(name for name in names if name in self.registers)
        if known:
            self.undefined[len(self.instructions)] = known

    def label_named(self, name: str) -> str:
        """Return the label that a name refers to here, or the name itself for a variable."""
        for scope in reversed(self.label_scopes):
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
        return name if name.startswith("%") else None

    def _unique(self, name: str) -> str:
        """Return a unique name for another declaration of a name: `%r`, `%r'`, `%r'2`, `%r'3`."""
        before = self.taken[name]
        self.taken[name] += 1
        return name if before == 0 else f"{name}'{before if before > 1 else ''}"
