"""Assemble PTX to a cubin, without a GPU or a CUDA toolkit.

`ptxas` assembles a kernel as a whole. Where nothing says how many CTAs a multiprocessor holds
(`.minnctapersm`), it spares a few registers if one more CTA then runs. nvJitLink, which works in
process and is 10 to 20 ms faster, makes code that could still be linked with other code: it never
spares any, and of 131 kernels on rows its code takes up to 1.33 times as long on an H200
(bench/results/rows_assemblers.jsonl). It also ignores `setmaxnreg`, and calls functions of its own
for divisions, which serializes `wgmma` beside them (message C7509). So it only stands in where
ptxas is not installed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lego_mlir.compiler.backend import nvjitlink
from lego_mlir.compiler.backend.assembly import PTX_FILE, AssemblerMissing, Cubin
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.hardware.targets import Target

_USES_SETMAXNREG = re.compile(r"^[^/\n]*\bsetmaxnreg\.", re.M)


def assemble(ptx: str, target: Target, *, options: Sequence[str] = ()) -> Cubin:
    """Assemble PTX for a target; its `.loc` lines are kept, so that a profiler shows the source.

    Args:
        ptx: the text of one PTX module.
        target: must be the module's own `.target`, or a later one that runs it.
        options: more options of the assembler, e.g. `-maxrregcount=128`, `-Xptxas=-O1`.

    Raises:
        LegoError: the assembler is missing or too old for the target; the PTX is wrong (the error
            shows the line); a kernel declares more static shared memory than a launch accepts.
    """
    if not ptx.strip():
        raise LegoError("there is no PTX to assemble", location=Location(PTX_FILE))
    from lego_mlir.compiler.backend import ptxas  # what it imports is not quick

    try:
        return ptxas.assemble(ptx, target, options)
    except AssemblerMissing:
        if _USES_SETMAXNREG.search(ptx):
            raise
    return nvjitlink.assemble(ptx, target, options)
