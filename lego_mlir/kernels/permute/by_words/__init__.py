"""Permutations of small elements by words of 4 and 8 bytes, wherever rows begin.

`config` → `heuristic` → `kernel`, whose tiles are `whole_tile`, `cut_tile` and `last_tile`;
`row_side` and `traversal` say which elements a thread moves.
"""
