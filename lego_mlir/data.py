"""Where the files that a user may read and override lie: dialects, transforms, pipelines.

An installed package carries them under `lego_mlir/share`. In a checkout, whether on `PYTHONPATH` or
installed by `pip install -e`, they are the checkout's own, so that an edit counts at once.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from lego_mlir.diagnostics import LegoError


def dialects() -> Path:
    """Return the folder of the dialect definitions (`lego.irdl.mlir`).

    Raises:
        LegoError: the installation is incomplete.
    """
    return _folder("dialects", __file__)


def transforms() -> Path:
    """Return the folder of the transform-dialect libraries.

    Raises:
        LegoError: the installation is incomplete.
    """
    return _folder("transforms", __file__)


def pipelines() -> Path:
    """Return the folder of the pass pipelines.

    Raises:
        LegoError: the installation is incomplete.
    """
    return _folder("pipelines", __file__)


@lru_cache(maxsize=1 << 4)
def _folder(name: str, file: str) -> Path:
    """Return a folder of the checkout that a file of the package lies in, else of the package."""
    checkout = Path(file).resolve().parents[1]
    if (checkout / "CMakeLists.txt").is_file():
        folder = checkout / name
        hint = "this is a source checkout: restore the folder from version control"
    else:
        from importlib import resources  # which imports a lot

        folder = Path(str(resources.files("lego_mlir") / "share" / name))
        hint = "the installation is incomplete: uninstall lego-mlir and install it again"
    if not folder.is_dir():
        raise LegoError(f"the folder of the {name} is missing: {folder}", hint=hint)
    return folder
