"""Marks slow tests: those that `test/slow_tests.txt` lists.

`pytest -m "not slow"` leaves them out. `pytest --update-slow-tests` measures all tests that it runs
and updates the list: a test function is slow if its cases together take `SLOW_SECONDS`, a lit file
if lit takes as long for it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow_tests.txt")
SLOW_SECONDS = 0.7
SECONDS = "seconds"
"""The property of a test that knows its own duration: a lit file, as one lit runs all."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-slow-tests", action="store_true", help=f"update {LIST.name}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = set(LIST.read_text().split())
    for item in items:
        names = {nodeid(item), nodeid(item).partition("[")[0]}
        if names & slow:
            item.add_marker(pytest.mark.slow)


def nodeid(item: pytest.Item) -> str:
    """Return the id of a test relative to test/, whatever the root of the run is."""
    path = Path(os.path.relpath(item.path, LIST.parent)).as_posix()
    return "::".join([path, *item.nodeid.split("::")[1:]])


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not config.getoption("--update-slow-tests"):
        return
    seconds: dict[str, float] = defaultdict(float)
    for report in (r for found in terminalreporter.stats.values() for r in found):
        if not isinstance(report, pytest.TestReport):
            continue
        name = report.nodeid.removeprefix("test/")
        known = dict(report.user_properties).get(SECONDS)
        if known is None and "test_lit[" not in name:
            seconds[name.partition("[")[0]] += report.duration
        elif report.when == "call" and isinstance(known, float):
            seconds[name] = known
    kept = {line for line in LIST.read_text().split() if line not in seconds}
    slow = kept | {name for name, spent in seconds.items() if spent >= SLOW_SECONDS}
    LIST.write_text("".join(f"{name}\n" for name in sorted(slow) if is_there(name)))
    terminalreporter.write_line(f"{LIST}: {len(slow)} slow tests")


def is_there(name: str) -> bool:
    """Return whether the function of a listed test still exists."""
    path, *names = name.partition("[")[0].split("::")
    file = LIST.parent / path
    return file.exists() and f"def {names[-1]}(" in file.read_text()
