"""Permutations of narrow elements whose output words are gathered from the input's rows.

Rows of the input are in shared memory as they are in device memory. The choice among this kernel
and others is made in `heuristic` beside this folder.
"""
