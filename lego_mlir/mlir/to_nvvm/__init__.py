"""to_nvvm."""
