"""Counting a main loop's instructions in the text of nvdisasm."""

from __future__ import annotations

import pytest

from bench import sass
from bench.sass import COPIES, MATRIX, blocks, innermost, kernels, natural_loops
from lego_mlir.diagnostics import LegoError

# One warp multiplies: an outer loop over tiles, in it the main loop; what waits for a barrier
# stands out of line, behind the exit, and jumps back into the main loop. Another warp copies.
TEXT = """
//--------------------- .text.gemm --------------------------
	.section	.text.gemm,"ax",@progbits
gemm:
.text.gemm:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_9) ;
.L_x_0:
        /*0020*/                   MOV R3, RZ ;
.L_x_1:
        /*0030*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R2], R3 ;
        /*0040*/              @!P1 BRA `(.L_x_4) ;
.L_x_2:
        /*0050*/                   LDSM.16.M88.4 R4, [R2] ;
        /*0060*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4], R24, gsb0 ;
        /*0070*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8], R24, gsb0 ;
        /*0080*/               @P2 BRA `(.L_x_1) ;
        /*0090*/                   BSSY B0, `(.L_x_3) ;
        /*00a0*/               @P3 BRA `(.L_x_5) ;
        /*00b0*/                   STG.E.128 desc[UR6][R2.64], R24 ;
.L_x_5:
        /*00c0*/                   BSYNC B0 ;
.L_x_3:
        /*00d0*/               @P4 BRA `(.L_x_0) ;
        /*00e0*/                   EXIT ;
.L_x_4:
        /*00f0*/                   NANOSLEEP 0x20 ;
        /*0100*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R2], R3 ;
        /*0110*/              @!P1 BRA `(.L_x_4) ;
        /*0120*/                   BRA `(.L_x_2) ;
.L_x_9:
        /*0130*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0140*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0150*/               @P5 BRA `(.L_x_9) ;
        /*0160*/                   EXIT ;
.L_x_10:
        /*0170*/                   BRA `(.L_x_10);
        /*0180*/                   NOP ;
"""


def test_the_main_loop_is_the_innermost_with_its_waiting() -> None:
    flow = blocks(*kernels(TEXT)["gemm"])
    counts = innermost(flow, MATRIX)
    assert counts["HGMMA"] == 2
    assert counts["LDSM"] == 1
    assert counts["SYNCS"] == 2
    assert counts["NANOSLEEP"] == 1
    assert counts["BRA"] == 4
    assert counts["STG"] == counts["MOV"] == counts["UTMALDG"] == 0


def test_the_loop_that_copies_is_another() -> None:
    flow = blocks(*kernels(TEXT)["gemm"])
    assert innermost(flow, COPIES) == {"UTMALDG": 2, "BRA": 1}
    assert not innermost(flow, ["DMMA"])


def test_loops_are_those_of_the_control_flow() -> None:
    flow = blocks(*kernels(TEXT)["gemm"])
    # Tiles, main, waiting, copies; not the unreachable one, nor one from the jump back.
    assert len(list(natural_loops(flow))) == 4


def test_all_kernels_of_a_cubin_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    other = TEXT.replace("gemm", "other").replace("HGMMA", "LDL")
    monkeypatch.setattr(sass, "disassembled", lambda cubin: TEXT + other)
    found = sass.main_loops(b"")
    assert found["gemm"]["loop"]["HGMMA"] == 2
    assert found["gemm"]["copies"]["UTMALDG"] == 2
    assert found["gemm"]["kernel"]["EXIT"] == 2
    assert found["other"]["loop"] == {}
    assert found["other"]["kernel"]["LDL"] == 2


def test_without_a_disassembler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sass, "find_spec", lambda name: None)
    with pytest.raises(LegoError, match="there is no nvdisasm"):
        sass.main_loops(b"")
