"""Unordered writes of one value, and elements of vector loads that nobody needs."""

import warnings

import pytest

from lego_mlir.diagnostics import LegoError, LegoWarning

HEAD = """
    .reg .pred %p, %q; .reg .b32 %t, %x, %y, %z, %w, %a;
    .shared .align 16 .b8 tile[1024];
    mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; setp.eq.u32 %q, %t, 40; mov.b32 %x, 3;
    @%p st.shared.v4.b32 [tile], {%t, %t, %t, %t}; bar.sync 0;
"""


def launch(run, order, body):
    run(HEAD + body, [], block=(64, 1, 1), checks=True, **order)


SAME = {
    "all threads, one instruction": "st.shared.b32 [tile], %x;",
    "two instructions": "@%p st.shared.b32 [tile], 3; @%q st.shared.b32 [tile], 3;",
    "read by who wrote": "st.shared.b32 [tile], %x; ld.shared.b32 %y, [tile];",
    "read behind a barrier": "st.shared.b32 [tile], %x; bar.sync 1; ld.shared.b32 %y, [tile];",
    "a part of it": "@%p st.shared.b32 [tile], 0x303; @%q st.shared.b8 [tile+1], 3;",
    "a vector": "st.shared.v4.b32 [tile], {%x, %x, %x, %x};",
}
DIFFERENT = {
    "another value": "@%p st.shared.b32 [tile], 3; @%q st.shared.b32 [tile], 4;",
    "one element of a vector": "st.shared.v2.b32 [tile], {%x, %t};",
    "read by a third": "@%p st.shared.b32 [tile], 3; @%q st.shared.b32 [tile], 3;"
    "setp.eq.u32 %p, %t, 2; @%p ld.shared.b32 %y, [tile];",
    "after a read": "@%p ld.shared.b32 %y, [tile]; @%q st.shared.b32 [tile], 0;",
    "a loop without a second barrier": """
        mov.b32 %a, 0;
    LOOP:
        @%p st.shared.b32 [tile], 3;
        bar.sync 1;
        ld.shared.b32 %y, [tile];
        add.u32 %a, %a, 1; setp.lt.u32 %q, %a, 3; @%q bra LOOP;
    """,
    "an atomic between": "@%p st.shared.b32 [tile], 3; bar.warp.sync -1; "
    "@%p atom.shared.exch.b32 %y, [tile], 3; @%q st.shared.b32 [tile], 3;",
}


@pytest.mark.parametrize("case", SAME)
def test_writes_of_the_same_value_are_a_warning(run, order, case):
    with pytest.warns(LegoWarning, match="both write the same value") as found:
        launch(run, order, SAME[case])
    assert len(found) == 1
    assert "warning: st.shared" in str(found[0].message)


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_else_is_unordered_is_an_error(run, order, case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LegoWarning)
        with pytest.raises(LegoError, match="data race"):
            launch(run, order, DIFFERENT[case])


def test_elements_of_a_vector_that_nobody_uses(run, order):
    """They may be uninitialized, and others may write them meanwhile."""
    used = "ld.shared.v4.b32 {%x, %y, %z, %w}, [tile+16]; add.u32 %x, %x, %y; add.u32 %x, %x, %z;"
    store = "@%q st.shared.v2.b32 [tile+16], {%t, %t}; @%q st.shared.b32 [tile+24], %t; bar.sync 1;"
    launch(run, order, store + used)
    launch(run, order, f"{store} {used} @%q st.shared.b32 [tile+28], %t;")
    with pytest.raises(LegoError, match="which nothing has written"):
        launch(run, order, f"{store} {used} add.u32 %x, %x, %w;")
    with pytest.raises(LegoError, match="data race"):
        launch(run, order, f"{store} {used} @%q st.shared.b32 [tile+24], 5;")


def test_registers_read_in_the_next_iteration_are_used(run, order):
    body = """
        mov.b32 %a, 0; mov.b32 %w, 0;
    LOOP:
        add.u32 %x, %w, 1;
        ld.shared.v2.b32 {%z, %w}, [tile+16];
        add.u32 %a, %a, 1; setp.lt.u32 %q, %a, 3; @%q bra LOOP;
    """
    with pytest.raises(LegoError, match="which nothing has written"):
        launch(run, order, f"@%q st.shared.b32 [tile+16], %t; bar.sync 1; {body}")
    launch(run, order, f"@%p st.shared.v2.b32 [tile+16], {{%t, %t}}; bar.sync 1; {body}")
