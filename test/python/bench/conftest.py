"""The bench is in the checkout, never in the installed package: it is found last."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))
