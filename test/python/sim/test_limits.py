"""No short PTX text takes the simulator long: limits, and work in proportion to the length."""

from __future__ import annotations

import time

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError
from lego_mlir.limits import Limits

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
ONE = (1, 1, 1)
ENDLESS = ".reg .b32 %r; mov.u32 %r, 0; LOOP: add.u32 %r, %r, 1; bra LOOP;"


def kernel(body: str, before: str = "") -> str:
    return f"{HEADER}{before}.visible .entry k()\n{{\n{body}\nret;\n}}\n"


def used(declaration: str) -> str:
    return f"{declaration} .reg .b64 %a; mov.u64 %a, x;"


# name: text, grid, the limit that the error names
BEYOND = {
    "CTAs": (kernel(""), (2147483647, 1, 1), "ctas"),
    "threads": (kernel(""), (1 << 20, 1, 1), "threads"),
    "registers": (kernel(".reg .b32 %r<2147483647>;"), ONE, "registers"),
    "registers of many declarations": (kernel(".reg .b32 %r<100>;" * 3000), ONE, "registers"),
    "local memory": (kernel(used(".local .b8 x[100000000000];")), ONE, "memory_bytes"),
    "constants": (kernel("", ".const .b8 x[100000000000];\n"), ONE, "memory_bytes"),
    "global variables": (kernel("", ".global .b8 x[1000000000];\n" * 8), ONE, "memory_bytes"),
    "braces": (kernel("{" * 5000 + "}" * 5000), ONE, "ptx_nesting"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_program_over_a_limit_is_an_error_before_it_runs(name: str) -> None:
    text, grid, limit = BEYOND[name]
    with pytest.raises(LegoError, match=f"the limit {limit} is ") as e:
        sim.launch(text, "k", grid, (512, 1, 1), [])
    assert e.value.location is not None
    assert f"legoc --limit {limit}=VALUE" in str(e.value.hint)


@pytest.mark.parametrize(
    ("name", "value"), [("registers", 99), ("ctas", 3), ("threads", 95), ("memory_bytes", 12_000)]
)
def test_limits_count_exactly_what_they_name(name: str, value: int) -> None:
    """4 CTAs of 24 threads; 100 registers; 128 bytes of local memory a thread."""
    text = kernel(used(".reg .b32 %r<99>; .local .b8 x[128];"))
    launch = (text, "k", (4, 1, 1), (24, 1, 1), [])
    sim.launch(*launch, limits=Limits(registers=100, ctas=4, threads=96, memory_bytes=13_056))
    with pytest.raises(LegoError, match=f"the limit {name} is {value}"):
        sim.launch(*launch, limits=Limits(**{name: value}), file=f"{name}.ptx")


def test_all_waves_together_have_a_limit_of_instructions() -> None:
    text = kernel(".reg .b32 %r; mov.u32 %r, 1;")  # two instructions
    launch = (text, "k", (64, 1, 1), (512, 1, 1), [])
    every = 64 * 512 * 2
    sim.launch(*launch, limits=Limits(instructions=every))
    with pytest.raises(LegoError, match=f"have run {every - 1} instructions") as e:
        sim.launch(*launch, limits=Limits(instructions=every - 1))
    assert "--limit instructions=VALUE" in str(e.value.hint)


def test_launches_may_share_a_limit_of_instructions() -> None:
    with Limits(instructions=3 * 1024).applied():
        budget = sim.Budget()
    sim.launch(kernel("mov.u32 %r, 1;", "").replace("mov", ".reg .b32 %r; mov"), "k", ONE, ONE, [],
               budget=budget)  # fmt: skip
    with pytest.raises(LegoError, match="instructions"):
        sim.launch(kernel(ENDLESS), "k", ONE, ONE, [], budget=budget)


def test_an_endless_loop_names_the_option_that_lets_it_run_longer() -> None:
    with pytest.raises(LegoError) as e:
        sim.launch(kernel(ENDLESS), "k", ONE, ONE, [], limits=Limits(wave_instructions=100))
    assert "legoc --limit wave_instructions=VALUE" in str(e.value.hint)


# Texts that ended in a traceback, or in a loop without end.
BROKEN = {
    "a function that does not begin": (HEADER + ".func f", "the text ends"),
    "a section that does not begin": (HEADER + ".section", "the text ends"),
    "a long integer": (kernel(f".reg .b32 %r; mov.u32 %r, {'9' * 5000};"), "does not fit 64 bits"),
    "a digit that is not octal": (kernel(".reg .b32 %r; mov.u32 %r, 08;"), "begins nothing"),
    "a line that is no number": (kernel(".loc x y z"), "where an integer should"),
    "a file that is no number": (kernel('.file x "y"'), "where an integer should"),
    "a float that is too large": (
        kernel("", ".global .f16 x[1] = {1e30};\n"), "1e+30 does not fit f16"),
    "an array beyond 64 bits": (
        kernel(f".shared .b8 x{'[9999999999]' * 500};"), "more elements than 64 bits"),
    "vectors in vectors": (
        kernel(f".reg .b32 %r; mov.u32 %r, {'{' * 3000}1{'}' * 3000};"), "should stand"),
    "addresses in addresses": (
        kernel(f".reg .b32 %r; mov.u32 %r, {'[%r, ' * 3000}1{']' * 3000};"), "should stand"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_texts_are_errors_with_a_location(name: str) -> None:
    text, message = BROKEN[name]
    with pytest.raises(LegoError) as e:
        sim.launch(text, "k", ONE, ONE, [])
    assert message in e.value.message
    assert e.value.location is not None
    assert e.value.location.line > 0


def test_many_signs_and_braces_are_read_without_recursion() -> None:
    text = kernel(
        f".reg .b32 %r; .reg .b64 %a; mov.b32 %r, {'-' * 4001}7; mov.u64 %a, x; st.global.b32 "
        "[%a], %r;",
        f".global .b32 x[2] = {'{' * 3000}1, 2{'}' * 3000};\n",
    )
    sim.launch(text, "k", ONE, ONE, [])


# name: a text of about so many statements
GROWING = {
    "scopes that declare the same registers": lambda n: "{.reg .b32 %r<30>;}" * n,
    "scopes": lambda n: "{}" * n,
    "labels": lambda n: "\n".join(f"L{i}:" for i in range(4 * n)),
    "one line": lambda n: ".reg .b32 %r;" + "mov.u32 %r, 1;" * n,
}


@pytest.mark.parametrize("name", GROWING)
def test_the_time_to_read_grows_with_the_length(name: str) -> None:
    """Twice the length takes about twice the time; were it four times, eight would be 64."""
    body = GROWING[name]

    def seconds(n: int) -> float:
        found = []
        for k in range(2):
            text = kernel(body(n), f"// {k}\n")  # a parsed text is cached
            start = time.process_time()
            sim.parse(text)
            found.append(time.process_time() - start)
        return min(found)

    assert seconds(2000) < 30 * seconds(250) + 0.05


def test_a_register_takes_no_time_in_each_wave() -> None:
    out = np.zeros(1, "u4")
    text = kernel(".reg .b32 %r<100000>;").replace("k()", "k(.param .u64 o)")

    def seconds() -> float:
        start = time.process_time()
        sim.launch(text, "k", (200, 1, 1), (1024, 1, 1), [out])
        return time.process_time() - start

    # The least of some: Python may collect the garbage of other tests meanwhile.
    assert min(seconds() for _ in range(3)) < 2


def test_an_access_wider_than_its_buffer_is_out_of_bounds() -> None:
    text = kernel(
        ".shared .align 16 .b8 x[12]; .reg .b32 %r<4>; ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [x];"
    )
    with pytest.raises(LegoError, match=r"16 bytes at byte offset 0 of .*, which has 12 bytes"):
        sim.launch(text, "k", ONE, ONE, [])
