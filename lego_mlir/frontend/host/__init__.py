"""Host functions made in Python: kernels and sequences of them, their parameters and launches.

What stands inside a kernel, values and functions of them, is not here but in the rooms beside.
"""
