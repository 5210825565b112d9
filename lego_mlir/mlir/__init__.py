"""The MLIR side: the one door to the bindings, the lego dialect, and its lowering."""
