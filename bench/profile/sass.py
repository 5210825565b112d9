"""Counts of the instructions of a kernel's main loop, in machine code.

The main loop is the innermost natural loop (Aho, Lam, Sethi and Ullman, Compilers, section 9.6.6)
with the most matrix instructions. Code that waits out of line for a barrier and then jumps back
belongs to the loop in which it waits; it does not form a loop around it.

Needs `nvdisasm` on the PATH, or pip install nvidia-cuda-nvdisasm.
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
"""Matrix instructions of a warp and, `…GMMA`, of a warpgroup."""

COPIES = ("LDGSTS", "UTMALDG", "UBLKCP")
"""Asynchronous copies to shared memory: cp.async, and those of TMA."""

_SECTION = re.compile(r"^\.text\.([^\s:]+):")
_LABEL = re.compile(r"^(\.L[\w.]+):")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_TARGET = re.compile(r"`\((\.L[\w.]+)\)")
_ENDS = ("EXIT", "RET", "BRX", "JMX")


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: its operation with modifiers, and whether a predicate guards it."""

    operation: str
    operands: str
    guarded: bool

    @property
    def family(self) -> str:
        """Return the operation without modifiers."""
        return self.operation.partition(".")[0]

    @property
    def target(self) -> str | None:
        """Return the label among the operands, `None` if there is none."""
        match = _TARGET.search(self.operands)
        return match and match[1]


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions that run in sequence, and the numbers of the blocks that may follow."""

    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]


def main_loops(cubin: bytes) -> dict[str, dict[str, dict[str, int]]]:
    """Count operations by kernel: `loop`, its main loop; `copies`, the loop that copies; `kernel`.

    `loop` and `copies` are the same if the warps that issue matrix instructions also copy, and
    empty if there is no such loop.

    Raises:
        LegoError: nvdisasm is missing, or fails.
    """
    found = {}
    for name, (code, labels) in kernels(disassemble(cubin)).items():
        flow = basic_blocks(code, labels)
        found[name] = {
            "loop": dict(main_loop_counts(flow, MATRIX)),
            "copies": dict(main_loop_counts(flow, COPIES)),
            "kernel": dict(Counter(i.family for i in code)),
        }
    return found


def disassemble(cubin: bytes) -> str:
    """Return the text that nvdisasm prints.

    Raises:
        LegoError: nvdisasm is missing, or fails.
    """
    tool = _tool()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [tool, "-c", file.name], capture_output=True, text=True, check=False, timeout=60
        )
    if done.returncode:
        raise LegoError(f"nvdisasm fails: {done.stderr.strip()[:300]}")
    return done.stdout


def kernels(text: str) -> dict[str, tuple[list[Instruction], dict[str, int]]]:
    """Return the instructions of each kernel, and the position of each label among them."""
    found: dict[str, tuple[list[Instruction], dict[str, int]]] = {}
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if section := _SECTION.match(line):
            code, labels = [], {}
            found[section[1]] = code, labels
        elif label := _LABEL.match(line):
            labels[label[1]] = len(code)
        elif match := _INSTRUCTION.match(line):
            code.append(Instruction(match[2], match[3], match[1] is not None))
    return found


def basic_blocks(code: Sequence[Instruction], labels: Mapping[str, int]) -> list[BasicBlock]:
    """Return the control flow graph, the entry first."""
    starts = {0, *(at for at in labels.values() if at < len(code))}
    starts |= {k + 1 for k, i in enumerate(code[:-1]) if _ends_block(i)}
    order = sorted(starts)
    number = {start: k for k, start in enumerate(order)}
    joins: dict[str, str] = {}  # by convergence barrier: where its latest region ends
    found = []
    for start, end in zip(order, [*order[1:], len(code)], strict=True):
        for i in code[start:end]:
            if i.family == "BSSY" and i.target:
                joins[i.operands.split(",")[0]] = i.target
        last = code[end - 1]
        targets = []
        if last.family == "BRA" and last.target:
            targets.append(labels[last.target])
        elif last.family == "BSYNC" and last.operands in joins:
            targets.append(labels[joins[last.operands]])
        if _falls_through(last):
            targets.append(end)
        successors = tuple(number[x] for x in targets if x in number)
        found.append(BasicBlock(tuple(code[start:end]), successors))
    return found


def main_loop_counts(flow: Sequence[BasicBlock], families: Sequence[str]) -> Counter[str]:
    """Count the operations of a kernel's main loop."""
    code = [i for block in flow for i in block.instructions]
    return Counter(code[position].family for position in main_loop(flow, families))


def main_loop(flow: Sequence[BasicBlock], families: Sequence[str]) -> list[int]:
    """Return the positions of the innermost loop with the most operations of some families.

    Among several with as many, the shortest is taken; without any, the list is empty. If a kernel
    stores the previous tile during the first iterations, those stores are in the loop and count.
    """

    def length(loop: frozenset[int]) -> int:
        return sum(len(flow[k].instructions) for k in loop)

    def matches(loop: frozenset[int]) -> int:
        return sum(i.family in families for k in loop for i in flow[k].instructions)

    some = [loop for loop in natural_loops(flow) if matches(loop)]
    inner = [loop for loop in some if not any(other < loop for other in some)]
    if not inner:
        return []
    best, first, found = max(inner, key=lambda loop: (matches(loop), -length(loop))), 0, []
    for k, block in enumerate(flow):
        found += range(first, first + len(block.instructions)) if k in best else ()
        first += len(block.instructions)
    return found


def natural_loops(flow: Sequence[BasicBlock]) -> Iterator[frozenset[int]]:
    """Yield the blocks of each natural loop; loops with the same header are one loop."""
    dominators = _dominators(flow)
    predecessors = _predecessors(flow)
    loops: dict[int, set[int]] = {}
    for k, block in enumerate(flow):
        for header in block.successors:
            if k in dominators and header in dominators[k]:
                body = loops.setdefault(header, {header})
                todo = [k]
                while todo:
                    at = todo.pop()
                    if at not in body:
                        body.add(at)
                        todo += predecessors[at]
    return map(frozenset, loops.values())


def _dominators(flow: Sequence[BasicBlock]) -> dict[int, set[int]]:
    """Return the dominators of each reachable block, itself among them."""
    predecessors = _predecessors(flow)
    reached, todo = [0], [0]
    seen = {0}
    while todo:
        for k in flow[todo.pop()].successors:
            if k not in seen:
                seen.add(k)
                reached.append(k)
                todo.append(k)
    found = {k: set(seen) for k in reached} | {0: {0}}
    changed = True
    while changed:
        changed = False
        for k in sorted(seen - {0}):
            incoming = [found[p] for p in predecessors[k] if p in seen]
            updated = set.intersection(*incoming) | {k}
            if updated != found[k]:
                found[k], changed = updated, True
    return found


def _predecessors(flow: Sequence[BasicBlock]) -> list[list[int]]:
    predecessors: list[list[int]] = [[] for _ in flow]
    for k, block in enumerate(flow):
        for successor in block.successors:
            predecessors[successor].append(k)
    return predecessors


def _ends_block(i: Instruction) -> bool:
    return i.family in ("BRA", "BSYNC", *_ENDS)


def _falls_through(i: Instruction) -> bool:
    """Return whether control may continue with the next instruction."""
    if i.family == "BRA":  # conditional: guarded, with a predicate operand, or .DIV
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
            "nvdisasm is neither on the PATH nor installed by pip",
            hint="pip install nvidia-cuda-nvdisasm",
        )
    return str(tools[0])
