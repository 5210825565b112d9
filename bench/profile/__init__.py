"""Hardware counters by Nsight Compute, and instruction counts of main loops by nvdisasm."""
