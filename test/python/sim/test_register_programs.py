"""Random programs: reads of unwritten registers against an interpreter of single threads."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.ptx.dataflow import live
from lego_mlir.sim.ptx.program import decode

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"

THREADS = 8
FUEL = 7
WORDS, HALVES, PREDICATES = (
    [f"%{x}{i}" for i in range(n)] for x, n in (("r", 3), ("h", 2), ("p", 2))
)
word, half, predicate = (st.sampled_from(names) for names in (WORDS, HALVES, PREDICATES))
guard = st.none() | st.tuples(predicate, st.booleans())
operation = st.one_of(
    st.tuples(st.just("number"), word, st.sampled_from([0, 1, 0xFFFFFFFF])),
    st.tuples(st.just("input"), word),
    st.tuples(st.just("short"), half),
    st.tuples(st.just("move"), word, word),
    st.tuples(st.just("add"), word, word, word),
    st.tuples(st.sampled_from(["and", "or"]), word, word, word),
    st.tuples(st.just("pack"), word, half, half),
    st.tuples(st.just("unpack"), st.permutations(HALVES), word),
    st.tuples(st.just("swap"), word, word, word),
    st.tuples(st.just("select"), word, word, word, predicate),
    st.tuples(st.just("test"), predicate, word),
    st.tuples(st.just("store"), word),
    st.tuples(st.just("pair"), word, word),
)
end = st.tuples(
    st.none() | st.tuples(predicate, st.booleans()), st.integers(0, 9), st.integers(0, 9)
)
block = st.tuples(st.lists(st.tuples(guard, operation), max_size=5), end)
programs = st.lists(block, min_size=1, max_size=5)
inputs = st.lists(st.integers(0, 2**32 - 1), min_size=THREADS, max_size=THREADS)


def spelled(op):
    match op:
        case "number", d, value:
            return f"mov.b32 {d}, {value};"
        case "input", d:
            return f"mov.b32 {d}, %in;"
        case "short", d:
            return f"mov.b16 {d}, 3;"
        case "move", d, s:
            return f"mov.b32 {d}, {s};"
        case "add", d, a, b:
            return f"add.u32 {d}, {a}, {b};"
        case ("and" | "or") as name, d, a, b:
            return f"{name}.b32 {d}, {a}, {b};"
        case "pack", d, a, b:
            return f"mov.b32 {d}, {{{a}, {b}}};"
        case "unpack", (a, b), s:
            return f"mov.b32 {{{a}, {b}}}, {s};"
        case "swap", d, a, b:
            return f"prmt.b32 {d}, {a}, {b}, 0x1634;"
        case "select", d, a, b, p:
            return f"selp.b32 {d}, {a}, {b}, {p};"
        case "test", p, a:
            return f"setp.ne.u32 {p}, {a}, 0;"
        case "store", a:
            return f"st.global.b32 [%a], {a};"
        case "pair", a, b:
            return f"st.global.v2.b32 [%a], {{{a}, {b}}};"


def text_of(blocks):
    """PTX, and the line of each operation: (block, number) → line, the end being number None."""
    lines = [
        *HEADER.splitlines(),
        ".visible .entry k(.param .u64 out, .param .u64 in)",
        "{",
        ".reg .pred %p<2>, %q, %z; .reg .b16 %h<2>; .reg .b32 %r<3>, %in, %bits, %bit, %fuel, %t;",
        ".reg .b64 %a, %b; ld.param.u64 %a, [out]; ld.param.u64 %b, [in]; mov.u32 %t, %tid.x;",
        "mad.wide.u32 %a, %t, 8, %a; mad.wide.u32 %b, %t, 4, %b; ld.global.b32 %in, [%b];",
        f"mov.b32 %bits, %in; mov.b32 %fuel, {FUEL};",
    ]
    lines_of = {}
    for b, (operations, (by, *targets)) in enumerate(blocks):
        lines.append(f"B{b}: setp.eq.u32 %z, %fuel, 0; @%z bra END; sub.u32 %fuel, %fuel, 1;")
        for i, (condition, op) in enumerate(operations):
            lines.append(guarded(condition) + spelled(op))
            lines_of[b, i] = len(lines)
        lines.append("and.b32 %bit, %bits, 1; shr.u32 %bits, %bits, 1; setp.ne.u32 %q, %bit, 0;")
        first, second = (t % len(blocks) for t in targets)
        lines.append(f"{guarded(by or ('%q', False))}bra B{first};")
        lines_of[b, None] = len(lines)
        lines.append(f"bra B{second};")
    return "\n".join([*lines, "END: ret;", "}"]), lines_of


def guarded(condition):
    return "" if condition is None else f"@{'!' * condition[1]}{condition[0]} "


class Missing(Exception):
    """A value is needed that has not been written."""


class Thread:
    """One thread; a register is a list of bytes, of which those not written are None."""

    def __init__(self, number):
        self.input = number
        self.registers = {r: [None] * 4 for r in WORDS} | {h: [None] * 2 for h in HALVES}
        self.registers |= {p: [None] for p in PREDICATES}

    def needed(self, register):
        if all(byte is None for byte in self.registers[register]):
            raise Missing
        return self.value(register)

    def value(self, register):
        """Bytes that are not written are ones, as they are in the machine."""
        return sum(
            (255 if x is None else x) << 8 * i for i, x in enumerate(self.registers[register])
        )

    def lost(self, register):
        return all(byte is None for byte in self.registers[register])

    def holds(self, condition):
        return condition is None or bool(self.needed(condition[0])) != condition[1]

    def put(self, register, value):
        size = len(self.registers[register])
        self.registers[register] = (
            [None] * size
            if value is None
            else list((value % 2 ** (8 * size)).to_bytes(size, "little"))
        )

    def do(self, op):
        held = self.registers
        match op:
            case "number", d, value:
                self.put(d, value)
            case "input", d:
                self.put(d, self.input)
            case "short", d:
                self.put(d, 3)
            case "move", d, s:
                held[d] = held[s]
            case "add", d, a, b:
                gone = self.lost(a) or self.lost(b)
                self.put(d, None if gone else self.value(a) + self.value(b))
            case ("and" | "or") as name, d, a, b:
                decided = 0 if name == "and" else 2**32 - 1
                x, y = (None if self.lost(r) else self.value(r) for r in (a, b))
                if x is None or y is None:
                    self.put(d, decided if decided in (x, y) else None)
                else:
                    self.put(d, x & y if name == "and" else x | y)
            case "pack", d, a, b:
                held[d] = held[a] + held[b]
            case "unpack", (a, b), s:
                held[a], held[b] = held[s][:2], held[s][2:]
            case "swap", d, a, b:
                both = held[a] + held[b]
                held[d] = [both[4], both[3], both[6], both[1]]
            case "select", d, a, b, p:
                held[d] = held[a] if self.needed(p) else held[b]
            case "test", p, a:
                self.put(p, None if self.lost(a) else int(self.value(a) != 0))
            case "store", a:
                self.needed(a)
            case "pair", a, b:
                if self.lost(a) and self.lost(b):
                    raise Missing


def first_missing(blocks, lines_of, number):
    """The line at which a thread with this input needs what it has not written; None for none."""
    thread = Thread(number)
    at, bits = 0, number
    for _ in range(FUEL):
        operations, (by, *targets) = blocks[at]
        try:
            for i, (condition, op) in enumerate(operations):
                line = lines_of[at, i]
                if thread.holds(condition):
                    thread.do(op)
            line = lines_of[at, None]
            goes = bool(bits & 1) if by is None else thread.holds(by)
        except Missing:
            return line
        bits >>= 1
        at = targets[not goes] % len(blocks)
    return None


@settings(max_examples=300, deadline=None)
@given(programs, inputs, st.sampled_from(["late", "random"]))
def test_the_first_uninitialized_read_is_found(blocks, numbers, order):
    text, lines_of = text_of(blocks)
    want = [first_missing(blocks, lines_of, n) for n in numbers]
    error = error_of(text, [np.zeros(2 * THREADS, "u4"), np.array(numbers, "u4")], order)
    if error is None:
        assert not any(want)
    else:
        thread = re.search(r"which has not been written .* in thread \((\d+), 0, 0\)", str(error))
        assert error.location.line == want[int(thread[1])]


def error_of(text, arguments, order):
    try:
        sim.launch(text, "k", (1, 1, 1), (THREADS, 1, 1), arguments, order=order)
    except LegoError as error:
        return error
    return None


@settings(max_examples=100, deadline=None)
@given(programs)
def test_liveness_is_a_way_to_a_read(blocks):
    """A register lives at an instruction if some way leads to a read of it and no write before."""
    module = sim.parse(text_of(blocks)[0])
    program = decode.__wrapped__(module, module.kernels["k"])
    points = {}
    for b, block_ in enumerate(program.basic_blocks):
        for i, uses in enumerate(block_.uses):
            last = i + 1 == len(block_.uses)
            after = [(s, 0) for s in block_.successors] if last else [(b, i + 1)]
            points[b, i] = uses, after
    found = live(program.basic_blocks)
    for start in points:
        for register in range(len(module.kernels["k"].registers)):
            seen, waiting, lives = set(), [start], False
            while waiting and not lives:
                at = waiting.pop()
                if at in seen or at not in points:
                    continue
                seen.add(at)
                uses, after = points[at]
                lives = register in (*uses.reads, *uses.decides)
                if uses.guard is not None or register not in uses.writes:
                    waiting += after
            assert (found[start[0]][start[1]] >> register & 1) == lives
