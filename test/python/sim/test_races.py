"""Which accesses of shared memory race, and the errors of those that do.

Every case of `test/support/race_cases` is correct in all completion orders, and is broken in each
way that leaves two accesses unordered.
"""

import re

import numpy as np
import pytest
from race_cases import CASES, HEAD, tidy

from lego_mlir.diagnostics import LegoError

WRONG = [(case, wrong) for case in CASES for wrong in CASES[case].wrong]
TWO = (("o", "u64"), ("in", "u64"))


def launch(run, case, body, order):
    arguments = [np.zeros(1024, "u4"), np.arange(1024, dtype="u4")]
    options = {"block": (64, 1, 1)} | CASES[case].options | order
    with tidy(order["seed"] % 2 == 1):
        run(HEAD + body, arguments, parameters=TWO, checks=True, **options)


@pytest.mark.parametrize("case", CASES)
def test_ordered_accesses_do_not_race(run, case, order):
    launch(run, case, CASES[case].body, order)


@pytest.mark.parametrize(("case", "wrong"), WRONG)
def test_unordered_accesses_race_in_every_order(run, case, wrong, order):
    """The error names both accesses, in every order."""
    old, new, *lines = CASES[case].wrong[wrong]
    assert CASES[case].body.count(old) == 1
    with pytest.raises(LegoError, match=r"data race|no proxy fence|not initialised") as e:
        launch(run, case, CASES[case].body.replace(old, new), order)
    text = e.value.source.splitlines()
    here = text[e.value.location.line - 1]
    found = re.search(r"\(line (\d+)\)", e.value.message)
    there = text[int(found[1]) - 1] if found else ""
    assert all(a in b for a, b in zip(lines, (here, there), strict=False)) or (
        all(a in b for a, b in zip(lines, (there, here), strict=False))
    ), e.value
    assert e.value.hint or "not initialised" in e.value.message


@pytest.mark.parametrize(
    ("barrier", "hint"),
    [
        ("@%p bra skip; bar.sync 0; skip:", "bar.sync (line 18) stands between the two, but under"),
        ("@%q bar.sync 0;", "bar.sync (line 18) stands between the two, but under a condition"),
        ("bar.arrive 1, 128;", "put a barrier between the two"),
        ("", "put a barrier between the two"),
    ],
)
def test_the_hint_names_a_barrier_under_a_condition(run, barrier, hint):
    body = (
        ".shared .align 4 .b8 s[256]; .reg .pred %p, %q; .reg .b32 %t, %a, %b, %n, %x;\n"
        "mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %a, s; mad.lo.u32 %b, %t, 4, %a;\n"
        "setp.ge.u32 %p, %n, 1; setp.lt.u32 %q, %n, 1; st.shared.u32 [%b], %t;\n"
        f"{barrier}\n"
        "xor.b32 %t, %t, 32; mad.lo.u32 %b, %t, 4, %a; ld.shared.u32 %x, [%b];"
    )
    with pytest.raises(LegoError, match="data race") as e:
        run(body, [], block=(64, 1, 1), checks=True)
    assert e.value.hint.startswith(re.sub(r"line \d+", f"line {_line_of(e, 'bar.sync')}", hint))


def _line_of(e, text):
    lines = e.value.source.splitlines()
    return next((i for i, line in enumerate(lines, 1) if text in line), 0)
