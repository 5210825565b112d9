"""Kernels that others compiled: Triton and NVRTC make the PTX, here, without a GPU.

They run only if asked for, by `pytest -m foreign` with the extra `foreign` installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if "foreign" in (config.option.markexpr or "") else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.foreign)
