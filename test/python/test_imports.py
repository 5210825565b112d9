"""Every module can be the first that is imported: no two packages wait for each other."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import sys

import pytest

import lego_mlir

MODULES = sorted(m.name for m in pkgutil.walk_packages(lego_mlir.__path__, "lego_mlir."))


def comes_first(module: str) -> str:
    """What goes wrong where a module is imported before all others of the package.

    A forked child forgets the package's modules and imports that one. A fresh interpreter for each
    would load everything else anew, too.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            gc.disable()
            for name in [n for n in sys.modules if n.partition(".")[0] == "lego_mlir"]:
                if name != "lego_mlir.mlir.bindings":  # what MLIR's library has done stays done
                    del sys.modules[name]
            importlib.import_module(module)
        except BaseException as e:
            said = f"{type(e).__name__}: {e}"
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_every_module_may_be_imported_first() -> None:
    import lego_mlir.compiler.driver  # noqa: F401  # what children share: MLIR, NumPy

    wrong = {module: said for module in MODULES if (said := comes_first(module))}
    assert not wrong
