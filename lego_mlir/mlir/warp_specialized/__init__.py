"""warp_specialized."""
