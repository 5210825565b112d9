"""Divergent threads, and where they reconverge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.limits import Limits
from lego_mlir.sim.ptx.flow import weak_topological_order


def test_nested_conditions(lanewise):
    a = np.arange(64, dtype="u4")
    lines = """
        and.b32 %x, %a, 1;
        setp.eq.u32 %p, %x, 0;
        and.b32 %y, %a, 2;
        setp.eq.u32 %q, %y, 0;
        mov.b32 %d, 0;
        @%p bra EVEN;
        @%q bra ODD_LOW;
        mov.b32 %d, 13;
        bra.uni MEET_ODD;
    ODD_LOW:
        mov.b32 %d, 11;
    MEET_ODD:
        add.u32 %d, %d, 100;
        bra.uni MEET;
    EVEN:
        @!%q bra MEET;
        mov.b32 %d, 10;
    MEET:
        add.u32 %d, %d, 1000;
    """
    want = [1000 + {0: 10, 1: 111, 2: 0, 3: 113}[x % 4] for x in range(64)]
    assert lanewise(lines, "u4", a=a).tolist() == want


def test_loops_of_different_length(lanewise):
    """Collatz steps: every lane leaves the loop at its own time."""
    a = np.arange(1, 97, dtype="u4")
    lines = """
        mov.b32 %x, %a;
        mov.b32 %d, 0;
    HEAD:
        setp.le.u32 %p, %x, 1;
        @%p bra DONE;
        add.u32 %d, %d, 1;
        and.b32 %y, %x, 1;
        setp.ne.u32 %q, %y, 0;
        shr.u32 %y, %x, 1;
        mad.lo.u32 %x, %x, 3, 1;
        @%q bra HEAD;
        mov.b32 %x, %y;
        bra.uni HEAD;
    DONE:
    """

    def steps(n):
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    assert lanewise(lines, "u4", a=a).tolist() == [steps(n) for n in range(1, 97)]


def test_nested_loops(lanewise):
    """Lane n counts the pairs i, j with j < i < n."""
    a = np.arange(32, dtype="u4")
    lines = """
        mov.b32 %d, 0;
        mov.b32 %x, 0;
    OUTER:
        setp.ge.u32 %p, %x, %a;
        @%p bra DONE;
        mov.b32 %y, 0;
    INNER:
        setp.ge.u32 %q, %y, %x;
        @%q bra NEXT;
        add.u32 %d, %d, 1;
        add.u32 %y, %y, 1;
        bra.uni INNER;
    NEXT:
        add.u32 %x, %x, 1;
        bra.uni OUTER;
    DONE:
    """
    assert lanewise(lines, "u4", a=a).tolist() == [n * (n - 1) // 2 for n in range(32)]


def test_threads_that_leave_early_keep_out(run):
    out = np.zeros(64, "u4")
    body = """
        .reg .pred %p; .reg .b32 %t; .reg .b64 %o, %a;
        mov.u32 %t, %tid.x;
        setp.ge.u32 %p, %t, 10;
        @%p exit;
        ld.param.u64 %o, [o];
        mad.wide.u32 %a, %t, 4, %o;
        st.global.b32 [%a], 7;
    """
    run(body, [out], parameters=(("o", "u64"),), block=(64, 1, 1))
    assert out.tolist() == [7] * 10 + [0] * 54


def test_lanes_meet_behind_a_body_that_stands_before_its_loop(lanewise):
    """Blocks out of order, as LLVM places them: after the `if` all lanes are together again."""
    a = np.arange(32, dtype="u4")
    lines = """
        mov.b32 %x, 0;
        mov.b32 %d, 0;
        bra.uni HEAD;
    ODD:
        add.u32 %x, %x, 1;
    JOIN:
        activemask.b32 %y;
        popc.b32 %y, %y;
        add.u32 %d, %d, %y;
        add.u32 %x, %x, 1;
        setp.ge.u32 %q, %x, 8;
        @%q bra DONE;
    HEAD:
        xor.b32 %y, %a, %x;
        and.b32 %y, %y, 1;
        setp.ne.u32 %p, %y, 0;
        @%p bra ODD;
        bra.uni JOIN;
    DONE:
    """
    # Odd lanes step by 2 and go round 4 times, together with the even ones, which step by 1 first
    # and go round once more.
    want = [32 * 4 + 16 if n % 2 == 0 else 32 * 4 for n in range(32)]
    assert lanewise(lines, "u4", a=a).tolist() == want


@pytest.mark.parametrize("first", ["WAIT", "STORE"])
def test_a_thread_may_wait_for_another_of_its_warp(run, first):
    """A loop that waits for a store by another thread, wherever the two stand."""
    cell = np.zeros(1, "u4")
    wait = """
    WAIT:
        ld.acquire.gpu.global.b32 %x, [%o];
        setp.eq.u32 %q, %x, 0;
        @%q bra WAIT;
        bra.uni DONE;
    """
    store = """
    STORE:
        st.release.gpu.global.b32 [%o], 1;
        bra.uni DONE;
    """
    body = f"""
        .reg .pred %p, %q; .reg .b32 %t, %x; .reg .b64 %o;
        mov.u32 %t, %tid.x;
        ld.param.u64 %o, [o];
        setp.eq.u32 %p, %t, 31;
        @{"%p" if first == "WAIT" else "!%p"} bra {"STORE" if first == "WAIT" else "WAIT"};
        {wait + store if first == "WAIT" else store + wait}
    DONE:
    """
    run(body, [cell], parameters=(("o", "u64"),), limits=Limits(wave_instructions=10000))
    assert cell[0] == 1


def test_order_of_a_loop():
    #      0 → 1 (head) → 2 → {3, 4} → 5 → 1 | 6
    successors = [[1], [2, 6], [4, 3], [5], [5], [1], []]
    order = weak_topological_order(successors)
    position = {node: i for i, node in enumerate(order)}
    assert position[6] == 6
    assert position[0] < position[1] < position[2] < min(position[3], position[4])
    assert max(position[3], position[4]) < position[5]


graphs = st.integers(1, 9).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(0, n - 1), max_size=2, unique=True), min_size=n, max_size=n
    )
)


@given(graphs)
def test_order_has_each_reachable_node_once(successors):
    reached, stack = {0}, [0]
    while stack:
        for n in successors[stack.pop()]:
            if n not in reached:
                reached.add(n)
                stack.append(n)
    order = weak_topological_order(successors)
    assert sorted(order) == sorted(reached)
    assert order[0] == 0


@given(graphs)
def test_order_keeps_loops_together(successors):
    """No node lies between two that reach each other, unless it is in a loop with them."""
    order = weak_topological_order(successors)
    reach = {n: {n} for n in order}
    for _ in order:
        for n in order:
            reach[n] = reach[n].union(*(reach[m] for m in successors[n]))
    for i, first in enumerate(order):
        for k in range(i + 2, len(order)):
            if order[k] in reach[first] and first in reach[order[k]]:
                for between in order[i + 1 : k]:
                    assert between in reach[first]
                    assert first in reach[between]
        for later in order[i + 1 :]:
            # An edge against the order is one inside a loop.
            if first in successors[later]:
                assert later in reach[first]
