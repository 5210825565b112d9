"""Corrected estimates: the time of a cost model times what measured GEMMs say of such configs.

The logarithm of the factor is a quadratic polynomial of features of a config. Most of them are the
shares of the estimate that a term of the model has, so that a weight is a change of the term's
constant, and a product of two features is such a change for some GEMMs only. The weights are fitted
by ridge regression, to differences among the configs of each GEMM more than to their times
(`bench.sample.corrections`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.gemm_models import Correction

Numbers = npt.NDArray[np.float64]

Features = Mapping[str, Numbers]
"""Numbers of configs by the feature's name."""

MAX_DEVIATIONS = 3.0
"""How many standard deviations a feature differs from its mean, at most: beyond what was measured
a polynomial says nothing."""

_LEAST, _MOST = 0.67, 2.0
"""The factors by which an estimate is corrected, at least and at most."""


def corrected(estimates: Numbers, features: Features, correction: Correction | None) -> Numbers:
    """Return corrected times of configs of one GEMM.

    Args:
        estimates: their times by the model.
        features: the features of the configs.
        correction: the card's; `None` leaves the times as they are.

    Raises:
        LegoError: the correction has a feature that the configs do not have.
    """
    if correction is None or not len(estimates):
        return estimates
    if missing := set(correction.features) - set(features):
        raise LegoError(
            f"the card's correction has unknown features: {', '.join(sorted(missing))}",
            hint="fit it anew: python -m bench calibrate FILE --only corrections",
        )
    columns = [np.broadcast_to(features[name], estimates.shape) for name in correction.features]
    times: Numbers = estimates * np.exp(logarithms(np.stack(columns, 1), correction))
    return times


def logarithms(columns: Numbers, correction: Correction) -> Numbers:
    """Return the logarithms of the factors of configs whose features are the columns."""
    constant, linear, quadratic = _coefficients(correction.weights, len(correction.features))
    x = standard(columns, correction)
    logs = constant + x @ linear + np.einsum("ij,ij->i", x @ quadratic, x)
    found: Numbers = np.clip(logs, np.log(_LEAST), np.log(_MOST))
    return found


@functools.cache
def _coefficients(weights: tuple[float, ...], count: int) -> tuple[float, Numbers, Numbers]:
    """Return the constant, the vector and the upper triangular matrix of a polynomial."""
    quadratic = np.zeros((count, count))
    quadratic[np.triu_indices(count)] = weights[1 + count :]
    return weights[0], np.array(weights[1 : 1 + count]), quadratic


def standard(columns: Numbers, correction: Correction) -> Numbers:
    """Return features in standard deviations from their means, limited to those measured."""
    found = (columns - np.array(correction.means)) / np.array(correction.deviations)
    limited: Numbers = np.clip(found, -MAX_DEVIATIONS, MAX_DEVIATIONS)
    return limited


def polynomial(features: Numbers) -> Numbers:
    """Return what a correction has weights of: 1, features, and products of two, in columns."""
    first, second = np.triu_indices(features.shape[1])
    ones = np.ones((len(features), 1))
    return np.concatenate([ones, features, features[:, first] * features[:, second]], 1)


def log2(numbers: Numbers) -> Numbers:
    """Return logarithms of numbers of which some may be zero."""
    found: Numbers = np.log2(np.maximum(numbers, 1e-9))
    return found
