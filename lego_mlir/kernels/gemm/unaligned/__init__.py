"""Matrices that TMA does not take: what is done about them, and the kernel that re-pitches them."""
