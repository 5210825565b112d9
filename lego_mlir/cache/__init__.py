"""The cache of compiled code, on disk and in the process.

`keys` says what an entry depends on, `entries` finds and keeps code by its key, `store` writes the
files. Who compiles makes the keys: `compiler/cached.py` those of modules, `frontend/host` those of
Python kernels, by their fingerprints. No MLIR is needed to find an entry.
"""

from lego_mlir.cache.folders import disabled, folder
from lego_mlir.cache.store import Store

__all__ = ["Store", "disabled", "folder"]
