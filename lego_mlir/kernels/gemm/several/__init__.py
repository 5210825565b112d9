"""Several GEMMs in one launch: grouped, of known sizes, and ragged, whose rows the device knows."""
