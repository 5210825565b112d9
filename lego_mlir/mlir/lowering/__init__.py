"""The pass from the lego dialect to arith, affine, memref, vector and gpu, and its parts.

`lower_lego` visits every operation; the other modules lower one kind of operation or attribute.
`indices/` reads SSA values as index expressions, and proves or checks what is relied on of them;
`parts_access/` lowers accesses of the parts of tiles.
"""
