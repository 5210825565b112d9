"""Kernels that permute the dimensions of a tensor, transposes among them.

`problem` → `heuristic` (`config`, by `costs`) → `kernel`; `elementwise` serves layouts that have no
strides.
"""
