"""The transform steps on tiles that are placed, one file each: pipelines and roles.

A schedule's `@__transform_placed` is composed of them. Each leaves a module that verifies and that
the interpreter runs. What they make is in `tile_ir`, and lowered by `tile_passes.lower_pipelines`.
"""
