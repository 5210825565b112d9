"""Attention beside cuDNN's, PyTorch's own and FlashAttention-4's: forward, and decoding.

`cases` lists the problems and knows the peers; `command` is `python -m bench attention`.
"""
