"""Kernels that only move data: pad, crop, flip, roll, concatenate, split, gather rows, cast.

They are tile programs on windows. `axes` says which element goes where, one dimension at a time;
`windows` makes the kernel of it.
"""
