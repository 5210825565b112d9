"""GEMMs by `wgmma`: config, registers, the table of candidates, the cost model, and the heuristic.

The kernel's body is that of all tiled GEMMs (`gemm.tile_program`); passes find the instructions.
"""
