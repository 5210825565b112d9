"""Settings of all Python tests: absolute entries of PYTHONPATH, reproducible hypothesis tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from lego_mlir.cache import entries
from lego_mlir.cache.store import Store, current_store

# Some tests start Python in another folder, where relative entries would point elsewhere.
if "PYTHONPATH" in os.environ:
    _entries = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(e).resolve()) for e in _entries if e)

# A deadline would fail tests on a busy machine. Each run tries the same examples, so that a failure
# is caused by the change.
settings.register_profile("lego-mlir", deadline=None, derandomize=True)
settings.load_profile("lego-mlir")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A cache of compiled code of its own, which the process has nothing of in memory."""
    monkeypatch.setenv("LEGO_MLIR_CACHE", str(tmp_path / "cache"))
    entries.forget()
    found = current_store()
    assert found is not None
    yield found
    entries.forget()
