"""Windows on tensors: their coordinates (`affine`), boundaries and elements (`window`).

Whether a window keeps elements apart is looked at in `algebra.verification.injectivity`.
"""
