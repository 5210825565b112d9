"""The transform steps on tiles that are placed, one file each: pipelines and roles.

    rings       tiles come and go through rings of stages, filled by copies
    iterations  a part of a loop's body comes one iteration late
    dots        where dots read their operands, and when they are waited for
    roles       who works: persistent CTAs, roles, warpgroups in turns, warps with something to do

A schedule's `@__transform_placed` is composed of them. Each leaves a module that verifies and that
the interpreter runs. What they make is in `tile_ir`, and lowered by `tile_passes.lower_pipelines`.
A step is found by its name in these folders, which import nothing from one another.
"""
