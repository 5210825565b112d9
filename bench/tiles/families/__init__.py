"""The families of programs on tiles: each module makes the cases of one.

`bench.tiles.cases` lists which sizes of them are measured.
"""
