"""What the assembler made: the instructions of a kernel's main loop, counted.

The main loop is the innermost loop with the most matrix instructions, a natural loop of the control
flow (Aho, Lam, Sethi and Ullman, Compilers, section 9.6.6): what waits out of line for a barrier
and then jumps back belongs to the loop that it waits in, and is no loop around it.

Needs `nvdisasm`: on the PATH, or by pip install nvidia-cuda-nvdisasm.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lego_mlir.diagnostics import LegoError

MATRIX = ("HMMA", "IMMA", "DMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA")
"""Matrix instructions: of a warp, and (`…GMMA`) of a warpgroup."""

COPIES = ("LDGSTS", "UTMALDG", "UBLKCP")
"""Asynchronous copies to shared memory: of a thread, and of the copy engine."""

_SECTION = re.compile(r"^\.text\.([^\s:]+):")
_LABEL = re.compile(r"^(\.L[\w.]+):")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_TARGET = re.compile(r"`\((\.L[\w.]+)\)")
_ENDS = ("EXIT", "RET", "BRX", "JMX")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its operation with modifiers, and whether a predicate guards it."""

    operation: str
    operands: str
    guarded: bool

    @property
    def family(self) -> str:
        """The operation without modifiers."""
        return self.operation.partition(".")[0]

    @property
    def target(self) -> str | None:
        """The label that it names."""
        found = _TARGET.search(self.operands)
        return found and found[1]


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that run one after the other, and where control may go then."""

    instructions: tuple[Instruction, ...]
    next: tuple[int, ...]


def main_loops(cubin: bytes) -> dict[str, dict[str, dict[str, int]]]:
    """Operations by kernel: of its main loop, of the loop that copies, and of all of it.

    Under `loop`, `copies` and `kernel`; `loop` and `copies` are the same where the threads that
    multiply also copy, and empty where there is no such loop.

    Raises:
        LegoError: there is no disassembler, or it fails.
    """
    found = {}
    for name, (code, labels) in kernels(disassembled(cubin)).items():
        flow = blocks(code, labels)
        found[name] = {
            "loop": dict(innermost(flow, MATRIX)),
            "copies": dict(innermost(flow, COPIES)),
            "kernel": dict(Counter(i.family for i in code)),
        }
    return found


def disassembled(cubin: bytes) -> str:
    """The text that nvdisasm gives.

    Raises:
        LegoError: there is none, or it fails.
    """
    tool = _tool()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run(
            [tool, "-c", file.name], capture_output=True, text=True, check=False, timeout=60
        )
    if said.returncode:
        raise LegoError(f"nvdisasm fails: {said.stderr.strip()[:300]}")
    return said.stdout


def kernels(text: str) -> dict[str, tuple[list[Instruction], dict[str, int]]]:
    """By kernel its instructions, and for each label the position of what follows it."""
    found: dict[str, tuple[list[Instruction], dict[str, int]]] = {}
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if section := _SECTION.match(line):
            code, labels = [], {}
            found[section[1]] = code, labels
        elif label := _LABEL.match(line):
            labels[label[1]] = len(code)
        elif told := _INSTRUCTION.match(line):
            code.append(Instruction(told[2], told[3], told[1] is not None))
    return found


def blocks(code: Sequence[Instruction], labels: Mapping[str, int]) -> list[Block]:
    """The control flow, the entry first."""
    starts = {0, *(at for at in labels.values() if at < len(code))}
    starts |= {k + 1 for k, i in enumerate(code[:-1]) if _leaves(i)}
    order = sorted(starts)
    number = {start: k for k, start in enumerate(order)}
    joins: dict[str, str] = {}  # by convergence barrier, where the latest of its regions ends
    found = []
    for start, end in zip(order, [*order[1:], len(code)], strict=True):
        for i in code[start:end]:
            if i.family == "BSSY" and i.target:
                joins[i.operands.split(",")[0]] = i.target
        last = code[end - 1]
        goals = []
        if last.family == "BRA" and last.target:
            goals.append(labels[last.target])
        elif last.family == "BSYNC" and last.operands in joins:
            goals.append(labels[joins[last.operands]])
        if _falls_through(last):
            goals.append(end)
        found.append(Block(tuple(code[start:end]), tuple(number[g] for g in goals if g in number)))
    return found


def innermost(flow: Sequence[Block], families: Sequence[str]) -> Counter[str]:
    """The operations of a kernel's main loop."""
    code = [i for block in flow for i in block.instructions]
    return Counter(code[position].family for position in main_loop(flow, families))


def main_loop(flow: Sequence[Block], families: Sequence[str]) -> list[int]:
    """The positions of the innermost loop with the most operations of these families, if any.

    Where several have as many, that of the fewest operations in all. Where a product stores the
    tile before beside its first steps, what it stores is in the loop, and counts.
    """

    def length(loop: frozenset[int]) -> int:
        return sum(len(flow[k].instructions) for k in loop)

    def wanted(loop: frozenset[int]) -> int:
        return sum(i.family in families for k in loop for i in flow[k].instructions)

    some = [loop for loop in natural_loops(flow) if wanted(loop)]
    inner = [loop for loop in some if not any(other < loop for other in some)]
    if not inner:
        return []
    best, first, found = max(inner, key=lambda loop: (wanted(loop), -length(loop))), 0, []
    for k, block in enumerate(flow):
        found += range(first, first + len(block.instructions)) if k in best else ()
        first += len(block.instructions)
    return found


def natural_loops(flow: Sequence[Block]) -> Iterator[frozenset[int]]:
    """The blocks of each loop; loops with one head are one loop."""
    above = _dominators(flow)
    before = _before(flow)
    loops: dict[int, set[int]] = {}
    for k, block in enumerate(flow):
        for head in block.next:
            if k in above and head in above[k]:
                body = loops.setdefault(head, {head})
                todo = [k]
                while todo:
                    at = todo.pop()
                    if at not in body:
                        body.add(at)
                        todo += before[at]
    return map(frozenset, loops.values())


def _dominators(flow: Sequence[Block]) -> dict[int, set[int]]:
    """By block that can be reached all that every way to it passes, itself among them."""
    before = _before(flow)
    reached, todo = [0], [0]
    seen = {0}
    while todo:
        for k in flow[todo.pop()].next:
            if k not in seen:
                seen.add(k)
                reached.append(k)
                todo.append(k)
    found = {k: set(seen) for k in reached} | {0: {0}}
    changed = True
    while changed:
        changed = False
        for k in sorted(seen - {0}):
            ways = [found[p] for p in before[k] if p in seen]
            now = set.intersection(*ways) | {k}
            if now != found[k]:
                found[k], changed = now, True
    return found


def _before(flow: Sequence[Block]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in flow]
    for k, block in enumerate(flow):
        for goal in block.next:
            before[goal].append(k)
    return before


def _leaves(i: Instruction) -> bool:
    return i.family in ("BRA", "BSYNC", *_ENDS)


def _falls_through(i: Instruction) -> bool:
    """Whether the next instruction may follow."""
    if i.family == "BRA":  # with a condition: a predicate before it, among its operands, or .DIV
        return i.guarded or "." in i.operation or not i.operands.startswith("`")
    if i.family == "BSYNC":
        return i.guarded
    return i.guarded or i.family not in _ENDS


def _tool() -> str:
    on_path = shutil.which("nvdisasm")
    if on_path is not None:
        return on_path
    package = find_spec("nvidia")
    folders = package.submodule_search_locations if package else None
    tools = [t for folder in folders or () for t in Path(folder).glob("*/bin/nvdisasm")]
    if not tools:
        raise LegoError(
            "there is no nvdisasm, neither on the PATH nor installed by pip",
            hint="pip install nvidia-cuda-nvdisasm",
        )
    return str(tools[0])
