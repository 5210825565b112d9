"""Names in printed text: symbols, parameters and local variables.

A layout's symbols may come from a stranger's text. What is printed as a name is an ASCII identifier
that is no word of the language, or text that the caller gives for the symbol.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

_C = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while _Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert
_Thread_local
"""
_CPP = """
alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await
co_return co_yield compl concept consteval constexpr constinit const_cast decltype delete
dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public reinterpret_cast requires static_assert static_cast
template this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq
threadIdx blockIdx blockDim gridDim warpSize
"""
_PYTHON = [*keyword.kwlist, *dir(builtins), "math", "np", "numpy", "tl", "triton", "lego_isqrt"]

RESERVED: dict[str, frozenset[str]] = {
    "c": frozenset([*_C.split(), "sqrt", "lego_isqrt"]),
    "cuda": frozenset([*_C.split(), *_CPP.split(), "sqrt", "lego_isqrt"]),
    "python": frozenset(_PYTHON),
    "numpy": frozenset(_PYTHON),
    "triton": frozenset(_PYTHON),
}
"""The words of each language that are no names."""


def check_name(language: str, name: str, what: str) -> str:
    """Return `name` if it can be a name in the language.

    Raises:
        LegoError: it is no identifier, or a word of the language.
    """
    if not _IDENTIFIER.fullmatch(str(name)):
        raise LegoError(
            f"{what} {name!r} is no name in {language}",
            hint="use ASCII letters, digits and _, not a digit first",
        )
    if name in RESERVED[language]:
        raise LegoError(
            f"{what} '{name}' is a word of {language}",
            hint=f"rename it, for example to '{name}_'",
        )
    return name


class Names:
    """The names in one text.

    Args:
        language: a key of `RESERVED`.
        given: texts for symbols, by name.
        taken: names that local variables must not have, besides those of symbols.
    """

    def __init__(
        self, language: str, given: Mapping[str, str] | None = None, taken: Iterable[str] = ()
    ) -> None:
        self.language = language
        self._given = dict(given or {})
        self._taken = set(taken)
        self._locals = 0
        self._symbols: dict[str, Sym] = {}

    def text(self, x: Sym) -> str:
        """Return the text of a symbol.

        Raises:
            LegoError: its name cannot be one in the language, or another symbol has it too.
        """
        if self._symbols.setdefault(x.name, x) is not x:
            raise LegoError(
                f"two different symbols have the name '{x.name}'", hint="name one of them otherwise"
            )
        if x.name in self._given:
            return self._given[x.name]
        return check_name(self.language, x.name, "the symbol")

    def local(self) -> str:
        """Return a new name for a local variable."""
        while (name := f"t{self._locals}") in self._taken:
            self._locals += 1
        self._locals += 1
        return name


def fresh(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted`, with as many underscores behind it as keep it from being taken."""
    taken = set(taken)
    while wanted in taken:
        wanted += "_"
    return wanted
