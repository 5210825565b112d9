"""Tiles: values that the threads of a CTA hold together, and what kernels do with them.

Here is what only tiles have. Operators and functions of elements, which scalars and vectors have
too, stand in `frontend.values` and `frontend.mathematics`.
"""
