"""PTX text to a `Module`, by recursive descent.

The parser knows the syntax of directives and operands but no instruction: what an opcode means is
the business of the instruction table. An operand in an unknown form is kept as its text, so that
the error can name the instruction it belongs to.

Source: PTX ISA 4 (syntax), 5.4 (variables), 11 (directives).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.limits import Limits, check_limit, current, limit_error
from lego_mlir.sim.ptx.kernel_body import Body
from lego_mlir.sim.ptx.lexer import Token, labels_ahead, tokens, undefined_marks, unquoted
from lego_mlir.sim.ptx.syntax import (
    Instruction,
    Kernel,
    Module,
    Negated,
    Parameter,
    Register,
    Variable,
)
from lego_mlir.sim.ptx.types import TYPES, Type
from lego_mlir.sim.ptx.variables import SPACES, VariableParser
from lego_mlir.sources import NO_SOURCES, Sources

_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_NUMBERS = {".maxclusterrank", ".maxnreg", ".minnctapersm"}
_TUNING = {".maxnctapersm", ".noreturn"}


def parse(
    text: str,
    file: str = "<ptx>",
    sources: Sources = NO_SOURCES,
    limits: Limits | None = None,
) -> Module:
    """Return the module that `text` spells. The result is cached by text, file and sources.

    Args:
        text: the PTX.
        file: its name in errors.
        sources: the texts that it was compiled from, where errors may show their lines.
        limits: on its length, its braces and its registers; those of the context if None.

    Raises:
        LegoError: the text is no PTX, or uses a directive that is not modelled; with its location.
    """
    if limits is not None:
        with limits.applied():
            return parse(text, file, sources)
    if len(text) > current().ptx_bytes:
        raise limit_error("ptx_bytes", f"{file} has {len(text)} characters")
    return _parsed(text, file, sources)


@lru_cache(maxsize=64)
def _parsed(text: str, file: str, sources: Sources) -> Module:
    return _Parser(text, file, sources).module()


class _Parser(VariableParser):
    """The grammar of directives, kernels and statements."""

    def __init__(self, text: str, file: str, sources: Sources) -> None:
        super().__init__(tokens(text, file))
        self.text = text
        self.file = file
        self.sources = sources
        self.kernels: dict[str, Kernel] = {}
        self.variables: list[Variable] = []
        self.files: dict[int, str] = {}
        self.loc: tuple[int, int, int] | None = None
        self.undefined = undefined_marks(text)
        self.declared = 0
        self.depth = 0

    def fail(self, message: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        token = token or self.token
        raise LegoError(
            message,
            location=Location(self.file, token.line, token.column),
            hint=hint,
            source=self.text,
        )

    def check(self, limit: str, value: int, what: str, token: Token) -> None:
        """Raise an error at a token if a value exceeds a limit."""
        try:
            check_limit(limit, value, what)
        except LegoError as e:
            self.fail(e.message, token, e.hint)

    # --- the module (PTX ISA 11.1) ---

    def module(self) -> Module:
        version = self.header(".version").text
        target = self.header(".target").text
        while self.accept(","):
            self.take()
        if self.token.text == ".address_size":
            self.take()
            if self.take().text != "64":
                self.fail("only 64-bit addresses are modelled", self.before)
        while self.token.kind != "end":
            self.top_level()
        return Module(
            self.text,
            self.file,
            version,
            target,
            self.kernels,
            tuple(self.variables),
            self.files,
            self.sources,
        )

    def header(self, name: str) -> Token:
        if self.token.text != name:
            self.fail(
                f"a PTX module begins with .version and .target, but here stands "
                f"{self.token.text!r} where {name} should"
            )
        self.take()
        return self.take()

    def top_level(self) -> None:
        while self.token.text in _LINKAGE:
            self.take()
        match self.token.text:
            case ".entry":
                kernel = self.kernel()
                self.kernels[kernel.name] = kernel
            case ".func":
                self.skip_function()
            case ".file":
                self.file_directive()
            case ".loc":
                self.loc_directive()
            case ".section":
                self.skip_section()
            case ".pragma":
                self.pragma()
            case text if text in SPACES:
                self.variables.append(self.variable())
            case text:
                self.fail(
                    f"the directive {text} is not modelled (PTX ISA 11)"
                    if text.startswith(".")
                    else f"here stands {text!r} where a directive should"
                )

    def skip_function(self) -> None:
        """Skip a `.func`: calls are not supported, and `call` is an error."""
        self.skip_to("{", ";")
        if self.token.text == "{":
            self.skip_braces()
        else:
            self.take()

    def skip_section(self) -> None:
        self.skip_to("{")
        self.skip_braces()

    def skip_to(self, *texts: str) -> None:
        opening = self.token
        while self.token.text not in texts:
            if self.token.kind == "end":
                self.fail(f"after this {opening.text} the text ends", opening)
            self.take()

    def skip_braces(self) -> None:
        opening = self.take()
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "end":
                self.fail("this '{' is never closed", opening)
            depth += {"{": 1, "}": -1}.get(token.text, 0)

    def pragma(self) -> None:
        """Skip a hint to the assembler, such as "nounroll" (PTX ISA 11.5)."""
        self.take()
        self.take()
        self.expect(";")

    def file_directive(self) -> None:
        """Parse `.file 1 "transpose.mlir"`, with an optional time and size (PTX ISA 11.4.4)."""
        self.take()
        number = self.number()
        if self.token.kind != "string":
            self.fail(f"here stands {self.token.text!r} where a file's name in quotes should")
        self.files[number] = unquoted(self.take().text)
        self.skip_line(self.before.line)

    def loc_directive(self) -> None:
        """Parse `.loc 1 34 9`, the location of what follows (PTX ISA 11.4.5)."""
        line = self.take().line
        self.loc = self.number(), self.number(), self.number()
        self.skip_line(line)

    def skip_line(self, line: int) -> None:
        while self.token.line == line and self.token.kind != "end":
            self.take()

    # --- kernels (PTX ISA 11.2, 11.4) ---

    def kernel(self) -> Kernel:
        line = self.take().line
        name = self.name("the kernel's name")
        parameters: list[Parameter] = []
        if self.accept("(") and not self.accept(")"):
            parameters.append(self.parameter())
            while self.accept(","):
                parameters.append(self.parameter())
            self.expect(")")
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
            tuple(parameters),
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
        )

    def parameter(self) -> Parameter:
        if self.take().text != ".param":
            self.fail("a kernel's parameter begins with .param", self.before)
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
        if kind is None or kind.kind == "pred":
            self.fail("a parameter needs a type of known size")
        name = self.name("the parameter's name")
        count, is_array = self.extent()
        if count is None:
            self.fail("a parameter array needs its size")
        size = kind.bytes * count
        return Parameter(name, kind, size, align or kind.bytes, is_array, pointer)

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
            case Token(kind="directive", text=text) if text in SPACES:
                body.variables.append(self.variable())
            case Token(kind="directive", text=text):
                self.fail(f"the directive {text} is not modelled inside a kernel (PTX ISA 11)")
            case Token(kind="name") if self.following.text == ":":
                label = self.take()
                self.take()
                body.labels[body.label_named(label.text)] = len(body.instructions)
            case _:
                body.instructions.append(self.instruction(body))

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
        self.label_named = body.label_named
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
        return Instruction(opcode.text, operands, guard, first.line, first.column, self.loc)
