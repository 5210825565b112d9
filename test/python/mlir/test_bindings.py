"""The module of the MLIR bindings: which package it imports, and what it loads lazily."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

IMPORT = "from lego_mlir.mlir.bindings import ir"
USE = f"{IMPORT}; ir.Context"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter, which has imported nothing yet."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_bindings_load_when_they_are_used() -> None:
    names = "[m for m in sys.modules if m.startswith('numba_cuda_mlir')]"
    done = python(f"{IMPORT}, passmanager, arith; import sys; print({names}, bool(ir.Context))")
    assert done.stdout.strip() == "[] True", done.stderr


def test_the_parent_package_is_imported_without_running_it() -> None:
    code = f"{USE}; import sys; print([m for m in sys.modules if 'numba_cuda_mlir.num' in m])"
    assert python(code).stdout.strip() == "[]"


def test_the_parent_package_runs_when_it_is_used() -> None:
    code = (
        f"{USE}; import numba_cuda_mlir; from numba_cuda_mlir import cuda;"
        "print(numba_cuda_mlir.__version__, hasattr(cuda, 'jit'), hasattr(numba_cuda_mlir, 'no'))"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["True", "False"]


def test_the_parent_package_may_be_imported_first() -> None:
    done = python(f"import numba_cuda_mlir; {IMPORT}; print(ir.Context.__name__)")
    assert done.stdout.strip() == "Context", done.stderr


def test_classes_of_a_dialect_load_at_their_first_use() -> None:
    """Those of nvvm take longer to load than a kernel takes to compile."""
    code = f"""
import sys
{IMPORT}, nvvm
loaded = lambda: any(m.endswith("._nvvm_ops_gen") for m in sys.modules)
context = ir.Context()
module = ir.Module.parse("func.func @f() {{ nvvm.barrier return }}", context)
(func,) = module.body.operations
barrier, _ = func.regions[0].blocks[0].operations
print(barrier.operation.name, loaded(), nvvm.BarrierOp.__name__, loaded())
"""
    done = python(code)
    assert done.stdout.split() == ["nvvm.barrier", "False", "BarrierOp", "True"], done.stderr


def test_the_environment_variable_selects_upstreams_package(tmp_path: Path) -> None:
    """A stand-in with upstream's layout: `mlir.ir`, `mlir.passmanager`, `mlir.dialects.*`."""
    (tmp_path / "mlir" / "dialects").mkdir(parents=True)
    for module in ("__init__", "ir", "passmanager", "dialects/__init__", "dialects/arith"):
        (tmp_path / "mlir" / f"{module}.py").write_text(f"where = 'upstream {module}'\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code = "from lego_mlir.mlir.bindings import ir, arith; print(ir.where, '|', arith.where)"
    done = python(code, LEGO_MLIR_BINDINGS="mlir", PYTHONPATH=path)
    assert done.stdout.strip() == "upstream ir | upstream dialects/arith", done.stderr


def test_a_missing_or_unknown_package_is_an_error_with_a_hint() -> None:
    show = f"""
try:
    {USE}
except Exception as e:
    print(type(e).__name__, e)
"""
    missing = python(show, LEGO_MLIR_BINDINGS="mlir").stdout
    assert missing.startswith("LegoError error: the MLIR bindings are missing")
    assert "unset LEGO_MLIR_BINDINGS" in missing
    unknown = python(show, LEGO_MLIR_BINDINGS="llvm").stdout
    assert "LEGO_MLIR_BINDINGS=llvm: no such MLIR bindings" in unknown


def test_an_unknown_dialect_is_an_error() -> None:
    done = python("import lego_mlir.mlir.bindings as b; print(hasattr(b, 'no_such_dialect'))")
    assert done.stdout.strip() == "False"


def test_probes_of_all_globals_neither_need_nor_load_a_package() -> None:
    """As torch.compile and `inspect.unwrap` probe whatever they see."""
    code = f"{IMPORT}, arith; print([hasattr(x, '__wrapped__') for x in (ir, arith)])"
    done = python(code, LEGO_MLIR_BINDINGS="mlir")  # there is none
    assert done.stdout.strip() == "[False, False]", done.stderr
