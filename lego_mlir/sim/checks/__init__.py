"""What a run is checked for: data races, uninitialized reads, registers, wgmma, deadlocks."""
