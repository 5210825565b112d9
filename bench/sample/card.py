"""The card that is calibrated: its file, or a first one from what the driver says of the device."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any

from bench.measure.driver import attribute, call, driver
from lego_mlir.artifact import Artifact
from lego_mlir.hardware.limits import PORTABLE_CLUSTER_CTAS
from lego_mlir.hardware.specs import FOLDER, GpuSpec, read_card, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.runtime import cuda
from lego_mlir.runtime.cuda.clusters import clusters_at_once
from lego_mlir.runtime.cuda.loaded import handle_of

_DIGITS = 4
"""Decimals of a fraction in a card's file. It is rounded up, so that clusters stay whole."""


_LINE = 100
_LIST = re.compile(r"^( *)(\"[^\"]*\": )\[([-\d.e,\s]+)\]", re.MULTILINE)
"""A list of numbers in a card's file, after its name."""


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
        file.write_text(card_text(card))
    return read_card(file)


def compiled_probe() -> Artifact:
    """Return a kernel without clusters that has a multiprocessor to itself."""
    from lego_mlir.kernels import WgmmaConfig, matmul

    config = WgmmaConfig((64, 64, 64), 1, 2, one_cta_per_sm=True)
    return matmul(64, 64, 128, config=config, target="sm_90a").compile("sm_90a")


def cluster_placement(probe: Artifact, multiprocessors: int) -> dict[int, float]:
    """Return what part of the multiprocessors whole clusters take, by the CTAs of a cluster.

    The driver knows. Cards of one name differ: their multiprocessors are not divided alike.

    Args:
        probe: a kernel of which a multiprocessor holds one CTA.
        multiprocessors: of the GPU in this machine.
    """
    loaded = cuda.load(probe)
    handle, launch = handle_of(loaded.kernels[0][0]), probe.launches[0]
    found = {}
    for ctas in range(1, PORTABLE_CLUSTER_CTAS + 1):
        held = ctas * clusters_at_once(handle, launch, (ctas, 1, 1))
        found[ctas] = ceil(10**_DIGITS * held / multiprocessors) / 10**_DIGITS
    return found


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


def card_text(card: Mapping[str, Any]) -> str:
    """Return a card's file: lists of numbers stand in lines, not each number in its own."""
    text = json.dumps(card, indent=2)
    return _LIST.sub(_filled, text) + "\n"


def _filled(match: re.Match[str]) -> str:
    """Return a list of numbers in lines of at most 100 characters."""
    indent, numbers = match[1], re.split(r",\s+", match[3].strip())
    one = f"{indent}{match[2]}[{', '.join(numbers)}]"
    if len(one) < _LINE:
        return one
    inner = indent + "  "
    lines = textwrap.wrap(", ".join(numbers), _LINE, initial_indent=inner, subsequent_indent=inner)
    return "\n".join([f"{indent}{match[2]}[", *lines, f"{indent}]"])
