"""What several passes share: accesses of tiles, copies, structure of a kernel, tensor maps.

A file here is no pass.
"""
