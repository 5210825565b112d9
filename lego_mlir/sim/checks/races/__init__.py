"""Data races, missing proxy fences and uninitialized reads, decided by happens-before."""
