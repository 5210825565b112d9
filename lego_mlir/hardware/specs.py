"""GPUs as the cost models see them: one file for each card, `cards/*.json`.

To add a card, add a file; no code changes. `default_for` lists the compute capabilities whose
kernels are planned for the card, so at most one file names each capability.

Sources of the figures: multiprocessors, clocks and tensor-core rates are those of NVIDIA's A100,
L40S and H200 datasheets and architecture whitepapers, dense rates of `mma.sync` with f32
accumulators. The H200's rate was measured with chains of `mma.sync` in registers: one m16n8k16 in
6.05 clocks of a quarter of a multiprocessor, which is 630 TFLOP/s at 1.76 GHz and two thirds of
what `wgmma` reaches. The port of a multiprocessor to the L2 cache is 64 bytes wide; an L40S reaches
less of it. Latencies are those of a machine under load.

The constants of `gemm_model.mma` were measured on an H200, with kernels of the same structure in
CUDA C++; the other cards have the same values. One iteration of 128×256×64 took 1782 clocks, of
which 1549 were `mma`; one of 64×128×64 took 540, of which 387 were; two CTAs of 128×128×64 side by
side took as long as one of 128×256×64. With three stages, 128×256×64 took 96 to 187 clocks longer
than with four. A CTA took 1500 clocks until its first tiles had arrived, and 500 more.

The constants of `gemm_model.wgmma` were fitted to random GEMMs on an H200, launched back to back,
so at the clock that the power limit allows: bench/README.md lists them. Its `cluster_placement` is
what the driver says; of clusters of 8 an H200 placed 15 and another one 13, which counts. The
H100's for 3, 5, 6 and 7 CTAs, and its constants of sums in order, are the H200's, not measured.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.hardware.gemm_models import (
    Correction,
    GemvModel,
    MmaModel,
    UnalignedModel,
    WgmmaModel,
)
from lego_mlir.hardware.limits import PORTABLE_CLUSTER_CTAS
from lego_mlir.hardware.targets import Target

_Fields = TypeVar("_Fields")

_CLUSTERS = {str(ctas) for ctas in range(1, PORTABLE_CLUSTER_CTAS + 1)}

FOLDER = Path(__file__).parent / "cards"
"""The cards that come with the package."""


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One card.

    Attributes:
        name: the name that its driver reports.
        default_for: compute capabilities whose kernels are planned for this card.
        multiprocessors: their number.
        clock_ghz: clock under load, in GHz.
        mma_flops_per_clock: floating-point operations on 16-bit elements that the tensor cores of a
            multiprocessor do in a clock by `mma.sync`; on 8-bit elements they do twice as many.
        shared_bytes_per_clock: bytes of shared memory that a multiprocessor moves in a clock.
        l2_bytes_per_clock: bytes that a multiprocessor reads from the L2 cache in a clock.
        memory_gb_per_s: bandwidth of device memory, in GB/s.
        l2_latency_clocks: latency of the L2 cache, in clocks.
        sm_shared_bytes: shared memory of a multiprocessor, in bytes, for all its CTAs.
        sm_threads: threads of a multiprocessor, of all its CTAs.
        mma_model: constants of the cost model for `mma.sync` (`gemm_model.mma` in the file).
        gemv_model: those for GEMMs of few rows or columns (`gemm_model.gemv`).
        wgmma_model: those for `wgmma` (`gemm_model.wgmma`); `None` if the card has no `wgmma`.
        unaligned_model: those for unaligned rows (`gemm_model.unaligned`); `None` as before.
        corrections: of the estimates of `wgmma`, `gemv` and `mma` (`gemm_corrections`), as far as
            the file has them.
    """

    name: str
    default_for: tuple[tuple[int, int], ...]
    multiprocessors: int
    clock_ghz: float
    mma_flops_per_clock: int
    shared_bytes_per_clock: int
    l2_bytes_per_clock: int
    memory_gb_per_s: int
    l2_latency_clocks: int
    sm_shared_bytes: int
    sm_threads: int
    mma_model: MmaModel
    gemv_model: GemvModel
    wgmma_model: WgmmaModel | None
    unaligned_model: UnalignedModel | None
    corrections: Mapping[str, Correction] = field(default_factory=dict)


def spec_of(target: Target) -> GpuSpec:
    """Return the card that kernels for a target are planned for.

    A capability that no card names gets the card of the highest capability.
    """
    by_capability = defaults(FOLDER)
    return by_capability.get(target.capability) or by_capability[max(by_capability)]


@functools.cache
def card_named(name: str, folder: Path = FOLDER) -> GpuSpec | None:
    """Return the card whose driver reports a name; `None` if there is no such card.

    Raises:
        LegoError: a file is not a card.
    """
    cards = (read_card(file) for file in sorted(folder.glob("*.json")))
    return next((card for card in cards if card.name == name), None)


@functools.cache
def defaults(folder: Path) -> dict[tuple[int, int], GpuSpec]:
    """Return the cards of a folder by the compute capability that they are the default for.

    Raises:
        LegoError: a file is not a card, two files name one capability, or there are none.
    """
    found: dict[tuple[int, int], GpuSpec] = {}
    for file in sorted(folder.glob("*.json")):
        card = read_card(file)
        for capability in card.default_for:
            if capability in found:
                raise _error(
                    file,
                    f"compute capability {'.'.join(map(str, capability))} has two default cards, "
                    f"{found[capability].name} and {card.name}",
                )
            found[capability] = card
    if not found:
        raise LegoError(
            f"there are no cards in '{folder}'", hint="install lego-mlir again: files are missing"
        )
    return found


def read_card(file: Path) -> GpuSpec:
    """Return the card that a file describes.

    Raises:
        LegoError: the file cannot be read, a field is missing, unknown, or has the wrong type.
    """
    try:
        entry = json.loads(file.read_text())
    except (OSError, ValueError) as e:
        raise _error(file, f"the card cannot be read: {e}") from None
    if not isinstance(entry, dict) or not isinstance(models := entry.get("gemm_model"), dict):
        raise _error(file, "a card is an object with a field 'gemm_model', an object too")
    corrections = entry.get("gemm_corrections", {})
    _check_numbers(file, {key: x for key, x in entry.items() if key != "gemm_corrections"})
    own = ("gemm_model", "gemm_corrections")
    values = {key: value for key, value in entry.items() if key not in own}
    values["default_for"] = _capabilities(file, entry.get("default_for"))
    values["mma_model"] = _made(file, MmaModel, models.get("mma"))
    values["gemv_model"] = _made(file, GemvModel, models.get("gemv"))
    values["wgmma_model"] = None
    wgmma = models.get("wgmma")
    if wgmma is not None:
        placement = wgmma.get("cluster_placement") if isinstance(wgmma, dict) else None
        if not isinstance(placement, dict) or set(placement) != _CLUSTERS:
            raise _error(file, "gemm_model.wgmma.cluster_placement has the keys 1 to 8")
        wgmma = {**wgmma, "cluster_placement": {int(n): x for n, x in placement.items()}}
        values["wgmma_model"] = _made(file, WgmmaModel, wgmma)
    unaligned = models.get("unaligned")
    values["unaligned_model"] = None
    if unaligned is not None:
        values["unaligned_model"] = _made(file, UnalignedModel, unaligned)
    values["corrections"] = _corrections(file, corrections)
    if not isinstance(values.get("name"), str):
        raise _error(file, "a card has a name, the one that its driver reports")
    return _made(file, GpuSpec, values)


def _capabilities(file: Path, texts: Any) -> tuple[tuple[int, int], ...]:
    """Return compute capabilities from texts such as "9.0"."""
    if not isinstance(texts, list) or not all(re.fullmatch(r"\d+\.\d", str(x)) for x in texts):
        raise _error(file, f'default_for is a list of capabilities such as "9.0", not {texts!r}')
    return tuple((int(x[:-2]), int(x[-1])) for x in texts)


def _corrections(file: Path, entry: Any) -> dict[str, Correction]:
    """Return corrections from an object of such by the model's name."""
    kinds = ("wgmma", "gemv", "mma")
    if not isinstance(entry, dict) or set(entry) - set(kinds):
        raise _error(file, f"gemm_corrections is an object with fields of {', '.join(kinds)}")
    found = {}
    for kind, values in entry.items():
        features = values.get("features") if isinstance(values, dict) else None
        weights = values.get("weights") if isinstance(values, dict) else None
        if not isinstance(features, dict) or not isinstance(weights, list):
            raise _error(file, f"gemm_corrections.{kind} has the fields 'features' and 'weights'")
        pairs = list(features.values())
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs) or not all(
            type(x) in (int, float) for x in (*weights, *(x for pair in pairs for x in pair))
        ):
            raise _error(
                file, f"a feature of gemm_corrections.{kind} has a mean and a deviation, numbers"
            )
        count = len(features)
        expected = (count + 1) * (count + 2) // 2
        if any(deviation <= 0 for _, deviation in pairs) or len(weights) != expected:
            raise _error(
                file,
                f"gemm_corrections.{kind} has positive deviations, and {expected} weights for "
                f"{count} features",
            )
        means, deviations = (tuple(pair[i] for pair in pairs) for i in (0, 1))
        found[kind] = Correction(tuple(features), means, deviations, tuple(weights))
    return found


def _check_numbers(file: Path, entry: dict[str, Any]) -> None:
    """Check that all fields but `name` and `default_for` are positive numbers, or hold such."""
    for key, value in entry.items():
        if isinstance(value, dict):
            _check_numbers(file, value)
        elif key not in ("name", "default_for") and not (type(value) in (int, float) and value > 0):
            raise _error(file, f"the field '{key}' is a positive number, not {value!r}")


def _made(file: Path, kind: type[_Fields], values: Any) -> _Fields:
    """Return the dataclass `kind` of these values, which must be all of its fields."""
    expected = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    present = set(values) if isinstance(values, dict) else set()
    if present != expected:
        wrong = ", ".join(sorted(present ^ expected))
        raise _error(file, f"the card lacks these fields, or does not have them: {wrong}")
    return kind(**values)


def _error(file: Path, message: str) -> LegoError:
    return LegoError(message, location=Location(str(file)), hint="the fields are those of GpuSpec")
