"""The form of a case, and the PTX that many of them share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HEAD = """
    .reg .pred %p, %q, %first, %low;
    .reg .b64 %o, %i, %g, %d, %e;
    .reg .b32 %t, %w, %x, %y, %n, %mine, %next, %across, %rank, %there, %bar;
    .reg .f32 %c<4>;
    .shared .align 1024 .b8 tile[4096];
    .shared .align 8 .b64 bar;
    .shared .align 8 .b64 bar2;
    .shared .align 4 .b8 flag[4];
    ld.param.u64 %o, [o];
    ld.param.u64 %i, [in];
    mov.u32 %t, %tid.x;
    shr.u32 %w, %t, 5;                          // the warp
    setp.eq.u32 %first, %t, 0;
    setp.lt.u32 %low, %t, 32;
    mov.u32 %mine, tile;
    mad.lo.u32 %mine, %t, 4, %mine;             // a word for each thread
    xor.b32 %next, %mine, 4;                    // that of a thread of the same warp
    xor.b32 %across, %mine, 128;                // that of a thread of another one
    mad.wide.u32 %g, %t, 4, %i;
    mov.u32 %rank, %cluster_ctarank;
    xor.b32 %rank, %rank, 1;
"""
BLANK = """
    st.shared.b32 [%mine], 0;
    st.shared.b32 [%mine+1024], 0;
    @%first st.shared.b32 [flag], 0;
    bar.sync 0;
"""
SHOWN = BLANK.replace("bar.sync", "fence.proxy.async; bar.sync")
WAIT = """
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra WAIT;
"""
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;"
STORE = """
    @%first cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
"""


def made(count: int) -> str:
    return f"""
    @!%first bra MADE;
    mbarrier.init.shared.b64 [bar], {count};
    mbarrier.init.shared.b64 [bar2], 1;
    fence.mbarrier_init.release.cluster;
MADE:
    bar.sync 0;                                 // after its making
"""


@dataclass
class Case:
    """A program without a race, and how to break it.

    Attributes:
        wrong: name → (what is replaced, by what, and text of the two lines that then race or lack
            a proxy fence, the later one first where that is so in every order).
        options: of the launch.
    """

    body: str
    wrong: dict[str, tuple[str, ...]]
    options: dict[str, Any] = field(default_factory=dict)
