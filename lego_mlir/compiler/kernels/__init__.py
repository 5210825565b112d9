"""What the kernels of a module get before they become PTX, and what they must keep to.

Attributes of kernels and targets, checks of types and of what is lowered, limits of a GPU's
resources. What a launch is as data stands in `compiler.launches`.
"""
