"""Sizes and strides that only a launch knows: taken from arrays, checked, put into an artifact.

`extents` says where a buffer's elements lie, `fitting` which array can stand for an argument,
`facts` what the code relies on, `sized` makes an artifact of numbers, `missing_sizes` finds those
of arrays that are left out.
"""
