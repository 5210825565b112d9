"""Kernels that only move data: pad, crop, flip, roll, concatenate, split, gather rows, cast.

`axes` says which element goes where, one dimension at a time, and `pieces` what rows are made of.
`by_words` copies such rows by words. The others are tile programs: on `windows`, if a size is only
known to the launch.
"""
