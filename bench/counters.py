"""Hardware counters of kernels, as Nsight Compute prints them, and the table of them.

What warps wait for is sampled: every few clocks the state of a warp is noted with its instruction.
Of those samples the ones in the main loop count, the loop that multiplies (`bench.sass`): where
other warps fetch, their waiting is not told.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO

from bench.gemm.product import Product
from bench.results import Result
from bench.sass import MATRIX, Instruction, blocks, main_loop
from bench.tables import all_of, number, table
from lego_mlir.diagnostics import LegoError

Values = dict[str, float]

METRICS = (
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.max",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "lts__t_bytes.sum",
    "lts__t_sector_hit_rate.pct",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "launch__registers_per_thread",
    "launch__sm_count",
)

_INSTRUCTION = re.compile(r"^\s*(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*$")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
_WAITS = {
    "long_sb": "long scoreboard",
    "short_sb": "short scoreboard",
    "math": "tensor pipe busy",
    "mio": "shared memory queue",
    "barrier": "barrier",
    "gmma": "wgmma",
    "wait": "fixed latency",
    "selected": "issuing",
    "not_selected": "not selected",
}
"""By Nsight Compute's name of a state what it is, of those that have a name here."""

_MOST_WAITS = 4


def counters(text: str) -> list[Values]:
    """The counters of each kernel: the page `raw` as CSV, in base units."""
    head, _, *rows = csv.reader(StringIO(text))
    at = {name: head.index(name) for name in METRICS if name in head}
    return [{name: float(row[k].replace(",", "")) for name, k in at.items()} for row in rows]


def samples(text: str) -> list[Values]:
    """By kernel how often a warp was seen in each state in its main loop: the page `source` as CSV.

    What is sampled and has no column is a wait for `wgmma`; so is what stands as a wait at a
    barrier at an instruction that waits for groups of them.
    """
    found = []
    for rows in _listings(text):
        at = {name: k for k, name in enumerate(rows[0])}
        states = [name for name in at if name.startswith("stall_") and "(" not in name]
        code, labels = [], {}
        for position, row in enumerate(rows[1:]):
            labels[f".L_{row[at['Address']]}"] = position
            code.append(_instruction(row[at["Source"]]))
        totals = dict.fromkeys(states, 0.0) | {"stall_gmma": 0.0}
        for position in main_loop(blocks(code, labels), MATRIX):
            row = rows[1 + position]
            seen = {name: float(row[at[name]] or 0) for name in states}
            if code[position].operation.startswith("WARPGROUP.DEPBAR"):
                seen["stall_barrier"] = 0.0
            for name, count in seen.items():
                totals[name] += count
            totals["stall_gmma"] += float(row[at["# Samples"]] or 0) - sum(seen.values())
        found.append({name.removeprefix("stall_"): count for name, count in totals.items()})
    return found


def _listings(text: str) -> Iterator[list[list[str]]]:
    """The lines of each kernel, under a line of titles."""
    rows: list[list[str]] = []
    for row in csv.reader(StringIO(text)):
        if row[:1] == ["Kernel Name"]:
            if rows:
                yield rows
            rows = []
        elif row:
            rows.append(row)
    if rows:
        yield rows


def _instruction(text: str) -> Instruction:
    """An instruction whose addresses are labels, as nvdisasm writes them."""
    told = _INSTRUCTION.match(text)
    if told is None:
        raise LegoError(f"'{text}' is no instruction")
    return Instruction(told[2], _ADDRESS.sub(r"`(.L_\g<0>)", told[3]), told[1] is not None)


# --------------------------------------------------------------------------------------- report
def report(results: Sequence[Result]) -> str:
    """The Markdown of profiles."""
    return f"{_preamble(results)}\n{counter_table(results)}"


def _preamble(results: Sequence[Result]) -> str:
    return (
        f"Commit {', '.join(all_of(results, 'commit') + all_of(results, 'device'))}, by "
        f"`{results[0]['command']}`.\n\n"
        "One launch after 20 others, clocks as they are. The tensor pipe is told in parts of the "
        "clocks in which a multiprocessor has a block, and of all; `mma.sync` keeps it busy longer "
        "for a product than `wgmma`. Operations are those of the product, in a clock of one "
        "multiprocessor. Conflicts are extra passes through shared memory, of a hundred. Waits are "
        "those of the warps that multiply, in parts of the samples in the main loop.\n"
    )


def counter_table(results: Sequence[Result]) -> str:
    """A line a kernel."""
    head = ["case", "who", "µs", "GHz", "FLOP a clock", "tensor pipe", "of all clocks"]
    head += ["instructions", "issue slots", "registers", "L2 MB", "L2 hits", "DRAM read MB"]
    head += ["written MB", "shared memory", "conflicts", "waits"]
    rows = []
    for r in results:
        flops = Product.from_json(r["reference"]).flops
        for who, told in r["counters"].items():
            seen = [told[name] for name in METRICS]
            us, clocks, active, elapsed, instructions, issue, cache, hits, *rest = seen
            read, written, shared, passes, conflicts, registers, processors = rest
            row = [
                number(us / 1e3, 1),
                number(clocks / us, 3),
                number(flops / clocks / processors, 0),
                *(f"{part:.1f} %" for part in (active, elapsed)),
                f"{instructions / 1e6:.1f} M",
                f"{issue:.0f} %",
                number(registers, 0),
                number(cache / 1e6, 0),
                f"{hits:.0f} %",
                *(number(part / 1e6, 0) for part in (read, written)),
                f"{shared:.0f} %",
                f"{100 * conflicts / passes:.1f}",
                _waits(r["samples"][who]),
            ]
            rows.append([r["case"], who, *row])
    return table(head, rows)


def _waits(states: Values) -> str:
    """The most frequent states of a warp."""
    total = sum(states.values())
    most = sorted(states, key=lambda name: -states[name])[:_MOST_WAITS]
    return ", ".join(f"{_WAITS.get(name, name)} {states[name] / total:.0%}" for name in most)
