"""The GPU's clocks, power and temperature, and the resources of loaded kernels."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from bench.measure.driver import call, driver

if TYPE_CHECKING:
    from lego_mlir.runtime.cuda import LoadedArtifact

_FIELDS = {
    "sm_mhz": "clocks.sm",
    "memory_mhz": "clocks.mem",
    "power_w": "power.draw",
    "limit_w": "power.limit",
    "celsius": "temperature.gpu",
}


def state(bus: str) -> dict[str, float] | None:
    """Return clocks, power and temperature of the GPU on a PCI bus; `None` without `nvidia-smi`."""
    query = f"--query-gpu={','.join(_FIELDS.values())}"
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--id={bus}", query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        values = [float(x) for x in done.stdout.split(",")]
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return dict(zip(_FIELDS, values, strict=True))


def resources(loaded: LoadedArtifact) -> dict[str, dict[str, int]]:
    """Return the resources of each kernel, by its name.

    These are `registers` and bytes of `local` memory (spills included) per thread, and bytes of
    shared memory per CTA, `static` and `dynamic`.
    """
    cuda, device = driver(), int(loaded.device.device_id)
    names = {"registers": "NUM_REGS", "local": "LOCAL_SIZE_BYTES", "static": "SHARED_SIZE_BYTES"}
    found = {}
    for launch, (kernel, _, _) in zip(loaded.artifact.launches, loaded.kernels, strict=True):
        resources = {
            name: int(call(cuda.cuKernelGetAttribute, _attribute(key), kernel.handle, device))
            for name, key in names.items()
        }
        found[launch.kernel] = resources | {"dynamic": launch.shared_bytes}
    return found


def _attribute(name: str) -> object:
    return getattr(driver().CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
