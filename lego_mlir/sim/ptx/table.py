"""The instruction table: the instruction forms that the simulator supports.

An entry is written as the PTX ISA writes its syntax, so that the two can be read side by side:

    @instruction("9.7.1.1", "add u16|u32|u64|s16|s32|s64", "add sat s32")
    def add(form: Form) -> Step: ...

In a syntax, words are modifiers in their order; `a|b` takes one of them, `[a|b]` at most one. The
assembler takes modifiers in any order, and so does the table: only types, state spaces and orders
of matrices, which may occur twice, keep theirs among themselves. A decoder gets the modifiers in
the order of its syntax. A form that no syntax has is refused before anything runs.

Section numbers are those of PTX ISA 8.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.ptx.syntax import Instruction, Module
from lego_mlir.sim.ptx.types import TYPES

if TYPE_CHECKING:
    from lego_mlir.sim.ptx.decoded import Decoded
    from lego_mlir.sim.ptx.form import Form

Decoder = Callable[["Form"], "Decoded"]

_TYPES = frozenset([*TYPES, "b1", "u4", "s4", "e4m3", "e5m2", "tf32"])
_SPACES = frozenset(["const", "global", "local", "param", "shared", "shared::cta"])
_IN_ORDER = (_TYPES, _SPACES | {"shared::cluster"}, frozenset(["row", "col"]))
"""Modifiers whose order among themselves counts: `cvt.f32.f16` is not `cvt.f16.f32`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: an ISA section, its syntaxes, and the function that decodes them."""

    section: str
    syntaxes: tuple[str, ...]
    patterns: tuple[tuple[tuple[frozenset[str], bool], ...], ...]
    decode: Decoder

    def arranged(self, modifiers: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return modifiers in the order of a syntax that has them all; None if none has."""
        for pattern in self.patterns:
            found = _arranged(pattern, modifiers)
            if found is not None:
                return found
        return None


TABLE: dict[str, list[Entry]] = {}

# Instructions of the ISA that no entry models, by the longest prefix of their opcode.
NOT_MODELLED: dict[str, str] = {
    "alloca": "9.7.17.3",
    "brkpt": "9.7.19.1",
    "istypep": "9.7.10",
    "mma.sp": "9.7.14.6",
    "multimem": "9.7.9.14",
    "st.async": "9.7.9.12",
    "st.bulk": "9.7.9.13",
    "stackrestore": "9.7.17.2",
    "stacksave": "9.7.17.1",
    "suld": "9.7.11",
    "suq": "9.7.11",
    "sured": "9.7.11",
    "sust": "9.7.11",
    "tcgen05": "9.7.16",
    "tex": "9.7.10",
    "tld4": "9.7.10",
    "txq": "9.7.10",
    "wgmma.mma_async.sp": "9.7.15.6",
}


def instruction(section: str, *syntaxes: str) -> Callable[[Decoder], Decoder]:
    """Add a decoder to the table for these syntaxes of an ISA section."""

    def enter(decode: Decoder) -> Decoder:
        by_opcode: dict[str, list[str]] = {}
        for syntax in syntaxes:
            by_opcode.setdefault(syntax.split()[0], []).append(syntax)
        for opcode, rows in by_opcode.items():
            patterns = tuple(_pattern(row) for row in rows)
            TABLE.setdefault(opcode, []).append(Entry(section, tuple(rows), patterns, decode))
        return decode

    return enter


def find(module: Module, instruction: Instruction) -> Entry:
    """Return the entry for an instruction (see `look_up`)."""
    return look_up(module, instruction)[0]


def look_up(module: Module, instruction: Instruction) -> tuple[Entry, tuple[str, ...]]:
    """Return the entry for an instruction, and its modifiers in the order of the syntax.

    Raises:
        LegoError: no entry has this form; naming the instruction, its location and the ISA section.
    """
    found = _entry_of(instruction.opcode)
    if found is None:
        raise _unknown(module, instruction, TABLE.get(instruction.opcode.split(".")[0], []))
    return found


@lru_cache(maxsize=1024)
def _entry_of(text: str) -> tuple[Entry, tuple[str, ...]] | None:
    """Return the entry for an opcode with its modifiers, and these in order; None if none has it.

    The table is complete when the first module is decoded.
    """
    opcode, *rest = text.split(".")
    modifiers = tuple(rest)
    entries = TABLE.get(opcode, [])
    # Each word as it stands first, so that nothing rearranged hides what is written so.
    for entry in entries:
        if any(_matches(pattern, modifiers) for pattern in entry.patterns):
            return entry, modifiers
    for entry in entries:
        found = entry.arranged(modifiers)
        if found is not None:
            return entry, found
    return None


def _unknown(module: Module, instruction: Instruction, entries: list[Entry]) -> LegoError:
    text = instruction.opcode
    prefixes = [p for p in NOT_MODELLED if text == p or text.startswith(p + ".")]
    if prefixes and (not entries or "." in max(prefixes, key=len)):
        section = NOT_MODELLED[max(prefixes, key=len)]
        message = f"the instruction {text} is not modelled (PTX ISA {section})"
        hint = "the simulator cannot run this kernel; run it on a GPU"
    elif entries:
        message = f"this form of {text.split('.')[0]} is not modelled: {text} (PTX ISA "
        message += ", ".join(dict.fromkeys(e.section for e in entries)) + ")"
        hint = "modelled are: " + "; ".join(s for e in entries for s in e.syntaxes)
    else:
        message = f"{text} is no instruction that the simulator knows (PTX ISA 9.7)"
        hint = (
            f"the module is of PTX ISA {module.version}; what the simulator does not know, it "
            f"cannot run: run this kernel on a GPU"
        )
    return module.error(message, instruction.line, instruction.column, hint)


def _pattern(syntax: str) -> tuple[tuple[frozenset[str], bool], ...]:
    return tuple(
        (frozenset(word.strip("[]").split("|")), word.startswith("["))
        for word in syntax.split()[1:]
    )


def _matches(pattern: tuple[tuple[frozenset[str], bool], ...], modifiers: tuple[str, ...]) -> bool:
    """Return whether the modifiers match the pattern, with or without its optional groups."""
    if not pattern:
        return not modifiers
    (words, optional), rest = pattern[0], pattern[1:]
    if modifiers and modifiers[0] in words and _matches(rest, modifiers[1:]):
        return True
    return optional and _matches(rest, modifiers)


_MOST_MODIFIERS = 16
"""Of an opcode that is worth rearranging: the table has fewer."""


def _arranged(
    pattern: tuple[tuple[frozenset[str], bool], ...], modifiers: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Return the modifiers in the order of a pattern, or None if they do not fill it.

    Each group of the pattern takes the first modifier that it allows; of those that keep their
    order only the foremost.
    """
    if len(modifiers) > _MOST_MODIFIERS:
        return None
    rest, found = list(modifiers), []
    for words, optional in pattern:
        # Of a class whose order counts, only the first may be taken.
        first = [next((m for m in rest if m in group), None) for group in _IN_ORDER]
        free = [m for m in rest if m in first or not any(m in group for group in _IN_ORDER)]
        taken = next((m for m in free if m in words), None)
        if taken is not None:
            rest.remove(taken)
            found.append(taken)
        elif not optional:
            return None
    return None if rest else tuple(found)
