"""Whether a layout is a bijection, and whether two layouts are equal.

By construction, enumeration, samples or proof. Proofs of index expressions are `index.proofs`.
"""
