"""Barriers stand where threads meet in memory, and only there: without any of them they race."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from barrier_kernels import alloc, kinds, load, module, outputs, placed, store, typed, without_each

from lego_mlir.diagnostics import LegoError

OWN = [(4, 1)]
"""The thread's 4 elements that follow one another."""


def across(warps: int) -> list[tuple[int, int]]:
    """Return factors by which a thread has every 32nd or so element: others' own."""
    return [(4, 32 * warps)]


IN_WARP = [(4, 32)]


def text(warps: int, *body: str, attributes: str = "") -> str:
    return typed(module(warps, body, attributes), warps)


def through(warps: int, buffer: str, value: str, result: str) -> tuple[str, ...]:
    """Return a transposition of the CTA's elements through a shared buffer."""
    return store(value, buffer, "%t4", OWN), load(result, buffer, "%t", across(warps))


def within_warps(buffer: str, value: str, result: str) -> tuple[str, ...]:
    """Return a transposition of each warp's elements."""
    return (
        f"%warp_{result} = arith.divui %t, %c32 : index",
        f"%lane_{result} = arith.remui %t, %c32 : index",
        f"%base_{result} = arith.muli %warp_{result}, %c128 : index",
        f"%at_{result} = arith.addi %base_{result}, %lane_{result} : index",
        store(value, buffer, "%t4", OWN),
        load(result, buffer, f"%at_{result}", IN_WARP),
    )


CONSTANTS = ("%c32 = arith.constant 32 : index", "%c128 = arith.constant 128 : index")

LOOP = (
    "%r:4 = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %v#0, %b0 = %v#1, %c = %v#2, "
    "%d = %v#3) -> (f32, f32, f32, f32) {"
)


def carried(line: str) -> str:
    """Return a store of what a loop carries."""
    return line.replace("%w#0, %w#1, %w#2, %w#3", "%a, %b0, %c, %d")


def loop(warps: int) -> str:
    """Return a kernel that transposes in each iteration of a loop, through one buffer."""
    inside, outside = through(warps, "s0", "w", "q")
    return text(
        warps,
        load("v", "x", "%t4", OWN),
        LOOP,
        alloc("s0"),
        carried(inside),
        outside,
        "scf.yield %q#0, %q#1, %q#2, %q#3 : f32, f32, f32, f32",
        "}",
        store("r", "y", "%t4", OWN),
    )


def two_in_loop(warps: int) -> str:
    """Return the same with two transpositions, each through a buffer of its own."""
    first, second = through(warps, "s0", "w", "q"), through(warps, "s1", "q", "p")
    return text(
        warps,
        load("v", "x", "%t4", OWN),
        LOOP,
        alloc("s0"),
        alloc("s1"),
        carried(first[0]),
        first[1],
        *second,
        "scf.yield %p#0, %p#1, %p#2, %p#3 : f32, f32, f32, f32",
        "}",
        store("r", "y", "%t4", OWN),
    )


def branch(warps: int) -> str:
    """Return a kernel in which some threads store again what others of their warp load."""
    inside = store("v", "s0", "%t4", OWN)
    return text(
        warps,
        alloc("s0"),
        load("v", "x", "%t4", OWN),
        store("v", "s0", "%t4", OWN),
        load("p", "s0", "%t", across(warps)),
        "%first = arith.cmpi ult, %t, %c4 : index",
        "scf.if %first {",
        inside.replace("%v#", "%p#"),
        "}",
        load("q", "s0", "%t", across(warps)),
        store("q", "y", "%t4", OWN),
    )


def two_branches(warps: int) -> str:
    """Return a kernel in which some threads store what all others have loaded, twice."""
    inside = [store("v", s, "%t4", OWN).replace("%v#", "%p#") for s in ("s0", "s1")]
    return text(
        warps,
        *map(alloc, ("s0", "s1")),
        load("v", "x", "%t4", OWN),
        *(store("v", s, "%t4", OWN) for s in ("s0", "s1")),
        *(load(r, s, "%t", across(warps)) for r, s in (("p", "s0"), ("q", "s1"))),
        "%first = arith.cmpi ult, %t, %c4 : index",
        *("scf.if %first {", inside[0], "}"),
        *("scf.if %first {", inside[1], "}"),
        *(load(r, s, "%t", across(warps)) for r, s in (("u", "s0"), ("w", "s1"))),
        *(store(r, "y", "%t4", OWN) for r in ("q", "u", "w")),
    )


KERNELS: dict[str, tuple[Callable[[int], str], int, list[str]]] = {
    "own elements": (
        lambda n: text(
            n,
            alloc("s0"),
            load("v", "x", "%t4", OWN),
            store("v", "s0", "%t4", OWN),
            load("q", "s0", "%t4", [(2, 2), (2, 1)]),
            store("q", "y", "%t4", OWN),
        ),
        4,
        [],
    ),
    "one conversion": (
        lambda n: text(
            n,
            alloc("s0"),
            load("v", "x", "%t4", OWN),
            *through(n, "s0", "v", "q"),
            store("q", "y", "%t4", OWN),
        ),
        4,
        ["cta"],
    ),
    "one conversion of one warp": (
        lambda n: text(
            n,
            alloc("s0"),
            load("v", "x", "%t4", OWN),
            *through(n, "s0", "v", "q"),
            store("q", "y", "%t4", OWN),
        ),
        1,
        ["warp"],
    ),
    "a conversion inside of each warp": (
        lambda n: text(
            n,
            *CONSTANTS,
            alloc("s0"),
            load("v", "x", "%t4", OWN),
            *within_warps("s0", "v", "q"),
            store("q", "y", "%t4", OWN),
        ),
        4,
        ["warp"],
    ),
    "two conversions": (
        lambda n: text(
            n,
            alloc("s0"),
            alloc("s1"),
            load("v", "x", "%t4", OWN),
            *through(n, "s0", "v", "q"),
            *through(n, "s1", "q", "p"),
            store("p", "y", "%t4", OWN),
        ),
        2,
        ["cta", "cta"],
    ),
    "two conversions through the same bytes": (
        lambda n: text(
            n,
            alloc("s0"),
            load("v", "x", "%t4", OWN),
            *through(n, "s0", "v", "q"),
            *through(n, "s0", "q", "p"),
            store("p", "y", "%t4", OWN),
        ),
        2,
        ["cta", "cta", "cta"],
    ),
    "a conversion in a loop": (loop, 2, ["cta", "cta"]),
    "two conversions in a loop": (two_in_loop, 2, ["cta", "cta"]),
    "a branch that some threads take": (branch, 2, ["cta", "warp", "warp"]),
    "two such branches, of which the first has the barrier": (
        two_branches,
        2,
        ["cta", "warp", "warp"],
    ),
    "a tensor in place": (
        lambda n: text(
            n,
            load("v", "x", "%t4", OWN),
            store("v", "x", "%t4", [(2, 1), (2, 2)]),
            load("q", "x", "%t", across(n)),
            store("q", "y", "%t", across(n)),
        ),
        2,
        ["cta"],
    ),
    "tensors that may overlap": (
        lambda n: text(
            n,
            load("v", "x", "%t4", OWN),
            store("v", "y", "%t4", OWN),
            attributes="lego.in_place",
        ),
        2,
        ["cta"],
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_the_barriers_it_needs(name: str) -> None:
    make, warps, expected = KERNELS[name]
    assert kinds(placed(make(warps))) == expected


def arrays(warps: int) -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal(128 * warps).astype(np.float32)
    return {"x": x, "y": np.zeros_like(x)}


@pytest.mark.parametrize("name", [name for name in KERNELS if "overlap" not in name])
def test_nothing_races_and_without_a_barrier_something_does(name: str) -> None:
    make, warps, _ = KERNELS[name]
    outputs(placed(make(warps)), arrays(warps), global_checks=True)
    for fewer in without_each(make(warps)):
        with pytest.raises(LegoError, match="race"):
            outputs(fewer, arrays(warps), global_checks=True)


def test_a_barrier_in_a_branch_that_some_threads_take_is_refused() -> None:
    warps = 2
    wrong = text(
        warps,
        alloc("s0"),
        load("v", "x", "%t4", OWN),
        "%first = arith.cmpi ult, %t, %c4 : index",
        "scf.if %first {",
        store("v", "s0", "%t4", OWN),
        load("q", "s0", "%c0", [(4, 1)]),
        store("q", "y", "%t4", OWN),
        "}",
    )
    with pytest.raises(LegoError, match="not all threads of the CTA take"):
        placed(wrong)
