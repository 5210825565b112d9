"""The extraction of the cheapest of several equal forms of an expression.

`forms` makes the forms and chooses, `cost` weighs them, as `index.width` does, and `factor` is how
sums are printed. The rules that make normal forms are in `index` itself.
"""
