"""Fit a card's constants of the cost models to measured times of configs.

`families` lists the models; the same search fits each of them to the configs that it is for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.gemm.cases import CUBLAS
from bench.gemm.references import GemmReference
from bench.report.old_names import current_schedule
from bench.sample.card import card_text
from bench.sample.families import Family, is_considered
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.kernels.gemm.config import GemmConfig

FIXED = ("cluster_placement",)
"""What is known otherwise."""

_NEAR = 0.10
"""How fast the weight of a config falls with its distance from the best of its GEMM."""

_RANGE, _RIDGE = 1.1, 0.003
"""How far the logarithm of a constant may move, and what it costs to move it by one."""

_SOFTNESS = 0.02
"""The same for the regret, in which configs count by how likely the model is to choose them."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """The measured configs of one GEMM.

    Attributes:
        case: its name.
        reference: the GEMM.
        configs: what was measured.
        work: what they do.
        us: their times.
        peer: the time of cuBLAS; NaN without it.
    """

    case: str
    reference: GemmReference
    configs: tuple[GemmConfig, ...]
    work: Any
    us: Numbers
    peer: float


def read_samples(files: Iterable[Path], gpu: GpuSpec, family: Family) -> list[Sample]:
    """Return the samples of files of results that have at least two configs of a family."""
    found = []
    for file in files:
        for line in file.read_text().splitlines():
            result = json.loads(line)
            if "error" not in result and family.takes(result):
                sample = _sample(result, gpu, family)
                if sample is not None:
                    found.append(sample)
    return found


def _sample(result: dict[str, Any], gpu: GpuSpec, family: Family) -> Sample | None:
    """Return the sample of a result; `None` if it has less than two configs of the family."""
    reference = GemmReference.from_json(result["reference"])
    configs, us = [], []
    for candidate in result["candidates"]:
        entry, time = candidate["config"], result["us"].get(candidate["name"])
        schedule = current_schedule(candidate["schedule"])
        if entry and schedule == family.schedule and time is not None:
            values = {n: tuple(x) if isinstance(x, list) else x for n, x in entry.items()}
            config = family.config(**values)
            if is_considered(reference, config):
                configs.append(config)
                us.append(time)
    if len(configs) < 2:
        return None
    work = family.work_of(reference, configs, gpu)
    peer = result["us"].get(CUBLAS, float("nan"))
    return Sample(result["case"], reference, tuple(configs), work, np.array(us), peer)


class Objective:
    """How badly constants explain samples: errors near each GEMM's best, and expected regret."""

    def __init__(self, samples: Sequence[Sample], model: Any, family: Family) -> None:
        self.names = [f.name for f in fields(model) if f.name not in FIXED]
        self.model = model
        self.family = family
        self.work = type(samples[0].work).joined([s.work for s in samples])
        self.log_us = np.log(np.concatenate([s.us for s in samples]))
        sizes = [len(s.us) for s in samples]
        self.starts = np.cumsum([0, *sizes[:-1]])
        self.group = np.repeat(np.arange(len(samples)), sizes)
        self.start = self.logs()
        self.gap = self.log_us - np.minimum.reduceat(self.log_us, self.starts)[self.group]
        self.weight = np.exp(-self.gap / _NEAR) + 0.02
        self.weight /= np.add.reduceat(self.weight, self.starts)[self.group]

    def model_at(self, logs: Numbers) -> Any:
        """Return the constants whose logarithms these are."""
        values = {n: float(x) for n, x in zip(self.names, np.exp(logs), strict=True)}
        return replace(self.model, **values)

    def logs(self) -> Numbers:
        """Return the logarithms of the first constants."""
        return np.log([getattr(self.model, name) for name in self.names])

    def __call__(self, logs: Numbers) -> float:
        predicted = np.log(self.family.times_of(self.work, self.model_at(logs)))
        error = predicted - self.log_us
        mean = np.add.reduceat(self.weight * error, self.starts)
        spread = np.add.reduceat(self.weight * (error - mean[self.group]) ** 2, self.starts)
        best = np.minimum.reduceat(predicted, self.starts)[self.group]
        chance = np.exp(-(predicted - best) / _SOFTNESS)
        chance /= np.add.reduceat(chance, self.starts)[self.group]
        regret = np.add.reduceat(chance * self.gap, self.starts)
        # Large regrets count more than in proportion: the worst case matters too.
        moved = _RIDGE * float(((logs - self.start) ** 2).sum())
        return moved + float(
            spread.mean() + 0.3 * (mean**2).mean() + 0.3 * regret.mean() + 1.5 * (regret**2).mean()
        )


def fit(samples: Sequence[Sample], model: Any, family: Family, *, steps: int, seed: int = 0) -> Any:
    """Return fitted constants: a random search from the given ones.

    Args:
        samples: what was measured.
        model: where the search begins; constants stay within a factor of three of it.
        family: whose constants they are.
        steps: steps of the search.
        seed: of its random numbers.
    """
    objective = Objective(samples, model, family)
    numbers = np.random.default_rng(seed)
    start = objective.logs()
    at, best = start, objective(start)
    scale = np.full(len(start), 0.15)
    for _ in range(steps):
        moved = numbers.random(len(at)) < numbers.choice([0.08, 0.2, 0.5])
        moved[numbers.integers(len(at))] = True
        change = moved * scale * numbers.standard_normal(len(at)) * numbers.choice([0.1, 0.4, 1.5])
        new = np.clip(at + change, start - _RANGE, start + _RANGE)
        found = objective(new)
        if found < best:
            best, at = found, new
            scale = np.where(moved, np.minimum(scale * 1.1, 0.4), scale)
        else:
            scale = np.where(moved, np.maximum(scale * 0.995, 0.01), scale)
    return objective.model_at(at)


def regrets(samples: Sequence[Sample], model: Any, family: Family, top: int = 1) -> Numbers:
    """Return for each sample the time of the best of the model's first `top`, over the best."""
    found = []
    for sample in samples:
        order = np.argsort(family.times_of(sample.work, model), kind="stable")[:top]
        found.append(float(sample.us[order].min() / sample.us.min()))
    return np.array(found)


def write_card(file: Path, models: dict[str, Any]) -> None:
    """Write constants into a card's file, to four digits.

    What corrects a model belongs to its constants, so that it is taken out.

    Args:
        file: the card's file.
        models: the constants by their name in `gemm_model`; others stay as they are.
    """
    card = json.loads(file.read_text())
    for key, model in models.items():
        values: dict[str, Any] = {}
        for name, value in asdict(model).items():
            if isinstance(value, dict):
                values[name] = {str(number): x for number, x in value.items()}
            else:
                values[name] = float(f"{value:.4g}")
        if values != card["gemm_model"].get(key):
            card.get("gemm_corrections", {}).pop(key, None)
        card["gemm_model"][key] = values
    file.write_text(card_text(card))


def summary(samples: Sequence[Sample], model: Any, family: Family) -> str:
    """Return the regrets of a model in one line."""
    lines = []
    for top in (1, 3, 5):
        r = regrets(samples, model, family, top)
        lines.append(f"top {top}: mean {np.exp(np.log(r).mean()):.4f}, worst {r.max():.3f}")
    return "; ".join(lines)
