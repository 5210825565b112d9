"""The command line of legoc: one module for the options of each command.

Each has their help texts, and checks which of them exclude others. What the options do is in
`lego_mlir.cli`.
"""

from lego_mlir.options.main import parser
from lego_mlir.options.template import template_parser

__all__ = ["parser", "template_parser"]
