"""Code that several passes share: accesses of tiles, copies, kernel structure, tensor maps.

There are no passes here.
"""
