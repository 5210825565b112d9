"""An array of another library: DLPack and nothing else."""

from __future__ import annotations

from typing import Any


class DlpackOnly:
    """Lends a NumPy array by DLPack."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()
