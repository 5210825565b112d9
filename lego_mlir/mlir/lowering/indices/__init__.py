"""Indices and sizes: SSA values as index expressions, and the conditions that are relied on.

Accesses of memory are lowered in `mlir.lowering`; the expressions themselves are `index`'s.
"""
