"""Printers: index expressions become MLIR operations.

affine   sums of multiples of values, as one affine.apply
arith    everything else: divisions, remainders, shifts, masks, XOR, products of symbols
"""
