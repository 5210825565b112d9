"""What all Python tests share."""

import os
from pathlib import Path

from hypothesis import settings

# Some tests start Python in another folder: relative entries would point elsewhere from there.
if "PYTHONPATH" in os.environ:
    _entries = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(e).resolve()) for e in _entries if e)

# Shared machines are slow at times: a deadline would make a test fail for that. Each run tries the
# same examples, so that a failure is the change's own.
settings.register_profile("lego-mlir", deadline=None, derandomize=True)
settings.load_profile("lego-mlir")
