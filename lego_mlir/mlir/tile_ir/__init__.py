"""Tile IR: tiles as values whose distributed layout is part of their type.

Here are the types, what is known of each operation, the verifier and the interpreter. The passes
over it live in `mlir.tile_passes`.
"""
