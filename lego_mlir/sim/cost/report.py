"""Costs as a text table: what wastes most comes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lego_mlir.hardware.limits import BANK_BYTES, BANKS, SECTOR_BYTES
from lego_mlir.sim.cost.counter import Costs, IssueCount, MemoryCost

_WAVEFRONT_BYTES = BANKS * BANK_BYTES
_UNITS = ("bytes", "KiB", "MiB", "GiB")


@dataclass(frozen=True, slots=True)
class _Line:
    """The cost of the instructions of one kind at one source location."""

    location: str
    opcode: str
    space: str
    requests: int
    bytes: int
    cost: int
    least: int

    @property
    def waste(self) -> int:
        """Return the bytes of the excess sectors or wavefronts."""
        unit = _WAVEFRONT_BYTES if self.space == "shared" else SECTOR_BYTES
        return (self.cost - self.least) * unit


def report(costs: Costs) -> str:
    """Return the costs of a launch as text: memory accesses by waste, instructions by class.

    Instructions of the same kind that come from the same line and column of the source, such as
    those of an unrolled loop, share a row.
    """
    totals = (
        f"{_count(costs.excess_sectors, 'excess sector')}, "
        f"{_count(costs.excess_wavefronts, 'excess wavefront')}"
    )
    lines = sorted(_merged(costs.memory), key=lambda line: -line.waste)
    memory = [("memory", "", "space", "requests", "requested", "moved", "least", "excess")]
    for line in lines:
        unit = "wavefronts" if line.space == "shared" else "sectors"
        moved = (
            (f"{line.cost} {unit}", str(line.least), _times(line)) if line.cost else ("", "", "")
        )
        memory.append(
            (line.location, line.opcode, line.space, str(line.requests), _bytes(line.bytes), *moved)
        )
    classes = [("instructions", "by warps", "by lanes", "a thread")]
    total = sum(costs.classes.values(), IssueCount())
    for name, issues in (*costs.classes.items(), ("all", total)):
        each = f"{issues.lanes / costs.threads:.2f}"
        classes.append((name, str(issues.warps), str(issues.lanes), each))
    body = _table(memory, "<<<>>>>>") if lines else []
    if costs.excess_half_lines:
        times = costs.half_lines / (costs.half_lines - costs.excess_half_lines)
        body.append(
            f"  loads touch {costs.half_lines} halves of lines, in which device memory is read: "
            f"{times:.1f}× the least"
        )
    return "\n".join([f"costs    {costs.kernel}  {totals}", *body, "", *_table(classes, "<>>>")])


def _merged(rows: Iterable[MemoryCost]) -> list[_Line]:
    """Return the rows merged by location, opcode and memory, in order of first occurrence."""
    found: dict[tuple[str, str, str], _Line] = {}
    for row in rows:
        location = str(row.source) if row.source else f"PTX line {row.instruction.line}"
        key = location, row.instruction.opcode, row.space
        old = found.get(key, _Line(*key, 0, 0, 0, 0))
        found[key] = _Line(
            *key,
            old.requests + row.requests,
            old.bytes + row.bytes,
            old.cost + row.sectors + row.wavefronts,
            old.least + row.least_sectors + row.least_wavefronts,
        )
    return list(found.values())


def _times(line: _Line) -> str:
    """Return the excess over the least: `0`, or `31744 (32.0×)`."""
    excess = line.cost - line.least
    return f"{excess} ({line.cost / line.least:.1f}×)" if excess else "0"


def _bytes(count: int) -> str:
    """Return a number of bytes in the largest unit that leaves at least 1: `4.0 MiB`."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} bytes"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _table(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Return rows with aligned columns, `<` to the left and `>` to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, align, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
