"""What a GPU is, as data: targets, limits, element sizes, swizzle modes, and specs of cards.

Nothing here computes a layout or makes an operation. A card is a file, `cards/*.json`.
"""
