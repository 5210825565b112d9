"""Kernels that only move data: random permutations, pads, crops, gathers, casts, beside a copy.

`cases` says what is moved, `build` compiles it, `run` checks and times it, `report` writes tables.
"""
