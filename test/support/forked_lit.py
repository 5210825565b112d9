"""lit's shell tests, whose programs a fork server runs, with their CPU time as `cpu_seconds`."""

from __future__ import annotations

import os
from typing import Any

import fork_server
import lit.formats
import lit.Test


class ForkedShTest(lit.formats.ShTest):  # type: ignore[misc]
    """A shell test that measures its commands; a worker of lit runs one test at a time."""

    def execute(self, test: Any, lit_config: Any) -> Any:
        server = fork_server.start()
        test.config.environment[fork_server.ADDRESS] = server
        before = sum(os.times()[:4]) + fork_server.cpu_seconds(server)
        result = super().execute(test, lit_config)
        seconds = sum(os.times()[:4]) + fork_server.cpu_seconds(server) - before
        result.addMetric("cpu_seconds", lit.Test.RealMetricValue(seconds))
        return result
