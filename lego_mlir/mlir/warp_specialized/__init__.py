"""A warp-specialized kernel: ring buffer, producer, consumers, epilogue, TMA stores.

The pass `specialize_warps` puts them together.
"""
