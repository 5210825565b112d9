"""Tiles in registers, as fragments of tensor-core instructions.

`contraction` reads a vector.contract, `warps` computes a thread's position, `matrix_access` loads
and stores fragments in shared memory, `wgmma` multiplies them, `thread_fragment`
is a thread's fragment of a tile, `connected_values` finds the other operations on tiles, and
`distribute` distributes them.
"""
