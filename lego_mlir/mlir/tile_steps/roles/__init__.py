"""Steps that say who works: persistent CTAs, roles, warpgroups in turns, warps with work to do."""
