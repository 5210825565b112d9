"""Step one: compile the cases into a bundle, a folder of artifacts and a manifest."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path

from bench.cases import CASES


def build(folder: Path, only: str, target: str) -> None:
    """Compile every case whose name contains `only`."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [case for case in CASES if only in case.name]
    for number, case in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {case.name}")
        case.kernel().compile(target).save(folder / f"{case.name}.lego")
    manifest = {
        "commit": commit(),
        "target": target,
        "cases": {case.name: asdict(case) for case in chosen},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def commit() -> str:
    """The commit of the checkout, marked if files differ from it."""
    here = Path(__file__).resolve().parent
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip() or "unknown"
