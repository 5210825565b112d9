"""Counting the instructions of a main loop in the text of nvdisasm."""

from __future__ import annotations

import pytest

from bench.profile import sass
from bench.profile.sass import (
    COPIES,
    MATRIX,
    basic_blocks,
    kernels,
    main_loop_counts,
    natural_loops,
)
from lego_mlir.diagnostics import LegoError

# One warp has an outer loop over tiles and the main loop in it. Its wait for a barrier is out of
# line, after the exit, and jumps back into the main loop. Another warp copies.
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


def test_the_main_loop_contains_its_out_of_line_wait() -> None:
    flow = basic_blocks(*kernels(TEXT)["gemm"])
    counts = main_loop_counts(flow, MATRIX)
    assert counts["HGMMA"] == 2
    assert counts["LDSM"] == 1
    assert counts["SYNCS"] == 2
    assert counts["NANOSLEEP"] == 1
    assert counts["BRA"] == 4
    assert counts["STG"] == counts["MOV"] == counts["UTMALDG"] == 0


def test_the_copy_loop_is_separate() -> None:
    flow = basic_blocks(*kernels(TEXT)["gemm"])
    assert main_loop_counts(flow, COPIES) == {"UTMALDG": 2, "BRA": 1}
    assert not main_loop_counts(flow, ["DMMA"])


def test_natural_loops_exclude_unreachable_code() -> None:
    flow = basic_blocks(*kernels(TEXT)["gemm"])
    # Tiles, main, wait, copies; neither the unreachable one nor one from the jump back.
    assert len(list(natural_loops(flow))) == 4


def test_all_kernels_of_a_cubin_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    other = TEXT.replace("gemm", "other").replace("HGMMA", "LDL")
    monkeypatch.setattr(sass, "disassemble", lambda cubin: TEXT + other)
    found = sass.main_loops(b"")
    assert found["gemm"]["loop"]["HGMMA"] == 2
    assert found["gemm"]["copies"]["UTMALDG"] == 2
    assert found["gemm"]["kernel"]["EXIT"] == 2
    assert found["other"]["loop"] == {}
    assert found["other"]["kernel"]["LDL"] == 2


def test_a_missing_disassembler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sass, "find_spec", lambda name: None)
    with pytest.raises(LegoError, match="nvdisasm is neither on the PATH"):
        sass.main_loops(b"")
