"""Make `bench` importable: it is in the checkout only, never in the installed package."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))
