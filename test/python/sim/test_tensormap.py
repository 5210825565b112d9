"""Tensor maps that a kernel makes in shared memory."""

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError

PROGRAM = """
.visible .entry k(.param .u64 from, .param .u64 scratch, .param .u64 out, .param .u32 width)
{
    .reg .pred %p, %first; .reg .b32 %t, %w, %v<4>; .reg .b64 %from, %map, %out, %s, %n;
    .shared .align 128 .b8 map[128];
    .shared .align 128 .b8 tile[1024];
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x;
    ld.param.u64 %from, [from]; ld.param.u64 %map, [scratch]; ld.param.u64 %out, [out];
    ld.param.u32 %w, [width];
    mul.wide.u32 %n, %w, 4;
    setp.eq.u32 %first, %t, 0;
    mov.u64 %s, map;
    mad.wide.u32 %s, %t, 4, %s;
    st.shared.b32 [%s], 0;
    bar.warp.sync -1;
    @!%first bra MADE;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], %from;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [map], 1;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 0, 16;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 1, 16;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 0, %w;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 1, 16;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [map], 0, %n;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [map], 0, 1;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [map], 1, 1;
    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [map], 3;
    tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [map], 0;
    tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [map], 0;
    tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [map], 0;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
MADE:
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
        [%map], [map], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
    @!%first bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [tile], [%map, {4, 0}], [bar];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
    mov.u64 %s, tile;
    mad.wide.u32 %s, %t, 32, %s;
    mad.wide.u32 %out, %t, 32, %out;
    ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%s];
    st.global.v4.b32 [%out], {%v0, %v1, %v2, %v3};
    ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%s+16];
    st.global.v4.b32 [%out+16], {%v0, %v1, %v2, %v3};
    ret;
}
"""


def test_a_map_made_in_shared_memory(run, order):
    data, scratch = np.arange(16 * 24, dtype="i4").reshape(16, 24), np.zeros(128, "u1")
    out = np.zeros((16, 16), "i4")
    run(PROGRAM, [data, scratch, out, np.uint32(24)], checks=True, **order)
    assert (out == data[:, 4:20]).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("box_dim.shared::cta.b1024.b32 [map], 0, 16", "box_dim.shared::cta.b1024.b32 [map], 0, 0",
         "a tensor map with"),
        ("rank.shared::cta.b1024.b32 [map], 1", "rank.shared::cta.b1024.b32 [map], 2",
         "2 dimensions by the instruction, of 3"),
        ("elemtype.shared::cta.b1024.b32 [map], 3", "elemtype.shared::cta.b1024.b32 [map], 13",
         "a constant from 0 to 12"),
        ("[map], 1, 16", "[map], 5, 16", "a constant from 0 to 4"),
    ],
)  # fmt: skip
def test_bad_maps(run, old, new, message):
    arguments = [np.zeros((16, 24), "i4"), np.zeros(128, "u1"), np.zeros((16, 16), "i4")]
    with pytest.raises(LegoError, match=message):
        run(PROGRAM.replace(old, new), [*arguments, np.uint32(24)], record=False)
