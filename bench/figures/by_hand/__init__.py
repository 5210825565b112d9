"""Kernels whose indices are written by hand, as the printed ones compute them."""
