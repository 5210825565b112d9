"""Costs of a kernel: instructions by class, the traffic of each memory access, a report."""
