"""How a transform step is written in Python, and the library of the transform_lego dialect."""
