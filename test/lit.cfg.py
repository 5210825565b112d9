"""lit's configuration: every .mlir file under test/ is a test of legoc.

Run by pytest (test/python/test_lit.py) or alone, `lit -sv test` or `lit -sv test/legoc`. In a RUN
line:

- `%legoc` is the command line program, run by the very Python that runs lit, in a fork of a
  process that has imported it (test/support/fork_server.py);
- `FileCheck` is PyPI's `filecheck` with LLVM's strictness (test/strict_filecheck.py), run so too;
- `%examples`, `%dialects`, `%transforms` and `%pipelines` are those folders;
- `%mlir-opt` is a stock mlir-opt, in a test that says `REQUIRES: mlir-opt`;
- `not` is built in, `%s`, `%t`, `%S`, `%T` are lit's own.

`--param exec_root=DIR` puts temporary files there rather than under build/lit.
"""

# ruff: noqa: F821 (lit defines config and lit_config)

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

test_folder = Path(__file__).resolve().parent
checkout = test_folder.parent
sys.path.insert(0, str(test_folder / "support"))

from fork_server import CLIENT  # noqa: E402 (found in the folder above)
from forked_lit import ForkedShTest  # noqa: E402

config.name = "lego-mlir"
config.test_format = ForkedShTest()
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "python"]
config.test_source_root = str(test_folder)
config.test_exec_root = lit_config.params.get("exec_root", str(checkout / "build" / "lit"))

for needed in ("lego_mlir", "filecheck"):
    if importlib.util.find_spec(needed) is None:
        lit_config.fatal(
            f"the package {needed} is not importable: pip install -e '.[test]' in the checkout"
        )

# Tests run in another working directory: relative entries of PYTHONPATH would point elsewhere. And
# lit's own `cat` puts another PYTHONPATH into the environment of all commands behind it, so each
# says it again.
environment: list[str] = []
if "PYTHONPATH" in os.environ:
    entries = os.environ["PYTHONPATH"].split(os.pathsep)
    path = os.pathsep.join(str(Path(e).resolve()) for e in entries if e)
    environment = ["env", f"'PYTHONPATH={path}'"]
config.environment["LEGO_MLIR_CACHE"] = "0"  # tests compile, and leave the user's cache alone
for name in ("PATH", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES", "LEGO_MLIR_BINDINGS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]


def find_mlir_opt() -> str | None:
    """A stock mlir-opt of LLVM 20 or later, by its own account; none of another age is used."""
    for candidate in ("mlir-opt", *(f"mlir-opt-{version}" for version in range(30, 19, -1))):
        program = shutil.which(candidate)
        if program is None:
            continue
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        version = re.search(r"LLVM version (\d+)", answer.stdout)
        if version is not None and int(version[1]) >= 20:
            return program
    return None


def forked(program: str) -> str:
    """A command that runs one of fork_server.PROGRAMS; -IS: its client needs no packages."""
    return " ".join([*environment, *(f"'{a}'" for a in (sys.executable, "-IS", CLIENT, program))])


substitutions = {
    "%legoc": forked("legoc"),
    r"\bFileCheck\b": forked("FileCheck"),
    "%examples": str(checkout / "docs" / "examples"),
}
mlir_opt = find_mlir_opt()
if mlir_opt is not None:
    config.available_features.add("mlir-opt")
    substitutions["%mlir-opt"] = mlir_opt

from lego_mlir import data  # noqa: E402 (only now is it known to be there)

for folder in ("dialects", "transforms", "pipelines"):
    substitutions[f"%{folder}"] = str(getattr(data, folder)())

config.substitutions.extend(substitutions.items())
