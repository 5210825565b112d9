"""GEMMs with few rows or columns of C, from registers: config, heuristic, and kernel body.

Tiles of shared memory are elsewhere; `mma.sync` multiplies what warps load from global memory.
"""
