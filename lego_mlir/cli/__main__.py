"""`python -m lego_mlir.cli` is legoc."""

import sys

from lego_mlir.cli import main

if __name__ == "__main__":
    sys.exit(main())
