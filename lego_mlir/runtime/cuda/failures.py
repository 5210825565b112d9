"""Errors of the driver and of cuda-core, as LegoErrors that say what was tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lego_mlir.artifact import KernelLaunch
from lego_mlir.diagnostics import LegoError


def check(result: tuple[Any, ...]) -> None:
    """Raise if a driver call failed; `failure` around it says what was tried."""
    from cuda.bindings import driver

    status = result[0]
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(getattr(status, "name", status)))


@contextmanager
def failure(doing: str, *, checked: bool = False) -> Iterator[None]:
    """Turn an exception of the driver or of cuda-core into a LegoError with `doing`.

    Args:
        doing: what was tried.
        checked: kernels run in it that check indices, and trap where one is out of range.
    """
    try:
        yield
    except LegoError:
        raise
    except Exception as e:
        raise launch_error(doing, e, checked=checked) from None


def launch_error(doing: str, error: Exception, *, checked: bool = False) -> LegoError:
    """Return an exception of a launch as a LegoError with `doing`; `checked` as for `failure`."""
    if checked and any(name in str(error) for name in _TRAPPED):
        return LegoError(
            f"{doing}: a check of the kernel failed: an index or a size is out of range",
            hint='run with device="sim" (legoc --device=sim) to see which and where; this process '
            "cannot use CUDA again",
        )
    lines = str(error).strip().splitlines()
    text = lines[0].rstrip(".") if lines else type(error).__name__
    return LegoError(f"{doing}: {text}", hint=_hint(str(error)))


NO_CONTEXT = ("CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_CONTEXT_IS_DESTROYED")
"""What the driver says of a launch in a thread where no device is current."""

_TRAPPED = ("LAUNCH_FAILED", "ILLEGAL_INSTRUCTION")
"""What the driver says of a kernel that executed a trap."""


def _hint(text: str) -> str | None:
    if "UNSUPPORTED_PTX_VERSION" in text:
        return "the driver is older than the PTX: update it, or compile a cubin for this device"
    if "ILLEGAL_ADDRESS" in text or "MISALIGNED" in text or "LAUNCH_FAILED" in text:
        return "run with --device sim to see which access it is; this process cannot use CUDA again"
    if "OUT_OF_MEMORY" in text:
        return "free device memory, or use smaller arrays"
    return None


def running(launches: Sequence[KernelLaunch]) -> str:
    """Return `kernel 't' with grid (8, 8, 1), block (256, 1, 1) failed` for launches."""
    named = [f"'{x.kernel}' with grid {x.grid}, block {x.block}" for x in launches]
    return f"kernel {'; '.join(named)} failed"
