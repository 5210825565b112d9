"""The card that is calibrated: its file, or a first one from what the driver says of the device."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bench.measure.driver import attribute, call, driver
from lego_mlir.hardware.specs import FOLDER, GpuSpec, read_card, spec_of
from lego_mlir.hardware.targets import Target


def card_file(device: str) -> Path:
    """Return the file of a device's card, such as `cards/nvidia-h200.json`."""
    return FOLDER / (re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") + ".json")


def card_of(device: str, file: Path) -> GpuSpec:
    """Return a device's card, and write it if there is no such file.

    A device without a card gets a copy of sm_90a's, with its own figures. The new card is the
    default for no compute capability.

    Args:
        device: the name that its driver reports.
        file: the card's file.
    """
    if not file.exists():
        known = card_file(device)
        like = known if known.exists() else card_file(spec_of(Target.parse("sm_90a")).name)
        card = json.loads(like.read_text())
        if like != known:
            card |= {"name": device, "default_for": []} | _figures(card)
        file.write_text(json.dumps(card, indent=2) + "\n")
    return read_card(file)


def _figures(card: dict[str, Any]) -> dict[str, Any]:
    """Return what the driver says of the device in this machine."""
    call(driver().cuInit, 0)
    bus_bytes = attribute("GLOBAL_MEMORY_BUS_WIDTH", 0) / 8
    memory_ghz = attribute("MEMORY_CLOCK_RATE", 0) / 1e6
    return {
        "multiprocessors": attribute("MULTIPROCESSOR_COUNT", 0),
        # Twice the memory clock; about 0.9 of that is reached.
        "memory_gb_per_s": round(0.9 * 2 * memory_ghz * bus_bytes),
        "sm_shared_bytes": attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", 0),
        "sm_threads": attribute("MAX_THREADS_PER_MULTIPROCESSOR", 0),
    }
