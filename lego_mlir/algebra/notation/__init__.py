"""The text of a layout, as in `#lego.layout<"...">`: tokens, parser, stated facts.

It is parsed, never evaluated. What the blocks do is `algebra.blocks`'.
"""
