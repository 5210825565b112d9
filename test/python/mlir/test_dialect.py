"""One module names the operations and attributes of the lego dialect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import lego_mlir
from lego_mlir import data
from lego_mlir.mlir import dialect

PACKAGE = Path(lego_mlir.__file__).parent


def test_every_declared_operation_has_a_name() -> None:
    declared = re.findall(
        r"irdl\.operation @(\w+)", (data.dialects() / "lego.irdl.mlir").read_text()
    )
    assert {getattr(dialect, name.upper()) for name in declared} == {f"lego.{n}" for n in declared}


def _literals(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_other_module_spells_a_name() -> None:
    home = Path(dialect.__file__).parent
    files = [f for f in PACKAGE.rglob("*.py") if home not in f.parents]
    found = [(f.name, x) for f in files for x in _literals(f) if re.fullmatch(r"lego\.\w*", x)]
    assert found == []
