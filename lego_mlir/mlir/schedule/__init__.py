"""The interface of transform steps in Python, and the library of the transform_lego dialect."""
