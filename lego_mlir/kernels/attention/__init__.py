"""Attention: forward, with any score and mask, and decoding from a cache with few queries.

`problem` → `config`, `heuristic` → `body`; `masks` proves which tiles a mask leaves whole or empty,
`forward` is the public function, `splits` divides keys among CTAs and combines their results.
"""
