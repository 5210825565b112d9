"""`python -m bench rows build`: compile the kernels on rows into a folder of artifacts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.build import commit
from bench.measure.traffic import traffic
from bench.rows.cases import CASES, OPEN_SIZES, RowsCase
from bench.rows.manifest import MANIFEST
from bench.rows.sweep import configs
from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import RowsConfig


def build(
    folder: Path,
    only: Sequence[str],
    target: str,
    *,
    sweep: bool,
    open_sizes: bool = False,
    count: bool = False,
) -> int:
    """Compile the selected kernels; return the number that do not compile.

    Args:
        folder: where artifacts go.
        only: parts of the names of cases; all by default.
        target: a GPU architecture.
        sweep: whether other configs than the heuristic's are compiled, too.
        open_sizes: whether kernels are, too, whose sizes only the launch knows.
        count: whether the simulator counts what the heuristic's kernels touch.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    failures = 0
    for case in CASES:
        if only and not any(word in case.name for word in only):
            continue
        files = {}
        tried: dict[str, RowsConfig | None] = {"ours": None}
        tried |= dict.fromkeys(OPEN_SIZES) if open_sizes and "rope" not in case.kernel else {}
        tried |= dict(configs(case)) if sweep else {}
        for number, (name, config) in enumerate(tried.items()):
            try:
                artifact = _compiled(case, name, config, target)
            except LegoError as e:
                failures += config is None
                print(f"{case.name}, {name}: {e.message}", flush=True)
                continue
            files[name] = f"{case.name}-{number}.lego"
            artifact.save(folder / files[name])
        found[case.name] = {"files": files, "how": _how(case)}
        if count and "ours" in files:
            found[case.name]["traffic"] = _traffic(case, folder / files["ours"], target)
        print(case.name, ", ".join(files), found[case.name]["how"], flush=True)
    manifest = {"commit": commit(), "cases": found}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return failures


def _compiled(case: RowsCase, name: str, config: RowsConfig | None, target: str) -> Artifact:
    """Return the artifact of a case by name: of a config, or of sizes that the launch knows."""
    if name not in OPEN_SIZES:
        return case.make(config).compile(target)
    made = case.make(open_sizes=name)
    known = {"M": case.rows, "N": case.columns}
    sizes = {s: n for s, n in known.items() if s in made.run_time_sizes.names}
    return made.compile(target, sizes=sizes)


def _how(case: RowsCase) -> str:
    """Return how the heuristic divides the rows of a case, as text."""
    return next((x for x in case.make().explain().splitlines() if " warps (" in x), "")


def _traffic(case: RowsCase, file: Path, target: str) -> dict[str, int]:
    """Return what the accesses of some CTAs of a case's kernel touch.

    Persistent CTAs would take long to simulate: of fewer rows, divided in the same way, each has
    one or two.
    """
    rows = 1
    while "persistent" in _how(case) and rows < case.rows:
        few = replace(case, rows=rows)
        if _how(few) == _how(case):
            return traffic(few.make().compile(target))
        rows *= 2
    return traffic(Artifact.load(file))
