"""Tiles that a warp's lanes hold in fragments of tensor-core instructions.

`contraction` reads what is to be computed, `warps` says who computes it, `matrix_access` moves
fragments from and to shared memory, `instructions` multiplies them, `share` is what a thread holds
of a tile, and `spread` gives everything else that is done with it to the threads.
"""
