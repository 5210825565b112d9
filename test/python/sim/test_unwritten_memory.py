"""Reads of uninitialized shared memory, byte by byte, by every kind of reader."""

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError

HEAD = """
    .reg .pred %p, %first; .reg .b16 %h; .reg .b32 %t, %at, %r<8>; .reg .b64 %o, %m, %d;
    .shared .align 128 .b8 tile[4096];
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %at, tile;
    mad.lo.u32 %at, %t, 16, %at;
    mov.b32 %r0, 7;
"""
SIGNAL = "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;"
COPY = f"""
    @!%first bra DONE;
    fence.proxy.async;
    {SIGNAL}
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
    COPY
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra WAIT;
DONE:
"""
REDUCE = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"

READS = {
    "the rest of a word": ("st.shared.b16 [%at], 3;", "ld.shared.b32 %r1, [%at];", "tile+2"),
    "the rest of a vector": (
        "st.shared.v2.b32 [%at], {%r0, %r0};",
        "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%at];",
        "tile+8",
    ),
    "a byte between": (
        "st.shared.b8 [%at], 1; st.shared.b16 [%at+2], 3;",
        "ld.shared.b32 %r1, [%at];",
        "tile+1",
    ),
    "what another thread skips": (
        "@!%first st.shared.b32 [%at], 1;",
        "ld.shared.b32 %r1, [%at];",
        "tile",
    ),
    "an atomic": ("", "atom.shared.add.u32 %r1, [%at], 1;", "tile"),
    "a reduction": ("", "red.shared.add.u32 [%at], 1;", "tile"),
    "rows of a matrix": (
        "st.shared.v2.b32 [%at], {%r0, %r0};",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%at];",
        "tile+8",
    ),
    "a bulk reduction's target": (
        "@%first st.shared.v4.b32 [tile], {%r0, %r0, %r0, %r0};",
        COPY.replace("COPY", f"{REDUCE} [tile+128], [tile], 16, [bar];"),
        "tile+128",
    ),
    "a bulk reduction's source": (
        "@%first st.shared.v4.b32 [tile+128], {%r0, %r0, %r0, %r0};",
        COPY.replace("COPY", f"{REDUCE} [tile+128], [tile], 16, [bar];"),
        "tile",
    ),
}


@pytest.mark.parametrize("case", READS)
def test_reads_of_the_unwritten(run, order, case):
    writes, reads, address = READS[case]
    body = f"{HEAD}{writes}\nbar.warp.sync -1;\n{reads}"
    with pytest.raises(LegoError) as e:
        run(body, [], checks=True, **order)
    assert f" reads shared memory at {address}, which nothing has written" in e.value.message
    # All of it written, there is no error.
    whole = "st.shared.v4.b32 [%at], {%r0, %r0, %r0, %r0};"
    run(f"{HEAD}{whole}\nbar.warp.sync -1;\n{reads}", [], checks=True, **order)


STORE = f"""{HEAD}
    mov.b64 %m, map;
    cvta.param.u64 %m, %m;
    mad.lo.u32 %at, %t, 16, %at;                    // a row of 32 bytes
    setp.lt.u32 %p, %t, ROWS;
    @%p st.shared.v4.b32 [%at], {{%t, %t, %t, %t}};
    fence.proxy.async;
    bar.sync 0;
    @%first cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m, {{4, 8}}], [tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
"""


def test_what_a_store_leaves_outside_the_tensor(run, order):
    """Of a box over the edges only the rows and columns inside need have been written."""
    out = np.zeros((24, 8), "u4")
    maps = [sim.TensorMap(out, (8, 32))]
    parameters = (("map[128]", "align 64 .b8"),)
    run(STORE.replace("ROWS", "16"), maps, parameters=parameters, checks=True, **order)
    assert (out[8:, 4:] == np.arange(16)[:, None]).all()
    assert not out[:8].any()
    assert not out[:, :4].any()
    with pytest.raises(LegoError, match=r"reads shared memory at tile\+480, which nothing"):
        run(STORE.replace("ROWS", "15"), maps, parameters=parameters, checks=True, **order)
