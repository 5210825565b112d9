"""Arithmetic as PTX defines it where NumPy's differs: rounding, 8-bit floats, fragments."""
