"""The components of a warp-specialized kernel: ring buffer, producer, consumers, epilogues.

The passes `specialize_warps` and `contract_to_wgmma` assemble them.
"""
