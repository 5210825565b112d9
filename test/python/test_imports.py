"""Every module can be imported first: imports have no cycle."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import lego_mlir


def modules(package: str, path: Iterable[str]) -> Iterator[str]:
    """Yield the names of a package's modules, without importing them.

    Not of `lego_mlir.torch`: it needs PyTorch, where its operators can be registered only once.
    """
    for found in pkgutil.iter_modules(path):
        name = f"{package}.{found.name}"
        if name != "lego_mlir.torch":
            yield name
            yield from (
                modules(name, [str(Path(p, found.name)) for p in path]) if found.ispkg else ()
            )


MODULES = sorted(modules("lego_mlir", lego_mlir.__path__))


def import_error(module: str) -> str:
    """Import a module before all others of the package; return the error's text, or nothing.

    A forked child forgets the package's modules and imports that one. A new interpreter for each
    module would also load all other packages again.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        error = ""
        try:
            gc.disable()
            for name in [n for n in sys.modules if n.partition(".")[0] == "lego_mlir"]:
                if name != "lego_mlir.mlir.bindings":  # what MLIR's library has done stays done
                    del sys.modules[name]
            importlib.import_module(module)
        except BaseException as e:
            error = f"{type(e).__name__}: {e}"
        finally:
            os.write(write, error.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        error = pipe.read().decode()
    os.waitpid(child, 0)
    return error


SHARES = 6
"""Parts that the modules are tested in, so that workers share them."""


def errors(share: int) -> dict[str, str]:
    """Return the errors of one part of the modules, by module."""
    import lego_mlir.compiler.driver  # noqa: F401  # what children share: MLIR, NumPy

    return {module: error for module in MODULES[share::SHARES] if (error := import_error(module))}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("share", range(SHARES))
def test_every_module_can_be_imported_first(share: int) -> None:
    # A process of its own forks faster than this one, which holds what other tests have loaded.
    code = f"import test_imports; print(test_imports.errors({share}))"
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), *filter(None, sys.path)])
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.strip() == "{}", found.stdout + found.stderr
