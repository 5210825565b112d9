"""Kernels of run-time sizes beside those of the same sizes that were compiled for them."""
