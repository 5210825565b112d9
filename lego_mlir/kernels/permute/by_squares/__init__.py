"""Permutations whose squares of narrow elements are transposed in registers.

Both memories, and shared memory, are accessed by words of 4 bytes or more. The choice among this
kernel and others is made in `heuristic` beside this folder.
"""
