"""Conversions between distributed layouts: the road, its plan, and its cost.

`plan` chooses; `exchange` stays inside of warps, `shared_memory` does not, with the memory of
`memory_layouts`; `atoms` are the digits that two layouts have in common. Nothing here emits code.
"""
