"""Operations made of our own objects: index expressions as `arith` and `affine`; `nvvm`.

Where an expression is emitted, and what stands there already, is `placement`.
"""
