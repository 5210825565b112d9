"""Settings of all Python tests: absolute entries of PYTHONPATH, reproducible hypothesis tests."""

import os
from pathlib import Path

from hypothesis import settings

# Some tests start Python in another folder, where relative entries would point elsewhere.
if "PYTHONPATH" in os.environ:
    _entries = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(e).resolve()) for e in _entries if e)

# A deadline would fail tests on a busy machine. Each run tries the same examples, so that a failure
# is caused by the change.
settings.register_profile("lego-mlir", deadline=None, derandomize=True)
settings.load_profile("lego-mlir")
