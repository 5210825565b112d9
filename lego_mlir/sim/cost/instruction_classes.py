"""Classes of instructions, under which costs are counted.

The chapter of the PTX ISA that describes an instruction says what it does, but for data movement
(9.7.9) and for what threads do together (9.7.13), whose chapters hold several kinds.
"""

from __future__ import annotations

from typing import Literal, get_args

from lego_mlir.sim.ptx.syntax import Instruction

Class = Literal[
    "integer",
    "float",
    "comparison",
    "logic",
    "movement",
    "conversion",
    "global memory",
    "shared memory",
    "local memory",
    "parameters",
    "constant memory",
    "generic memory",
    "copy",
    "warp",
    "matrix",
    "synchronisation",
    "control",
    "other",
]
CLASSES: tuple[Class, ...] = get_args(Class)
"""All classes, in the order in which they are reported."""

PURE: frozenset[Class] = frozenset(
    ("integer", "float", "comparison", "logic", "movement", "conversion")
)
"""Instructions whose results depend on the operands of the same lane, and that do nothing else."""

_CHAPTERS: dict[str, Class] = {
    "9.7.1": "integer",
    "9.7.2": "integer",  # extended precision
    "9.7.3": "float",
    "9.7.4": "float",  # half precision
    "9.7.5": "float",  # mixed precision
    "9.7.6": "comparison",
    "9.7.7": "comparison",  # half precision
    "9.7.8": "logic",
    "9.7.9": "movement",
    "9.7.12": "control",
    "9.7.13": "synchronisation",
    "9.7.14": "matrix",
    "9.7.15": "matrix",
    "9.7.18": "integer",  # video
}
_MEMORY = {"ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu", "ldmatrix", "stmatrix"}
_WARP = {"activemask", "elect", "match", "movmatrix", "redux", "shfl", "vote"}
_WAITS = {"commit_group", "wait_group", "wait_all"}
_SPACES: dict[str, Class] = {
    "global": "global memory",
    "shared": "shared memory",
    "local": "local memory",
    "param": "parameters",
    "const": "constant memory",
}


def class_of(section: str, instruction: Instruction) -> Class:
    """Return the class of an instruction that a section of the PTX ISA describes."""
    word, *modifiers = instruction.opcode.split(".")
    match word:
        case "cp":
            return "synchronisation" if _WAITS & set(modifiers) else "copy"
        case "cvt":
            return "conversion"
        case _ if word in _WARP:
            return "warp"
        case _ if word in _MEMORY:
            spaces = (modifier.partition("::")[0] for modifier in modifiers)
            return next((_SPACES[s] for s in spaces if s in _SPACES), "generic memory")
    return _CHAPTERS.get(".".join(section.split(".")[:3]), "other")
