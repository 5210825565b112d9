"""Steps that let tiles come and go through rings of stages, and say what copies them and when."""
