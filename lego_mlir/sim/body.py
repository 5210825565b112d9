"""What the statements of one kernel gather while it is parsed. Source: PTX ISA 5.4.6, 9.7.12.1."""

from __future__ import annotations

from lego_mlir.sim.syntax import Instruction, Variable
from lego_mlir.sim.types import Type


class Body:
    """Registers, variables, instructions and labels so far, and the braces that are open.

    A register declared between inner braces hides one of the same name outside. It is kept under
    a name of its own, with a prime for each that it hides.
    """

    def __init__(self) -> None:
        self.registers: dict[str, Type] = {}
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.scopes: list[dict[str, str]] = []

    def declare(self, name: str, kind: Type) -> None:
        unique = name
        while unique in self.registers:
            unique += "'"
        self.scopes[-1][name] = unique
        self.registers[unique] = kind

    def register_named(self, name: str) -> str | None:
        """The register that a name means here; None for a variable or a label.

        A name with a `%` that is not declared is taken for a special register.
        """
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name if name.startswith("%") else None
