"""What a permutation costs, before it is built: what it accesses, and how long that takes."""
