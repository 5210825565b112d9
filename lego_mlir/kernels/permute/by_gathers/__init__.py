"""Permutations of bytes: tiles are copied as they are, and words of the output gathered from them.

`config` → `heuristic` (`pitches`, `costs`) → `kernel`, and `tile`, what its threads do.
"""
