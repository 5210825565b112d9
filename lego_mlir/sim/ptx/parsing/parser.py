"""PTX text to a `Module`, by recursive descent.

The parser knows the syntax of directives and operands but no instruction: what an opcode means is
the business of the instruction table. An operand in an unknown form is kept as its text, so that
the error can name the instruction it belongs to. `RoutineParser` has the grammar of kernels and
functions, `VariableParser` that of variables, `OperandParser` that of operands.

Source: PTX ISA 4 (syntax), 5.4 (variables), 11 (directives).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.limits import Limits, check_limit, current, limit_error
from lego_mlir.sim.ptx.parsing.lexer import Token, tokens, undefined_marks, unquoted
from lego_mlir.sim.ptx.parsing.routines import RoutineParser
from lego_mlir.sim.ptx.parsing.variables import SPACES
from lego_mlir.sim.ptx.syntax import Function, Kernel, Module, Variable
from lego_mlir.sources import NO_SOURCES, Sources

_LINKAGE = {".visible", ".extern", ".weak", ".common"}


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


class _Parser(RoutineParser):
    """The grammar of a module and its directives."""

    def __init__(self, text: str, file: str, sources: Sources) -> None:
        super().__init__(tokens(text, file))
        self.text = text
        self.file = file
        self.sources = sources
        self.kernels: dict[str, Kernel] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.files: dict[int, str] = {}
        self.undefined = undefined_marks(text)

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
            self.functions | {name: self.aliased(name) for name in self.aliases},
        )

    def aliased(self, name: str) -> Function:
        """Return the function that another name stands for (PTX ISA 11.1.4)."""
        found = self.functions.get(self.aliases[name])
        if found is None:
            self.fail(f"{name} is an alias of {self.aliases[name]}, which is no function")
        return found

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
                function = self.function()
                if not function.declared or function.name not in self.functions:
                    self.functions[function.name] = function
            case ".file":
                self.file_directive()
            case ".loc":
                self.loc_directive()
            case ".section":
                self.skip_section()
            case ".pragma":
                self.pragma()
            case ".alias":
                self.alias()
            case text if text in SPACES:
                self.variables.append(self.variable())
            case text:
                self.fail(
                    f"the directive {text} is not modelled (PTX ISA 11)"
                    if text.startswith(".")
                    else f"here stands {text!r} where a directive should"
                )

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

    def alias(self) -> None:
        """Parse `.alias copy, original;` (PTX ISA 11.1.4)."""
        self.take()
        name = self.name("the alias")
        self.expect(",")
        self.aliases[name] = self.name("a function")
        self.expect(";")

    def file_directive(self) -> None:
        """Parse `.file 1 "transpose.mlir"`, with an optional time and size (PTX ISA 11.4.4)."""
        self.take()
        number = self.number()
        if self.token.kind != "string":
            self.fail(f"here stands {self.token.text!r} where a file's name in quotes should")
        self.files[number] = unquoted(self.take().text)
        self.skip_line(self.before.line)
