"""Lower rings to shared memory, mbarriers and copies, and roles to branches.

`lower_teams` deals iterations to the teams of roles. `lower_rings` comes before `lower_tiles`: a
tile that a role waits for becomes a tile in a stage of a buffer. `lower_roles` comes last, so that
barriers inside of roles are those of their threads. The steps that make rings and roles are in
`tile_steps`.
"""

from lego_mlir.mlir.tile_passes.lower_pipelines.rings import lower_rings
from lego_mlir.mlir.tile_passes.lower_pipelines.roles import lower_roles
from lego_mlir.mlir.tile_passes.lower_pipelines.teams import lower_teams

__all__ = ["lower_rings", "lower_roles", "lower_teams"]
