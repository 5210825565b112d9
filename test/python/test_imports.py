"""What importing a room pulls in: an artifact runs where there is no MLIR and no SymPy."""

from __future__ import annotations

import subprocess
import sys

import pytest

ROOMS = ["diagnostics", "artifact", "data", "index", "algebra", "analysis", "sim", "runtime"]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_neither_mlir_nor_sympy(room: str) -> None:
    program = f"import sys, lego_mlir.{room}; print(*sorted(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    packages = {module.split(".")[0] for module in answer.stdout.split()}
    assert packages.isdisjoint({"numba_cuda_mlir", "mlir", "sympy"})
    rooms = {module.split(".")[1] for module in answer.stdout.split() if "lego_mlir." in module}
    assert rooms.isdisjoint({"mlir", "compiler", "printers"})
