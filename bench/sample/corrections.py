"""Fit what corrects the estimates of a card's models, to configs of all kinds at once.

A GEMM's configs compete with one another, whatever their model. So what counts is how the errors of
the estimates differ within a GEMM, most of all near its best config; the errors themselves count
little. Both are fitted by ridge regression, for which a matrix is inverted once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.gemm.references import GemmReference
from bench.report.old_names import current_schedule
from bench.sample.card import card_text
from bench.sample.families import copied_before, copies_of_configs, is_considered, problem_of
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.gemm_models import Correction
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.choice import needed_for_wgmma
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.corrections import gemv as gemv_features
from lego_mlir.kernels.gemm.corrections import mma as mma_features
from lego_mlir.kernels.gemm.corrections import wgmma as wgmma_features
from lego_mlir.kernels.gemm.corrections.correction import Features, logarithms, polynomial, standard
from lego_mlir.kernels.gemm.gemv import model as gemv
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.matrices import ALIGNMENT
from lego_mlir.kernels.gemm.mma import model as mma
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.planner import with_row_major_c
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.unaligned.remedies import Remedies, store_microseconds
from lego_mlir.kernels.gemm.unaligned.thread_copies import joined_microseconds
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, stores_rows
from lego_mlir.kernels.gemm.wgmma.model import times_of
from lego_mlir.kernels.gemm.wgmma.work import work_of

KINDS: Mapping[str, type[Any]] = {"wgmma": WgmmaConfig, "gemv": GemvConfig, "mma": MmaConfig}
"""The class of configs by the name of their model."""

_SCHEDULES = {"persistent": "wgmma", "cp_async": "mma", "gemv": "gemv", None: "gemv"}
"""The model's name by the schedule of results."""

_NEAR, _LEAST_WEIGHT = 0.15, 0.05
"""How fast the weight of a config falls with its distance from the best of its GEMM, and its least
weight."""

_ABSOLUTE = 0.05
"""How much the errors themselves count beside their differences within a GEMM."""

_RIDGE = 0.03
"""What the square of a weight costs, for each GEMM."""

_LEAST_REST = 0.25
"""The least part of a measured time that is left to a GEMM when the time of copies is taken off."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """The measured configs of one GEMM that one model is for.

    Attributes:
        key: the model's name.
        us: their times.
        base: what the model says.
        extra: what copies of unaligned operands add.
        features: the configs' features.
    """

    key: str
    us: Numbers
    base: Numbers
    extra: float
    features: Features


@dataclass(frozen=True, slots=True)
class Measured:
    """One GEMM, in one file of results.

    Attributes:
        reference: the GEMM.
        parts: its configs.
    """

    reference: GemmReference
    parts: tuple[Part, ...]

    @property
    def us(self) -> Numbers:
        """The times of all configs."""
        return np.concatenate([part.us for part in self.parts])


def read_measured(files: Iterable[Path], gpu: GpuSpec) -> list[Measured]:
    """Return the GEMMs of files of results that have at least two configs."""
    found = []
    for file in files:
        for line in file.read_text().splitlines():
            result = json.loads(line)
            if "error" not in result:
                reference = GemmReference.from_json(result["reference"])
                parts = _parts(reference, result, gpu)
                if sum(len(part.us) for part in parts) >= 2:
                    found.append(Measured(reference, tuple(parts)))
    return found


def _parts(reference: GemmReference, result: dict[str, Any], gpu: GpuSpec) -> list[Part]:
    """Return the configs of a result by model; each once."""
    found: dict[str, dict[GemmConfig, float]] = {key: {} for key in KINDS}
    for candidate in result["candidates"]:
        entry, time = candidate.get("config"), result["us"].get(candidate["name"])
        if entry and time is not None:
            key = _SCHEDULES[current_schedule(candidate["schedule"])]
            values = {n: tuple(x) if isinstance(x, list) else x for n, x in entry.items()}
            config = KINDS[key](**values)
            if is_considered(reference, config):
                found[key].setdefault(config, time)
    return [
        part
        for key, times in found.items()
        for part in _of_kind(key, reference, list(times), np.array(list(times.values())), gpu)
    ]


def _of_kind(
    key: str, reference: GemmReference, configs: Sequence[Any], us: Numbers, gpu: GpuSpec
) -> list[Part]:
    """Return configs of one kind as parts, as few as their features allow."""
    if not configs:
        return []
    problem, layouts = problem_of(reference)
    canonical, _ = with_row_major_c(problem)
    if key == "wgmma":
        needed = needed_for_wgmma(problem, layouts, Target.parse("sm_90a"), ALIGNMENT)
        if not isinstance(needed, Remedies):
            return []
        return list(_wgmma(problem, needed, configs, us, gpu))
    if key == "mma":
        work = mma.work_of(canonical, configs, gpu)
        base = mma.times_of(work, gpu.mma_model)
        features = mma_features.features_of(canonical, configs, work, base)
        return [Part(key, us, base, 0.0, features)]
    found = []
    for swap in (False, True):
        rows = [i for i, config in enumerate(configs) if config.swap_ab == swap]
        if rows:
            multiplied = canonical.transpose if swap else canonical
            some = [configs[i] for i in rows]
            done = gemv.work_of(multiplied, some, gpu)
            times = gemv.times_of(done, gpu.gemv_model)
            features = gemv_features.features_of(multiplied, some, done, times)
            found.append(Part(key, us[rows], times.total, 0.0, features))
    return found


def _wgmma(
    problem: Problem, needed: Remedies, configs: Sequence[WgmmaConfig], us: Numbers, gpu: GpuSpec
) -> Iterator[Part]:
    """Yield configs of `wgmma` as parts, one for each choice of what threads copy."""
    assert gpu.wgmma_model is not None
    assert gpu.unaligned_model is not None
    canonical, _ = with_row_major_c(needed.multiplied(problem))
    written = needed.written_bytes(problem)
    for names in sorted({config.copied_by_threads for config in configs}):
        rows = [i for i, config in enumerate(configs) if config.copied_by_threads == names]
        some = [configs[i] for i in rows]
        table = ConfigTable.of(some, ELEMENT_BYTES[problem.dtype])
        work = work_of(canonical, table, gpu)
        times = times_of(work, gpu.wgmma_model)
        if written:
            by_rows = stores_rows(canonical, table)
            stores = store_microseconds(written, by_rows, gpu.unaligned_model)
            times = replace(times, total=times.total + stores)
        copies = copies_of_configs(problem, needed, some, table, work)
        total = joined_microseconds(times.total, copies, gpu.unaligned_model)
        copied = 1 - times.total / total
        times = replace(times, total=total)
        features = wgmma_features.features_of(
            canonical,
            table,
            work,
            times,
            gpu.wgmma_model,
            stores_by_threads=written > 0,
            copied=copied,
        )
        extra = copied_before(problem, needed, some[0]).microseconds(gpu.unaligned_model)
        yield Part("wgmma", us[rows], times.total, extra, features)


class Regression:
    """The errors of models on GEMMs, as a linear function of the weights of all corrections."""

    def __init__(self, gemms: Sequence[Measured]) -> None:
        self.parts = [part for gemm in gemms for part in gemm.parts]
        self.group = np.repeat(np.arange(len(gemms)), [len(gemm.us) for gemm in gemms])
        self.count = len(gemms)
        self.empty: dict[str, Correction] = {}
        for key in KINDS:
            own = [part for part in self.parts if part.key == key]
            if own:
                names = tuple(own[0].features)
                columns = np.concatenate([_columns(part, names) for part in own])
                self.empty[key] = Correction(
                    names,
                    tuple(_rounded(columns.mean(0))),
                    tuple(_rounded(columns.std(0) + 1e-6)),
                    (),
                )

    def fitted(self) -> dict[str, Correction]:
        """Return the corrections that explain the errors best."""
        design, penalty = self._design()
        errors = np.concatenate([self._errors(part) for part in self.parts])
        weight = self._weights()
        total = np.bincount(self.group, weight)
        means = np.stack(
            [np.bincount(self.group, weight * column) / total for column in design.T], 1
        )
        mean = np.bincount(self.group, weight * errors) / total
        roots = np.sqrt(weight)
        rows = [(design - means[self.group]) * roots[:, None]]
        rows.append(design * (roots * np.sqrt(_ABSOLUTE))[:, None])
        right = [(errors - mean[self.group]) * roots, errors * roots * np.sqrt(_ABSOLUTE)]
        left = np.concatenate(rows)
        square = left.T @ left + np.diag(penalty)
        solution = np.linalg.solve(square, left.T @ np.concatenate(right))
        found, start = {}, 0
        for key, empty in self.empty.items():
            end = start + _terms(len(empty.features))
            weights = tuple(_rounded(solution[start:end]))
            found[key] = Correction(empty.features, empty.means, empty.deviations, weights)
            start = end
        return found

    def _design(self) -> tuple[Numbers, Numbers]:
        """Return the terms of all polynomials, and what their weights cost."""
        widths = {key: _terms(len(empty.features)) for key, empty in self.empty.items()}
        starts = dict(zip(widths, np.cumsum([0, *widths.values()]), strict=False))
        design = np.zeros((len(self.group), sum(widths.values())))
        penalty = np.full(design.shape[1], _RIDGE * self.count)
        row = 0
        for part in self.parts:
            empty, start = self.empty[part.key], starts[part.key]
            terms = polynomial(standard(_columns(part, empty.features), empty))
            design[row : row + len(terms), start : start + widths[part.key]] = terms
            row += len(terms)
        penalty[list(starts.values())] = 1e-3  # a constant is a bias of a model
        return design, penalty

    def _errors(self, part: Part) -> Numbers:
        rest = np.maximum(part.us - part.extra, _LEAST_REST * part.us)
        found: Numbers = np.log(rest / part.base)
        return found

    def _weights(self) -> Numbers:
        """Return the weights of configs; those of a GEMM add up to 1."""
        us = np.concatenate([part.us for part in self.parts])
        best = np.full(self.count, np.inf)
        np.minimum.at(best, self.group, us)
        weight = np.exp(-np.log(us / best[self.group]) / _NEAR) + _LEAST_WEIGHT
        found: Numbers = weight / np.bincount(self.group, weight)[self.group]
        return found


def predicted(part: Part, corrections: Mapping[str, Correction]) -> Numbers:
    """Return the corrected times of configs."""
    correction = corrections.get(part.key)
    if correction is None:
        return part.base + part.extra
    logs = logarithms(_columns(part, correction.features), correction)
    found: Numbers = part.base * np.exp(logs) + part.extra
    return found


def regrets(
    gemms: Sequence[Measured], corrections: Mapping[str, Correction], top: int = 1
) -> Numbers:
    """Return for each GEMM the time of the best of the first `top` configs, over the best."""
    found = []
    for gemm in gemms:
        times = np.concatenate([predicted(part, corrections) for part in gemm.parts])
        order = np.argsort(times, kind="stable")[:top]
        found.append(gemm.us[order].min() / gemm.us.min())
    return np.array(found)


def cross_validated(gemms: Sequence[Measured], folds: int, top: int = 1) -> Numbers:
    """Return the regrets by corrections that are fitted to GEMMs of other sizes.

    Args:
        gemms: the GEMMs.
        folds: parts of them, each of which is left out once.
        top: configs of a GEMM, as in `regrets`.
    """
    found = np.ones(len(gemms))
    numbers: dict[GemmReference, int] = {}
    for gemm in gemms:
        numbers.setdefault(gemm.reference, len(numbers))
    fold_of = np.array([numbers[gemm.reference] % folds for gemm in gemms])
    for fold in range(folds):
        rest = [gemm for gemm, own in zip(gemms, fold_of, strict=True) if own != fold]
        left_out = [gemm for gemm, own in zip(gemms, fold_of, strict=True) if own == fold]
        found[fold_of == fold] = regrets(left_out, Regression(rest).fitted(), top)
    return found


def write_corrections(file: Path, corrections: Mapping[str, Correction]) -> None:
    """Write corrections into a card's file."""
    card = json.loads(file.read_text())
    card["gemm_corrections"] = {
        key: {
            "features": {
                name: [mean, deviation]
                for name, mean, deviation in zip(c.features, c.means, c.deviations, strict=True)
            },
            "weights": list(c.weights),
        }
        for key, c in corrections.items()
    }
    file.write_text(card_text(card))


def _columns(part: Part, names: Sequence[str]) -> Numbers:
    """Return features of configs in columns."""
    return np.stack([np.broadcast_to(part.features[name], part.us.shape) for name in names], 1)


def _terms(features: int) -> int:
    """Return the terms of a quadratic polynomial."""
    return (features + 1) * (features + 2) // 2


def _rounded(numbers: Numbers) -> list[float]:
    """Return numbers of four digits, as a card's file has them."""
    return [float(f"{number:.4g}") for number in numbers]
