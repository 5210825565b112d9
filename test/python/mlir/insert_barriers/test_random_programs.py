"""Random kernels that go through shared memory in loops and branches never race."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from barrier_kernels import alloc, load, module, outputs, placed, store, typed
from hypothesis import given, settings
from hypothesis import strategies as st

WARPS = 2
PATTERNS = {
    "own": ("%t4", [(4, 1)]),
    "own reversed": ("%t4", [(2, 1), (2, 2)]),
    "of the warp": ("%in_warp", [(4, 32)]),
    "of the CTA": ("%t", [(4, 32 * WARPS)]),
}
INDICES = (
    "%c32 = arith.constant 32 : index",
    "%c128 = arith.constant 128 : index",
    "%warp = arith.divui %t, %c32 : index",
    "%lane = arith.remui %t, %c32 : index",
    "%base = arith.muli %warp, %c128 : index",
    "%in_warp = arith.addi %base, %lane : index",
    "%few = arith.constant 20 : index",
    "%some = arith.cmpi ult, %t, %few : index",
    "%all = arith.cmpi ult, %b, %c4 : index",
)


@dataclass(frozen=True)
class Step:
    """An access of one buffer; where it is in a branch, only `some` or `all` threads make it."""

    stores: bool
    buffer: str
    pattern: str
    branch: str


steps = st.lists(
    st.builds(
        Step,
        st.booleans(),
        st.sampled_from(["s0", "s1"]),
        st.sampled_from(list(PATTERNS)),
        st.sampled_from(["", "", "some", "all"]),
    ),
    min_size=1,
    max_size=6,
)


def lines(number: int, step: Step, value: str) -> tuple[list[str], str]:
    """Return the lines of a step, and the name of the value behind it."""
    at, strides = PATTERNS[step.pattern]
    if step.stores:
        found = [store(value, step.buffer, at, strides)]
        if step.branch:
            found = [f"scf.if %{step.branch} {{", *found, "}"]
        return found, value
    name = f"l{number}"
    found = [load(name, step.buffer, at, strides)]
    if step.branch:
        kinds = "f32, f32, f32, f32"
        given = ", ".join(f"%{value}#{k}" for k in range(4))
        taken = ", ".join(f"%{name}#{k}" for k in range(4))
        found = [
            f"%i{number}:4 = scf.if %{step.branch} -> ({kinds}) {{",
            *found,
            f"scf.yield {taken} : {kinds}",
            "} else {",
            f"scf.yield {given} : {kinds}",
            "}",
        ]
        name = f"i{number}"
    return [*found, *_sum(f"v{number}", value, name)], f"v{number}"


def _sum(name: str, a: str, b: str) -> list[str]:
    """Return a value of 4 elements, each the sum of two."""
    adds = [f"%{name}_{k} = arith.addf %{a}#{k}, %{b}#{k} : f32" for k in range(4)]
    given = ", ".join(f"%{name}_{k}" for k in range(4))
    kinds = "f32, f32, f32, f32"
    truth = f"%true_{name} = arith.constant true"
    return [
        *adds,
        truth,
        f"%{name}:4 = scf.if %true_{name} -> ({kinds}) {{",
        f"scf.yield {given} : {kinds}",
        "} else {",
        f"scf.yield {given} : {kinds}",
        "}",
    ]


def program(before: list[Step], inside: list[Step], after: list[Step]) -> str:
    """Return a kernel of steps before a loop, inside of it and after it."""
    body = [*INDICES, alloc("s0"), alloc("s1"), load("v", "x", "%t4", [(4, 1)])]
    body += [store("v", name, "%t4", [(4, 1)]) for name in ("s0", "s1")]
    value = "v"
    for k, step in enumerate(before):
        more, value = lines(k, step, value)
        body += more
    kinds = "f32, f32, f32, f32"
    first = ", ".join(f"%a{k} = %{value}#{k}" for k in range(4))
    body.append(f"%r:4 = scf.for %k = %c0 to %c4 step %c1 iter_args({first}) -> ({kinds}) {{")
    carried = ", ".join(f"%a{k}" for k in range(4))
    body += [
        "%true = arith.constant true",
        f"%a:4 = scf.if %true -> ({kinds}) {{",
        f"scf.yield {carried} : {kinds}",
        "} else {",
        f"scf.yield {carried} : {kinds}",
        "}",
    ]
    value = "a"
    for k, step in enumerate(inside, start=100):
        more, value = lines(k, step, value)
        body += more
    body += [f"scf.yield {', '.join(f'%{value}#{k}' for k in range(4))} : {kinds}", "}"]
    value = "r"
    for k, step in enumerate(after, start=200):
        more, value = lines(k, step, value)
        body += more
    body.append(store(value, "y", "%t4", [(4, 1)]))
    return typed(module(WARPS, body), WARPS)


@settings(max_examples=25)
@given(steps, steps, steps)
def test_no_accesses_race(before: list[Step], inside: list[Step], after: list[Step]) -> None:
    x: Any = np.arange(128 * WARPS, dtype=np.float32)
    outputs(placed(program(before, inside, after)), {"x": x, "y": np.zeros_like(x)})
