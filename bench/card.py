"""What the card says of itself."""

from __future__ import annotations

import subprocess

_FIELDS = {
    "sm_mhz": "clocks.sm",
    "memory_mhz": "clocks.mem",
    "power_w": "power.draw",
    "limit_w": "power.limit",
    "celsius": "temperature.gpu",
}


def state(bus: str) -> dict[str, float] | None:
    """Clocks, power and temperature of the card on a PCI bus id; `None` where nobody tells."""
    query = f"--query-gpu={','.join(_FIELDS.values())}"
    try:
        said = subprocess.run(
            ["nvidia-smi", f"--id={bus}", query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        values = [float(x) for x in said.stdout.split(",")]
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return dict(zip(_FIELDS, values, strict=True))
