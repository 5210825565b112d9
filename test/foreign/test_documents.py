"""The code blocks of the simulator's guide that need Triton run."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import pytest

pytest_plugins = ["lego_mlir.sim.pytest_plugin"]

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
BLOCKS = re.findall(r"^```python triton\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def namespace(tmp_path_factory):
    """The names that the blocks define; Triton reads the sources of its kernels from a file."""
    file = tmp_path_factory.mktemp("guide") / "guide.py"
    file.write_text("\n".join(BLOCKS))
    linecache.checkcache(str(file))
    names = {"__name__": "guide", "__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), names)  # noqa: S102
    return names


def test_the_tests_of_the_guide_pass(namespace, simulator):
    tests = [name for name in namespace if name.startswith("test_")]
    assert tests
    for name in tests:
        namespace[name](simulator)
