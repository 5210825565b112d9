"""Hardware counters of kernels, as Nsight Compute prints them, and their report.

Stalls are sampled: every few clocks a warp's state is recorded with its instruction. Only samples
in the main loop count, the loop with the matrix instructions (`bench.profile.sass`); the stalls of
producer warps are left out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO

from bench.gemm.references import GemmReference
from bench.profile.sass import MATRIX, Instruction, basic_blocks, main_loop
from bench.report.results import Result
from bench.report.tables import commits_and_devices, number, table
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
_STALLS = {
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
"""Nsight Compute's abbreviations of warp states, and their meaning."""

_MAX_STALLS = 4


def counters(text: str) -> list[Values]:
    """Return the counters of each kernel from the page `raw`, as CSV in base units."""
    head, _, *rows = csv.reader(StringIO(text))
    at = {name: head.index(name) for name in METRICS if name in head}
    return [{name: float(row[k].replace(",", "")) for name, k in at.items()} for row in rows]


def samples(text: str) -> list[Values]:
    """Return how often warps of each kernel's main loop were in each state.

    A sample without a column is a wait for `wgmma`. So is one that the page counts as a barrier at
    an instruction that waits for wgmma groups.

    Args:
        text: the page `source`, as CSV.
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
        for position in main_loop(basic_blocks(code, labels), MATRIX):
            row = rows[1 + position]
            sampled = {name: float(row[at[name]] or 0) for name in states}
            if code[position].operation.startswith("WARPGROUP.DEPBAR"):
                sampled["stall_barrier"] = 0.0
            for name, count in sampled.items():
                totals[name] += count
            totals["stall_gmma"] += float(row[at["# Samples"]] or 0) - sum(sampled.values())
        found.append({name.removeprefix("stall_"): count for name, count in totals.items()})
    return found


def _listings(text: str) -> Iterator[list[list[str]]]:
    """Yield the rows of each kernel, the first of which holds the titles."""
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
    """Parse an instruction, with its addresses replaced by labels as nvdisasm writes them."""
    match = _INSTRUCTION.match(text)
    if match is None:
        raise LegoError(f"'{text}' is not an instruction of Nsight Compute's source page")
    operands = _ADDRESS.sub(r"`(.L_\g<0>)", match[3])
    return Instruction(match[2], operands, match[1] is not None)


# --------------------------------------------------------------------------------------- report
def report(results: Sequence[Result]) -> str:
    """Return the Markdown of profiles."""
    return f"{_preamble(results)}\n{counter_table(results)}"


def _preamble(results: Sequence[Result]) -> str:
    return (
        f"{commits_and_devices(results)} Command: `{results[0]['command']}`.\n\n"
        "Each row is one launch after 20 others; the clocks are not locked. `tensor pipe` is the "
        "share of active cycles (the SM has a CTA) in which the tensor pipe is busy, followed by "
        "the share of all cycles; for the same GEMM `mma.sync` keeps it busy longer than `wgmma`. "
        "`FLOP/clock` is per SM. `bank conflicts` are extra shared-memory wavefronts, in percent. "
        "`stalls` are those of the warps that issue the matrix instructions, as shares of the "
        "samples in the main loop.\n"
    )


def counter_table(results: Sequence[Result]) -> str:
    """Return the table of counters, a row for each kernel."""
    head = ["case", "kernel", "µs", "GHz", "FLOP/clock", "tensor pipe", "of all cycles"]
    head += ["instructions", "issue slots", "registers", "L2 MB", "L2 hits", "DRAM read MB"]
    head += ["DRAM written MB", "shared memory", "bank conflicts", "stalls"]
    rows = []
    for r in results:
        flops = GemmReference.from_json(r["reference"]).flops
        for name, counted in r["counters"].items():
            values = [counted[metric] for metric in METRICS]
            ns, cycles, active, elapsed, instructions, issue, cache, hits, *rest = values
            read, written, shared, wavefronts, conflicts, registers, sms = rest
            row = [
                number(ns / 1e3, 1),
                number(cycles / ns, 3),
                number(flops / cycles / sms, 0),
                *(f"{percent:.1f} %" for percent in (active, elapsed)),
                f"{instructions / 1e6:.1f} M",
                f"{issue:.0f} %",
                number(registers, 0),
                number(cache / 1e6, 0),
                f"{hits:.0f} %",
                *(number(size / 1e6, 0) for size in (read, written)),
                f"{shared:.0f} %",
                f"{100 * conflicts / wavefronts:.1f}",
                _stalls(r["samples"][name]),
            ]
            rows.append([r["case"], name, *row])
    return table(head, rows)


def _stalls(states: Values) -> str:
    """Return the most frequent states of a warp, with their shares."""
    total = sum(states.values())
    most = sorted(states, key=lambda name: -states[name])[:_MAX_STALLS]
    return ", ".join(f"{_STALLS.get(name, name)} {states[name] / total:.0%}" for name in most)
