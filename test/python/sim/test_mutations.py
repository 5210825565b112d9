"""Correct kernels run without an error in every order, and every mutant of them is detected.

`test/support/mutants` has the kernels and their mutants, each with what a GPU does wrong and what
the checks, or the result, show of it in which order.
"""

from itertools import count

import pytest
from mutants import KERNELS, RIGHT, WRONG

from lego_mlir.diagnostics import LegoError

SEEDS = range(3)
FRESH = count()
CASES = [
    pytest.param(kernel, mutant, id=f"{kernel.name}-{mutant.name}")
    for kernel in KERNELS
    for mutant in kernel.mutants
]


def outcome(kernel, text, order, seed=0):
    """What is seen of some PTX in the place of a kernel's, on data that no run before had."""
    try:
        return RIGHT if kernel.run(text, next(FRESH), order=order, seed=seed) else WRONG
    except LegoError as e:
        return e.message


@pytest.fixture(scope="module")
def texts():
    return {kernel.name: kernel.text() for kernel in KERNELS}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_kernels_are_right(kernel, texts, programs):
    text = texts[kernel.name]
    programs.setdefault(text, kernel.name)
    orders = [("late", 0), ("early", 0), *(("random", seed) for seed in range(6))]
    found = {order: outcome(kernel, text, *order) for order in orders}
    assert found == dict.fromkeys(orders, RIGHT)


@pytest.mark.parametrize(("kernel", "mutant"), CASES)
def test_every_mutant_is_detected(kernel, mutant, texts, programs):
    text = mutant.of(texts[kernel.name])
    programs.setdefault(text, f"{kernel.name}: {mutant.name}")
    assert mutant.late in outcome(kernel, text, "late")
    assert (mutant.early or mutant.late) in outcome(kernel, text, "early")
    assert any(outcome(kernel, text, "random", seed) != RIGHT for seed in SEEDS)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_there_are_enough(kernel):
    """Ten ways at least to break each kernel, and each is seen without chance."""
    names = {mutant.name for mutant in kernel.mutants}
    assert len(names) == len(kernel.mutants) >= 10
    assert all(mutant.late != RIGHT for mutant in kernel.mutants)
