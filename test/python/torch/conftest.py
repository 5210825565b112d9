"""These tests need PyTorch; without it they are skipped. They run on the CPU, in the simulator."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
