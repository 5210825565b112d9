"""What a GPU is, as data: targets and their limits, specs of cards, swizzle modes.

Nothing here computes a layout or makes an operation.
"""
