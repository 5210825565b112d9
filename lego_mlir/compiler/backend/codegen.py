"""Assemble PTX to a cubin, without a GPU or a CUDA toolkit.

nvJitLink assembles in process, which is 10 to 20 ms faster than starting a program. `ptxas` is used
if a kernel does not say how many CTAs a multiprocessor holds (`.minnctapersm`): it spares a few
registers where one more CTA then runs, and nvJitLink, whose code could still be linked with other
code, never does (bench/results/rows_assemblers.jsonl). It is used, too, if a kernel has
`setmaxnreg`, which nvJitLink ignores, or if nvJitLink calls functions of its own, for divisions, in
a kernel with `wgmma`: the call would serialize these (message C7509), and in the code of ptxas
nothing is called. Each of the two stands in for the other where that is not installed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lego_mlir.compiler.backend import nvjitlink
from lego_mlir.compiler.backend.assembly import PTX_FILE, AssemblerMissing, Cubin
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.hardware.targets import Target

_ENTRY = re.compile(r"^[ \t]*(?:\.\w+[ \t]+)*\.entry\b", re.M)

_USES_SETMAXNREG = re.compile(r"^[^/\n]*\bsetmaxnreg\.", re.M)

_CALLS = "(C7509)"


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
    if _USES_SETMAXNREG.search(ptx):
        return _by_ptxas(ptx, target, options)
    is_free = len(_ENTRY.findall(ptx)) > ptx.count(".minnctapersm")
    if is_free and (made := _if_ptxas(ptx, target, options)):
        return made
    try:
        made = nvjitlink.assemble(ptx, target, options)
        return _if_ptxas(ptx, target, options) or made if _CALLS in made.log else made
    except AssemblerMissing as missing:
        try:
            return _by_ptxas(ptx, target, options)
        except AssemblerMissing:
            raise missing from None


def _if_ptxas(ptx: str, target: Target, options: Sequence[str]) -> Cubin | None:
    """Return what ptxas makes; `None` if it is not installed."""
    try:
        return _by_ptxas(ptx, target, options)
    except AssemblerMissing:
        return None


def _by_ptxas(ptx: str, target: Target, options: Sequence[str]) -> Cubin:
    from lego_mlir.compiler.backend import ptxas  # few need it, and what it imports is not quick

    return ptxas.assemble(ptx, target, options)
