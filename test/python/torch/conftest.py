"""These tests need PyTorch. They run on the CPU, in the simulator, but for `test_gpu.py`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent
IS_INSTALLED = importlib.util.find_spec("torch") is not None

# They import it at once. `test_installed.py` is skipped instead, and says why.
collect_ignore = [
    file.name
    for file in HERE.glob("test_*.py")
    if not IS_INSTALLED and file.name != "test_installed.py"
]
