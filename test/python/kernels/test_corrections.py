"""Corrected estimates: the polynomial, what it leaves alone, and what a card may not ask for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.gemm_models import Correction
from lego_mlir.kernels.gemm.corrections.correction import corrected, polynomial, standard

CORRECTION = Correction(("a", "b"), (1.0, 10.0), (2.0, 5.0), (0.01, 0.02, 0.03, 0.04, 0.05, 0.06))


def features(**columns: Any) -> dict[str, Any]:
    """Return columns of features as arrays."""
    return {name: np.array(column, float) for name, column in columns.items()}


def test_the_factor_is_a_quadratic_polynomial() -> None:
    found = corrected(np.array([2.0, 3.0]), features(a=[3, 1], b=[0, 15]), CORRECTION)
    first = 0.01 + 0.02 * 1 + 0.03 * -2 + 0.04 * 1 + 0.05 * -2 + 0.06 * 4
    second = 0.01 + 0.03 * 1 + 0.06 * 1
    assert found == pytest.approx([2 * math.exp(first), 3 * math.exp(second)])


def test_weights_stand_in_the_order_in_which_they_are_fitted() -> None:
    columns = np.array([[3.0, 0.0], [1.0, 15.0], [-2.0, 11.0]])
    terms = polynomial(standard(columns, CORRECTION)) @ np.array(CORRECTION.weights)
    times = corrected(np.ones(3), features(a=columns[:, 0], b=columns[:, 1]), CORRECTION)
    assert times == pytest.approx(np.exp(terms))


def test_features_beyond_what_was_measured_count_as_the_last_that_were() -> None:
    far = corrected(np.ones(1), features(a=[1e9], b=[10]), CORRECTION)
    last = corrected(np.ones(1), features(a=[1 + 3 * 2], b=[10]), CORRECTION)
    assert far == pytest.approx(last)


def test_factors_are_limited() -> None:
    strong = replace(CORRECTION, weights=(9.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert corrected(np.ones(1), features(a=[3], b=[0]), strong) == pytest.approx([2.0])
    strong = replace(CORRECTION, weights=(-9.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert corrected(np.ones(1), features(a=[3], b=[0]), strong) == pytest.approx([0.67])


def test_without_a_correction_estimates_stay() -> None:
    times = np.array([1.0, 2.0])
    assert corrected(times, {}, None) is times


def test_an_unknown_feature_is_an_error() -> None:
    with pytest.raises(LegoError, match="unknown features: b"):
        corrected(np.ones(1), features(a=[1]), CORRECTION)
