"""PTX to cubin by `ptxas`, a program: it compiles a module as a whole, which nvJitLink does not.

nvJitLink makes code that could still be linked with other code. So it cannot know the registers of
a kernel's callers, and leaves out `setmaxnreg` ("(C7504) ignored to maintain compatibility across
compilation units"), by which warps of a CTA take different numbers of registers.

The program is that of the package nvidia-cuda-nvcc, else the one on PATH.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lego_mlir.compiler.backend.assembly import AssemblerMissing, Cubin, make_cubin, rejection
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target

PACKAGE = "nvidia-cuda-nvcc"

_IN_PACKAGES = ("cu13/bin/ptxas",)
"""Below site-packages/nvidia, which the vendor's packages share."""

_FOR_LINKER = "-Xptxas="
"""What nvJitLink's options begin with that it hands on to the assembler."""


def assemble(ptx: str, target: Target, options: Sequence[str] = ()) -> Cubin:
    """Assemble PTX; see `codegen.assemble`.

    Raises:
        LegoError: ptxas is missing, fails or is too old for the target, or the PTX is wrong.
    """
    program = find()
    arguments = [option.removeprefix(_FOR_LINKER) for option in options]
    with tempfile.TemporaryDirectory(prefix="ptxas-") as name:
        folder = Path(name)
        (folder / "kernels.ptx").write_text(ptx, encoding="utf-8")
        command = [program, "-v", f"-arch={target.name}", *arguments, "kernels.ptx", "-o", "cubin"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        except OSError as e:
            raise LegoError(f"'{program}' cannot be run: {e.strerror}", hint=_hint()) from None
        log = (done.stdout + done.stderr).decode(errors="replace").strip()
        if done.returncode != 0:
            raise _failure(done.returncode, log, ptx, target, arguments)
        code = (folder / "cubin").read_bytes()
    return make_cubin(code, log, target)


def find() -> str:
    """Return the path of ptxas.

    Raises:
        AssemblerMissing: there is none.
    """
    packages = importlib.util.find_spec("nvidia")
    for folder in packages.submodule_search_locations or () if packages else ():
        for inside in _IN_PACKAGES:
            if found := shutil.which(str(Path(folder, inside))):
                return found
    if found := shutil.which("ptxas"):
        return found
    raise AssemblerMissing(
        "the kernel gives its warps different numbers of registers (setmaxnreg), which only the "
        "assembler ptxas carries out, and it was not found",
        hint=_hint(),
    )


def _hint() -> str:
    return f"pip install {PACKAGE}; or stop at --emit=ptx"


def _failure(
    status: int, log: str, ptx: str, target: Target, arguments: Sequence[str]
) -> LegoError:
    if status < 0:
        return LegoError(f"ptxas was ended by signal {-status}; it printed: {log or 'nothing'}")
    if re.search(r"Value '\w+' is not defined for option 'gpu-name'", log):
        return LegoError(
            f"ptxas, which is installed here, cannot assemble for {target}",
            hint=f"pip install --upgrade {PACKAGE}",
        )
    if "Unknown option" in log or re.search(r"^ptxas fatal.* for option", log, re.M):
        return LegoError(f"ptxas does not take one of the options {' '.join(arguments)}: {log}")
    return rejection(log, ptx, target, PACKAGE)
