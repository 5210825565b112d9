"""The pass from the lego dialect to arith, affine, memref, vector and gpu."""
