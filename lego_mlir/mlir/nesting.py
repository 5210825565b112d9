"""Limit how deep and how long a module's text is once its aliases are written out.

MLIR parses, verifies and prints by recursion, and a stack that overflows ends the process. Texts
nest by brackets, by operators in a row, as `d0 + d1 + d2` in affine maps, and by aliases, where
`#b = [#a, #a]` also doubles what is printed. So all are counted before MLIR reads a text.
"""

from __future__ import annotations

import re

from lego_mlir.diagnostics import Location
from lego_mlir.limits import current, limit_error

_TOKENS = re.compile(
    r"""
    "(?:[^"\\\n]|\\.)*"             # brackets in strings
    | //[^\n]*                      # and in comments nest nothing,
    | -> | >=                       # and these are no brackets
    | (?P<open> [(\[{<])
    | (?P<close> [)\]}>])
    | (?P<alias> [#!][\w.$-]+) (?P<defined> \s*=(?!=))?
    | (?P<operator> [+*-] | floordiv\b | ceildiv\b | mod\b)
    | (?P<end> [,%])                # of a row of operators
    """,
    re.VERBOSE,
)


def check_nesting(file: str, text: str) -> None:
    """Raise an error if a text nests too deeply, or is too long, for MLIR to read it.

    Args:
        file: the name of the text, for the error.
        text: of a module.

    Raises:
        LegoError: at the bracket, operator or alias that exceeds `module_nesting` or
            `module_tokens`.
    """
    most_deep, most_long = current().module_nesting, current().module_tokens
    # Of each alias that is defined so far: how deep it nests, and how many tokens it has.
    known: dict[str, tuple[int, int]] = {}
    alias: str | None = None
    rows = [0]  # operators in a row, inside each bracket that is open
    depth = deepest = length = begun = 0
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        inside, tokens = 0, 1
        if kind is None:
            continue
        if kind == "open":
            rows.append(0)
            depth += 1
        elif kind == "operator":
            rows[-1] += 1
            depth += 1
        elif kind == "end":
            depth -= rows[-1]
            rows[-1] = 0
            continue
        elif kind == "close":
            if len(rows) > 1:
                depth -= rows.pop() + 1
            continue
        elif kind == "defined" and len(rows) == 1:
            if alias is not None:
                known[alias] = deepest, length - begun
            alias, deepest, begun = token["alias"], 0, length
        else:
            inside, tokens = known.get(token["alias"], (0, 1))
        deepest = max(deepest, depth + inside)
        length += tokens
        if deepest > most_deep:
            what = f"{deepest} brackets and operators are open here, with aliases written out"
            raise limit_error("module_nesting", what).at(_location(file, text, token), text)
        if length > most_long:
            what = "with aliases written out, the module has more brackets and operators up to here"
            raise limit_error("module_tokens", what).at(_location(file, text, token), text)


def _location(file: str, text: str, token: re.Match[str]) -> Location:
    line = text.count("\n", 0, token.start()) + 1
    return Location(file, line, token.start() - text.rfind("\n", 0, token.start()))
