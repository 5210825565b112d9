"""What the cost models leave out of a config's time, learnt from measured GEMMs.

Not here: the models, which are physical and stand beside the configs that they are for.
"""
