"""The parser of kernels, functions and their statements.

Source: PTX ISA 4.3 (statements), 7.1 (functions), 11.1 and 11.4 (directives of kernels), 11.3
(control-flow directives).
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace

from lego_mlir.sim.ptx.parsing.kernel_body import Body
from lego_mlir.sim.ptx.parsing.lexer import Token, labels_ahead
from lego_mlir.sim.ptx.parsing.variables import SPACES, VariableParser
from lego_mlir.sim.ptx.syntax import (
    Function,
    Instruction,
    Kernel,
    Negated,
    Parameter,
    Register,
    Variable,
)
from lego_mlir.sim.ptx.types import TYPES, Type

_NUMBERS = {".maxclusterrank", ".maxnreg", ".minnctapersm"}
_TUNING = {".maxnctapersm", ".noreturn"}
_OF_FUNCTIONS = {".noreturn", ".abi_preserve", ".abi_preserve_control"}
_TABLES = {".branchtargets", ".calltargets"}
_USED_BYTES = re.compile(r"used_bytes_mask (0x[0-9a-fA-F]{1,16}|[0-9]{1,10})")


class RoutineParser(VariableParser):
    """The grammar of kernels, functions and statements."""

    def __init__(self, stream: list[Token]) -> None:
        super().__init__(stream)
        self.loc: tuple[int, int, int] | None = None
        self.used_bytes: int | None = None
        self.undefined: deque[tuple[int, str]] = deque()
        self.declared = 0
        self.depth = 0

    def check(self, limit: str, value: int, what: str, token: Token) -> None:
        raise NotImplementedError

    def file_directive(self) -> None:
        raise NotImplementedError

    # --- kernels (PTX ISA 11.2, 11.4) ---

    def kernel(self) -> Kernel:
        line = self.take().line
        name = self.name("the kernel's name")
        parameters = self.parameters()
        limits: dict[str, tuple[int, int, int]] = {}
        numbers: dict[str, int] = {}
        explicit = False
        while self.token.text != "{":
            directive = self.take()
            if directive.text in (".maxntid", ".reqntid", ".reqnctapercluster"):
                limits[directive.text] = self.dim3()
            elif directive.text in _NUMBERS:
                numbers[directive.text] = self.number()
            elif directive.text == ".explicitcluster":
                explicit = True
            elif directive.text in _TUNING:
                while self.token.kind == "int" or self.token.text == ",":
                    self.take()
            elif directive.text == ".pragma":
                self.take()
                self.expect(";")
            else:
                self.fail(
                    f"the kernel directive {directive.text} is not modelled (PTX ISA 11.4)",
                    directive,
                )
        self.loc = None
        opening = self.token
        body = Body(self.undefined, opening.line)
        self.block(body, opening)
        return Kernel(
            name,
            parameters,
            body.registers,
            tuple(body.variables),
            tuple(body.instructions),
            body.labels,
            line,
            limits.get(".maxntid"),
            limits.get(".reqntid"),
            limits.get(".reqnctapercluster"),
            numbers.get(".maxclusterrank"),
            explicit,
            numbers.get(".maxnreg"),
            numbers.get(".minnctapersm"),
            body.undefined,
            body.tables,
        )

    # --- functions (PTX ISA 7.1) ---

    def function(self) -> Function:
        first = self.take()
        line = first.line
        results = self.parameters(registers=True)
        name = self.name("the function's name")
        parameters = self.parameters(registers=True)
        while self.token.text not in ("{", ";"):
            directive = self.take()
            if directive.kind == "end":
                self.fail("after this .func the text ends", first)
            elif directive.text == ".pragma":
                self.take()
                self.expect(";")
            elif directive.text == ".attribute":
                self.expect("(")
                while not self.accept(")") and self.token.kind != "end":
                    self.take()
            elif directive.text in _OF_FUNCTIONS:
                while self.token.kind == "int":
                    self.take()
            else:
                self.fail(
                    f"the function directive {directive.text} is not modelled (PTX ISA 11.4)",
                    directive,
                )
        if self.accept(";"):
            return Function(name, results, parameters, line, declared=True)
        self.loc = None
        opening = self.token
        body = Body(self.undefined, opening.line, f"{name}:")
        body.open([])
        results, parameters = (
            tuple(self.formal(body, parameter, line) for parameter in parameters)
            for parameters in (results, parameters)
        )
        self.block(body, opening)
        return Function(
            name,
            results,
            parameters,
            line,
            declared=False,
            registers=body.registers,
            variables=tuple(body.variables),
            instructions=tuple(body.instructions),
            labels=body.labels,
            tables=body.tables,
            undefined=body.undefined,
        )

    def formal(self, body: Body, parameter: Parameter, line: int) -> Parameter:
        """Declare a parameter of a function in its body; return it under its unique name."""
        if parameter.register:
            return replace(parameter, name=body.declare(parameter.name, parameter.kind))
        variable = Variable(parameter.name, "param", parameter.size, parameter.align, line)
        return replace(parameter, name=body.declare_variable(variable))

    # --- parameters ---

    def parameters(self, *, registers: bool = False) -> tuple[Parameter, ...]:
        """Parse a list of parameters in parentheses; none if there are no parentheses."""
        found: list[Parameter] = []
        if self.accept("(") and not self.accept(")"):
            found.append(self.parameter(registers=registers))
            while self.accept(","):
                found.append(self.parameter(registers=registers))
            self.expect(")")
        return tuple(found)

    def parameter(self, *, registers: bool) -> Parameter:
        space = self.take().text
        if space != ".param" and not (registers and space == ".reg"):
            self.fail("a parameter begins with .param", self.before)
        kind: Type | None = None
        pointer, align = False, 0
        while self.token.kind == "directive":
            word = self.take()
            if word.text == ".align":
                # The alignment after .ptr is that of what it points to.
                number = self.number()
                align = align if pointer else number
            elif word.text == ".ptr":
                pointer = True
            elif word.text[1:] in TYPES:
                kind = TYPES[word.text[1:]]
            elif not (pointer and word.text in SPACES):
                self.fail(f"the parameter attribute {word.text} is not modelled", word)
        in_register = space == ".reg"
        if kind is None or (kind.kind == "pred" and not in_register):
            self.fail("a parameter needs a type of known size")
        name = "_" if self.accept("_") else self.name("the parameter's name")
        count, is_array = self.extent()
        if count is None:
            if not registers:
                self.fail("a parameter array needs its size")
            count = 0  # of a variadic function
        size = kind.bytes * count
        return Parameter(name, kind, size, align or kind.bytes, is_array, pointer, in_register)

    def dim3(self) -> tuple[int, int, int]:
        sizes = [self.number()]
        while self.accept(","):
            sizes.append(self.number())
        x, y, z = [*sizes, 1, 1][:3]
        return x, y, z

    # --- statements ---

    def block(self, body: Body, opening: Token) -> None:
        """Parse statements between braces; registers declared inside hide those outside."""
        self.depth += 1
        self.check("ptx_nesting", self.depth, "{} braces are open here", opening)
        self.expect("{")
        labels: dict[str, None] = {}
        for label in labels_ahead(self.stream, self.at):
            if label.text in labels:
                self.fail(f"the label {label.text} stands twice in this kernel", label)
            labels[label.text] = None
        body.open(list(labels))
        while not self.accept("}"):
            if self.token.kind == "end":
                self.fail("this '{' is never closed", opening)
            self.statement(body)
        body.close()
        self.depth -= 1

    def statement(self, body: Body) -> None:
        match self.token:
            case Token(text="{"):
                self.block(body, self.token)
            case Token(text=".reg"):
                self.registers(body)
            case Token(text=".loc"):
                self.loc_directive()
            case Token(text=".file"):
                self.file_directive()
            case Token(text=".pragma"):
                self.pragma()
            case Token(kind="directive", text=text) if text in SPACES or text == ".param":
                body.declare_variable(self.variable())
            case Token(kind="directive", text=text):
                self.fail(f"the directive {text} is not modelled inside a kernel (PTX ISA 11)")
            case Token(kind="name") if self.following.text == ":":
                label = self.take()
                self.take()
                self.labelled(body, body.symbol_named(label.text))
            case _:
                body.instructions.append(self.instruction(body))

    def labelled(self, body: Body, name: str) -> None:
        """Parse what a label names: a list of targets, a prototype, or an instruction."""
        if self.token.text in _TABLES:
            self.take()
            targets = [body.symbol_named(self.name("a label or function"))]
            while self.accept(","):
                targets.append(body.symbol_named(self.name("a label or function")))
            self.expect(";")
            body.tables[name] = tuple(targets)
        elif self.token.text == ".callprototype":
            # A call's own operands say what it passes.
            opening = self.take()
            while not self.accept(";"):
                if self.token.kind == "end":
                    self.fail("this .callprototype never ends", opening)
                self.take()
            body.tables[name] = ()
        else:
            body.labels[name] = len(body.instructions)

    def registers(self, body: Body) -> None:
        """Parse `.reg .b32 %r<25>, %x;` (PTX ISA 5.4.6)."""
        self.take()
        word = self.take()
        kind = TYPES.get(word.text[1:])
        if kind is None or kind.lanes != 1:
            self.fail(f"registers of type {word.text} are not modelled (PTX ISA 5.2)", word)
        while True:
            name = self.name("a register")
            count = None
            if self.accept("<"):
                count = self.number()
                self.expect(">")
            self.declared += 1 if count is None else count
            self.check("registers", self.declared, "the module declares {} registers", word)
            for one in [name] if count is None else [f"{name}{i}" for i in range(count)]:
                body.declare(one, kind)
            if not self.accept(","):
                break
        self.expect(";")

    def instruction(self, body: Body) -> Instruction:
        first = self.token
        body.undefine(first.line)
        self.register_named = body.register_named
        self.symbol_named = body.symbol_named
        guard: Register | Negated | None = None
        if self.accept("@"):
            negated = self.accept("!")
            name = self.name("a predicate")
            register = Register(body.register_named(name) or name, first.column)
            guard = Negated(register, first.column) if negated else register
        if self.token.kind != "name":
            self.fail(f"here stands {self.token.text!r} where an instruction should")
        opcode = self.take()
        operands = self.operands()
        self.expect(";")
        used, self.used_bytes = self.used_bytes, None
        return Instruction(opcode.text, operands, guard, first.line, first.column, self.loc, used)

    # --- directives of both ---

    def pragma(self) -> None:
        """Parse "used_bytes_mask 0x3f"; skip hints such as "nounroll" (PTX ISA 11.5)."""
        self.take()
        hint = self.take()
        match = _USED_BYTES.fullmatch(hint.text.strip('"'))
        if match is not None:
            self.used_bytes = int(match[1], 0)
        self.expect(";")

    def loc_directive(self) -> None:
        """Parse `.loc 1 34 9`, the location of what follows (PTX ISA 11.4.5)."""
        line = self.take().line
        self.loc = self.number(), self.number(), self.number()
        self.skip_line(line)

    def skip_line(self, line: int) -> None:
        while self.token.line == line and self.token.kind != "end":
            self.take()
