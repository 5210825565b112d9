"""Kernels that only move data: pad, crop, flip, roll, concatenate, split, gather rows, cast.

Most are tile programs on windows. `axes` says which element goes where, one dimension at a time;
`windows` makes the kernel of it. Those that join and split are copies of rows by words (`parts`).
"""
