"""The instruction table: the instruction forms that the simulator supports.

An entry is written as the PTX ISA writes its syntax, so that the two can be read side by side:

    @instruction("9.7.1.1", "add u16|u32|u64|s16|s32|s64", "add sat s32")
    def add(form: Form) -> Step: ...

In a syntax, words are modifiers in their order; `a|b` takes one of them, `[a|b]` at most one.
A form that no syntax has is refused before anything runs.

Section numbers are those of PTX ISA 8.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.ptx.syntax import Instruction, Module

if TYPE_CHECKING:
    from lego_mlir.sim.ptx.form import Decoded, Form

Decoder = Callable[["Form"], "Decoded"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: an ISA section, its syntaxes, and the function that decodes them."""

    section: str
    syntaxes: tuple[str, ...]
    patterns: tuple[tuple[tuple[frozenset[str], bool], ...], ...]
    decode: Decoder

    def match(self, modifiers: tuple[str, ...]) -> bool:
        return any(_matches(pattern, modifiers) for pattern in self.patterns)


TABLE: dict[str, list[Entry]] = {}

# Instructions of the ISA that no entry models, by the longest prefix of their opcode.
NOT_MODELLED: dict[str, str] = {
    "alloca": "9.7.17.3",
    "applypriority": "9.7.9.16",
    "brkpt": "9.7.19.1",
    "brx": "9.7.12.4",
    "call": "9.7.12.5",
    "discard": "9.7.9.17",
    "istypep": "9.7.10",
    "ldu": "9.7.9.10",
    "match": "9.7.13.10",
    "mma.sp": "9.7.14.6",
    "multimem": "9.7.9.14",
    "pmevent": "9.7.19.3",
    "st.async": "9.7.9.12",
    "st.bulk": "9.7.9.13",
    "stackrestore": "9.7.17.2",
    "stacksave": "9.7.17.1",
    "suld": "9.7.11",
    "suq": "9.7.11",
    "sured": "9.7.11",
    "sust": "9.7.11",
    "tcgen05": "9.7.16",
    "tensormap": "9.7.9.26",
    "tex": "9.7.10",
    "tld4": "9.7.10",
    "txq": "9.7.10",
    "wgmma.mma_async.sp": "9.7.15.6",
    "wmma": "9.7.14",
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
    """Return the entry for an instruction.

    Raises:
        LegoError: no entry has this form; naming the instruction, its location and the ISA section.
    """
    opcode, *rest = instruction.opcode.split(".")
    modifiers = tuple(rest)
    entries = TABLE.get(opcode, [])
    for entry in entries:
        if entry.match(modifiers):
            return entry
    raise _unknown(module, instruction, entries)


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
        hint = "the simulator cannot run this kernel; run it on a GPU"
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
