"""`python -m bench rows build`: compile the kernels on rows into a folder of artifacts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.build import commit
from bench.rows.cases import CASES
from bench.rows.manifest import MANIFEST
from bench.rows.sweep import configs
from lego_mlir.diagnostics import LegoError


def build(folder: Path, only: Sequence[str], target: str, *, sweep: bool) -> int:
    """Compile the selected kernels; return the number that do not compile.

    Args:
        folder: where artifacts go.
        only: parts of the names of cases; all by default.
        target: a GPU architecture.
        sweep: whether other configs than the heuristic's are compiled, too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found, failures = {}, 0
    for case in CASES:
        if only and not any(word in case.name for word in only):
            continue
        files = {}
        tried = {"ours": None, **(dict(configs(case)) if sweep else {})}
        for number, (name, config) in enumerate(tried.items()):
            try:
                artifact = case.make(config).compile(target)
            except LegoError as e:
                failures += config is None
                print(f"{case.name}, {name}: {e.message}", flush=True)
                continue
            files[name] = f"{case.name}-{number}.lego"
            artifact.save(folder / files[name])
        how = case.make().explain().splitlines()
        found[case.name] = {"files": files, "how": next((x for x in how if " warps (" in x), "")}
        print(case.name, ", ".join(files), found[case.name]["how"], flush=True)
    manifest = {"commit": commit(), "cases": found}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return failures
