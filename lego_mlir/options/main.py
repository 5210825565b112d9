"""The options of legoc: the input, then the options of each command."""

from __future__ import annotations

import argparse
from typing import Any

from lego_mlir import __version__
from lego_mlir.options import caching, compiling, drawing, printing, ptx_files, running
from lego_mlir.options.base import Parser

_COMMANDS = (compiling, printing, drawing, running, ptx_files, caching)
"""The commands, in the order of the help; each adds its options, and checks them."""

_DESCRIPTION = """\
legoc compiles an MLIR module whose data and work are placed by LEGO layouts. With --run it also
launches the kernels, on a GPU or in a simulator.

stages of the compilation (--emit):
  placed     tiles have distributed layouts
  index      lego operations are lowered to the dialects arith, affine, memref and gpu
  scheduled  the schedule's transform script has been applied
  nvvm       the kernels are in the dialects nvvm and llvm
  llvm       LLVM IR of the kernels
  ptx        PTX of the kernels
  cubin      machine code
  bundle     one file with the code and the launches; it runs where there is no compiler

With --print, the input is the text of a layout, and legoc prints it in another language.
'legoc template FILE' fills the holes of a template of source text: legoc template --help.
"""

_EPILOGUE = """\
examples:
  legoc transpose.mlir                            print the derived index arithmetic
  legoc transpose.mlir --emit=ptx --set T=16      print PTX for another tile size
  legoc transpose.mlir --run                      run on random data, compare with NumPy
  legoc transpose.mlir a.npy --run --save out     run on your data, save the outputs
  legoc transpose.mlir --run --report             count bank conflicts, sectors, instructions
  legoc matmul.mlir --schedule=cp_async --param stages=3 --keep steps --emit=ptx
                                                  use tensor cores, keep each transform step
  legoc transpose.mlir --emit=bundle -o t.lego    compile here ...
  legoc t.lego --run --device=cuda                ... and run on a machine with a GPU
  legoc scale.ptx --run --kernel scale --grid 4 --block 256 x.npy 1000 0.5
                                                  run a kernel that any compiler has made
  legoc --print=cuda --name A "OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])"
                                                  print a layout as CUDA functions
  legoc transpose.mlir --draw A tile -o x.svg     draw two layouts of a module
  legoc "OrderBy(Row(32, 32))" --draw --access ":, 0"
                                                  draw the bank conflicts of a column

exit status: 0 on success; 1 if the input has an error or a result is wrong; 2 on wrong usage.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; on wrong usage it exits with status 2."""
    parser = _MainParser(prog="legoc", description=_DESCRIPTION, epilog=_EPILOGUE)
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="a .mlir file, a bundle, or - for stdin; with --run a .ptx file too, with --print or "
        "--draw a layout",
    )
    parser.add_argument(
        "arrays",
        metavar="ARRAY",
        nargs="*",
        default=[],  # else argparse says that arrays are required
        help="with --run: .npy files for the tensors of the host function, in order; "
        "tensors without a file, or with their sizes in its place, such as 64x100, get random "
        "data. Of a .ptx file, one argument for each parameter "
        "of the kernel: a .npy file, an array of zeros such as f32:64x64, or a number. "
        "With --draw: more layouts, or names of layouts",
    )
    parser.add_argument("--version", action="version", version=f"legoc {__version__}")
    for command in _COMMANDS:
        command.add(parser)
    return parser


class _MainParser(Parser):
    """A parser that also checks combinations of options, which argparse cannot check."""

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        options = self.parse_intermixed_args(*args, **kwargs)  # arrays may stand behind options
        for command in _COMMANDS:
            command.check(options, self.error)
        return options
