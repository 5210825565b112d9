"""Random programs: a race is found exactly where one of all pairs of accesses is in no order."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from race_cases import tidy

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError

THREADS = (0, 1, 2, 32, 33)
"""Who accesses memory in random programs; the others only come to the barriers."""

WORDS, WIDTHS = 3, (1, 2, 4)
"""Words that they access, and the bytes of an access, which may begin anywhere it is aligned."""


@dataclass(frozen=True)
class Step:
    """One instruction of a random program.

    Attributes:
        kind: `ld`, `st`, `atom`; `bar` for all; `named` for the warps in `who`, one of which only
            arrives where `first` is 0 or 1; `warp` for the lanes of each warp apart: those in
            `who`, and the rest.
        who: bits, of `THREADS`, of warps or of lanes.
        first, width: byte and bytes of an access.
    """

    kind: str
    who: int
    first: int = 0
    width: int = 4

    def does(self, thread: int) -> bool:
        return bool(self.who >> THREADS.index(thread) & 1)

    def touches(self, other: "Step") -> bool:
        return self.first < other.first + other.width and other.first < self.first + self.width

    @property
    def accesses(self) -> bool:
        return self.kind in ("ld", "st", "atom")


@st.composite
def steps(draw):
    kind = draw(st.sampled_from(["ld", "ld", "st", "st", "atom", "bar", "named", "warp", "warp"]))
    if kind in ("ld", "st", "atom"):
        width = 4 if kind == "atom" else draw(st.sampled_from(WIDTHS))
        first = draw(st.integers(0, 4 * WORDS // width - 1)) * width
        return Step(kind, draw(st.integers(1, 2 ** len(THREADS) - 1)), first, width)
    if kind == "named":
        return Step(kind, 3, draw(st.integers(0, 2)))
    return Step(kind, draw(st.integers(1, 2**32 - 2)))


def ptx(program: list[Step]) -> str:
    """The program, for a CTA of two warps, in which all `WORDS` have been written before."""
    bit = " ".join(f"setp.eq.u32 %p, %t, {t}; @%p mov.b32 %n, {i};" for i, t in enumerate(THREADS))
    blank = " ".join(f"@%p st.shared.b32 [words+{4 * k}], 0;" for k in range(WORDS))
    lines = [
        f".reg .pred %p, %q, %r; .reg .b32 %t, %n, %x, %lane; .shared .b32 words[{WORDS}];",
        f"mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; mov.b32 %n, 31; {bit}",
        f"setp.eq.u32 %p, %t, 0; {blank} bar.sync 0;",
    ]
    for number, step in enumerate(program):
        chosen = f"shr.u32 %x, {step.who}, %n; and.b32 %x, %x, 1; setp.eq.u32 %p, %x, 1;"
        at = f"[words+{step.first}]"
        match step.kind:
            case "ld":
                lines.append(f"{chosen} @%p ld.shared.u{8 * step.width} %x, {at};")
            case "st":
                lines.append(f"{chosen} @%p st.shared.u{8 * step.width} {at}, %x;")
            case "atom":
                lines.append(f"{chosen} @%p atom.shared.add.u32 %x, {at}, 1;")
            case "bar":
                lines.append("bar.sync 0;")
            case "named":
                # Numbers of their own, so that no arrival is taken for one at another barrier.
                sync, arrive = f"bar.sync {1 + number}, 64;", f"bar.arrive {1 + number}, 64;"
                test = "eq" if step.first else "ne"
                chosen = f"setp.lt.u32 %q, %t, 32; setp.{test}.u32 %r, 0, 0;"
                lines.append(
                    sync
                    if step.first == 2
                    else f"{chosen} xor.pred %q, %q, %r; @%q {arrive} @!%q {sync}"
                )
            case "warp":
                lines.append(
                    f"shr.u32 %x, {step.who}, %lane; and.b32 %x, %x, 1; setp.eq.u32 %p, %x, 1; "
                    f"selp.b32 %x, {step.who}, {step.who ^ 0xFFFFFFFF}, %p; bar.warp.sync %x;"
                )
    return "\n".join(lines)


def spread(step: Step, after: set[int]) -> set[int]:
    """Who is ordered after an access once a step is over; before it these threads were."""
    match step.kind:
        case "bar":
            return set(range(64))
        case "named":
            # Warp `first` only arrives; the other one waits.
            return after | {t for t in range(64) if t // 32 != step.first}
        case _:
            groups = {(t // 32, step.who >> t % 32 & 1) for t in after}
            return {t for t in range(64) if (t // 32, step.who >> t % 32 & 1) in groups}


def races(program: list[Step]) -> bool:
    """Whether two accesses of one word are unordered: all pairs, one after the other."""
    for i, early in enumerate(program):
        for a in (t for t in THREADS if early.accesses and early.does(t)):
            after = {a}
            for j, late in enumerate(program[i:], i):
                if not late.accesses:
                    after = spread(late, after)
                    continue
                conflict = {early.kind, late.kind} not in ({"ld"}, {"atom"}) and late.touches(early)
                for b in (t for t in THREADS if conflict and late.does(t)):
                    if b not in after and not (i == j and a // 32 == b // 32):
                        return True
    return False


@given(
    st.lists(steps(), max_size=10),
    st.sampled_from(["late", "early", "random"]),
    st.integers(0, 99),
)
@settings(max_examples=500, deadline=None)
def test_random_programs(program, order, seed):
    head = ".version 8.7 .target sm_90a .address_size 64 .visible .entry k()"
    text = f"{head} {{ {ptx(program)} ret; }}"
    found = None
    with tidy(seed % 2 == 1):
        try:
            sim.launch(text, "k", (1, 1, 1), (64, 1, 1), [], order=order, seed=seed)
        except LegoError as e:
            found = e.message
    assert found is None or found.startswith("data race")
    assert (found is not None) == races(program)
