"""Kernels on the rows of matrices, forward and backward, beside PyTorch, torch.compile and QuACK.

`cases` says what is measured, `references` what is right, `peers` what it is measured beside.
"""
