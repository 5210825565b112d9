"""GEMMs: references, device memory, cases, the config search and the reports."""
