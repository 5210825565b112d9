"""lit's shell tests, with the CPU time that each takes as the metric `cpu_seconds`."""

from __future__ import annotations

import os
from typing import Any

import lit.formats
import lit.Test


class TimedShTest(lit.formats.ShTest):  # type: ignore[misc]
    """A shell test that measures its commands; a worker of lit runs one test at a time."""

    def execute(self, test: Any, lit_config: Any) -> Any:
        before = sum(os.times()[:4])
        result = super().execute(test, lit_config)
        result.addMetric("cpu_seconds", lit.Test.RealMetricValue(sum(os.times()[:4]) - before))
        return result
