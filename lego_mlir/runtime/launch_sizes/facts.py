"""What the compiled code relies on of the arguments, evaluated before a launch."""

from __future__ import annotations

from functools import lru_cache

from lego_mlir.artifact import Artifact, Fact
from lego_mlir.artifact.expressions import Leaf, Program, folded, not_understood
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.runtime.launch_sizes.extents import Known


def check_facts(artifact: Artifact, known: Known) -> None:
    """Check that the arguments are what the code relies on.

    Args:
        artifact: whose code.
        known: the values, shapes and strides of the arguments.

    Raises:
        LegoError: a fact does not hold; names the argument, its value and the fact.
    """
    try:
        if all(facts_program(artifact)(*known)):
            return
    except ZeroDivisionError:  # a size of 0, of which another fact tells
        pass
    except IndexError:
        raise not_understood(" and ".join(fact.condition for fact in artifact.facts)) from None
    for fact in artifact.facts:
        try:
            holds, value = Program((fact.condition, fact.value))(*known)
        except ZeroDivisionError:
            continue
        if not holds:
            what = subject(fact.value, artifact)
            says = fact.says + _of_other(fact, known)
            raise LegoError(f"{what} is {value}, {says}", location=_location(fact))


@lru_cache(maxsize=256)
def facts_program(artifact: Artifact) -> Program:
    """Return the program of the conditions of an artifact's facts.

    Raises:
        LegoError: one is no expression.
    """
    return Program([fact.condition for fact in artifact.facts])


def subject(expression: str, artifact: Artifact) -> str:
    """Return what a fact is about, in words, with the name of the argument."""

    def leaf(token: Leaf | int) -> str:
        if isinstance(token, int):
            return str(token)
        name = artifact.arguments[token.argument].name
        match token.asks:
            case "value":
                return name
            case "size":
                return f"{name}.shape[{token.dimension}]"
            case "stride":
                return f"{name}.strides[{token.dimension}]"

    def joined(a: str, sign: str, b: str) -> str:
        return f"{sign}({a}, {b})" if sign.isalpha() else f"({a} {sign} {b})"

    tokens = folded(expression, lambda token: (token,), lambda a, _, b: (*a, *b))
    if tokens != (only := tokens[0],) or isinstance(only, int):
        return folded(expression, leaf, joined)
    name = artifact.arguments[only.argument].name
    if only.asks == "value":
        return f"argument '{name}'"
    asked = "size" if only.asks == "size" else "stride"
    return f"argument '{name}': its {asked} along dimension {only.dimension}"


def _of_other(fact: Fact, known: Known) -> str:
    """Return what the other size or stride is, of a fact that two are equal; else nothing."""
    match fact.condition.split():
        case [value, other, "=="] if value == fact.value and not other.isdecimal():
            (number,) = Program((other,))(*known)
            return f", which is {number}"
    return ""


def _location(fact: Fact) -> Location | None:
    """Return the location that a text `file:line:column` describes."""
    file, _, column = fact.location.rpartition(":")
    file, _, line = file.rpartition(":")
    if not file or not line.isdecimal() or not column.isdecimal():
        return None
    return Location(file, int(line), int(column))
