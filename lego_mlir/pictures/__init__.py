"""Pictures of layouts: in SVG files, notebooks and terminals.

`picture.py` makes a `Grid` of cells from a layout; `svg.py` and `terminal.py` print grids. Nothing
here imports MLIR: layouts of a module come from `mlir/layouts.py`.
"""

from lego_mlir.pictures.picture import Picture, draw

__all__ = ["Picture", "draw"]
