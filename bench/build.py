"""`python -m bench build`: compile the cases into a bundle.

A bundle is a folder of artifacts and a manifest, which `run` needs and nothing else.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.case import Case
from bench.gemm.cases import CASES as GEMMS
from bench.gemm.small import CASES as SMALL_GEMMS
from bench.gemm.variants import CASES as GEMM_VARIANTS
from bench.permute.cases import CASES as MOVEMENTS
from bench.profile.sass import main_loops
from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole

if TYPE_CHECKING:
    from lego_mlir import Artifact, Kernel

CASES = (*MOVEMENTS, *GEMMS, *GEMM_VARIANTS, *SMALL_GEMMS)

FORMAT = 2
MANIFEST = "manifest.json"


def select(names: Sequence[str], only: Sequence[str]) -> list[str]:
    """Return the names that contain one of the words in `only`; all names if there are no words.

    Raises:
        LegoError: no name is left.
    """
    if not names:
        raise LegoError("there are no cases", hint="build some first")
    found = [name for name in names if not only or any(word in name for word in only)]
    if not found:
        words = " or ".join(f"'{word}'" for word in only)
        raise LegoError(
            f"no case has {words} in its name",
            hint=f"there are {len(names)} cases, such as {', '.join(names[:3])}",
        )
    return found


def build(folder: Path, only: Sequence[str], target: str, *, sass: bool = False) -> int:
    """Compile the selected cases into a folder; return the number that do not compile.

    Args:
        folder: of the bundle.
        only: words that the names of the cases contain; all cases if there are none.
        target: the GPU architecture to compile for.
        sass: also count the instructions of the main loops.

    Raises:
        LegoError: no case is selected, or the folder cannot be written.
    """
    cases = {case.name: case for case in CASES}
    names = select(list(cases), only)
    entries, failures = {}, 0
    make_folder(folder)
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name}", flush=True)
        try:
            kernel = cases[name].make(target)
            artifact = kernel.compile(target)
        except LegoError as e:
            failures += 1
            print(e.render(), flush=True)
            continue
        artifact.save(folder / f"{name}.lego")
        entries[name] = manifest_entry(cases[name], artifact) | _config(kernel)
        if cases[name].alternatives is not None:
            entries[name]["candidates"], failed = _alternatives(cases[name], folder, target)
            failures += failed
        if sass and artifact.cubin is not None:
            entries[name]["sass"] = main_loops(artifact.cubin)
    write_manifest(folder, target, entries)
    print(f"{len(entries)} of {len(names)} cases are in {folder}")
    return failures


def _config(kernel: Kernel) -> dict[str, str]:
    """Return the text of a GEMM's config from `explain`; nothing for other kernels."""
    for line in kernel.explain().splitlines():
        key, _, text = line.partition("  ")
        if key == "config":
            return {"config": text.strip()}
    return {}


def _alternatives(case: Case, folder: Path, target: str) -> tuple[list[dict[str, str]], int]:
    """Compile a case's alternatives; return those that compile, and how many do not."""
    assert case.alternatives is not None
    found: list[dict[str, str]] = []
    kernels = case.alternatives(target)
    for name, kernel in kernels.items():
        print(f"  {name}", flush=True)
        try:
            artifact = kernel.compile(target)
        except LegoError as e:
            print(e.render(), flush=True)
            continue
        file = f"{case.name}.{len(found)}.lego"
        artifact.save(folder / file)
        found.append({"name": name, "file": file})
    return found, len(kernels) - len(found)


def manifest_entry(case: Case, artifact: Artifact) -> dict[str, Any]:
    """Return a case's entry in the manifest: all that is needed to run and to check it."""
    return {
        "kernel": artifact.name,
        "dtype": case.dtype,
        "variant": case.variant,
        "reference": asdict(case.reference),
        "layouts": {argument.name: argument.layout for argument in artifact.arguments},
        "launch": [
            {"grid": x.grid, "block": x.block, "shared_bytes": x.shared_bytes}
            for x in artifact.launches
        ],
        "peers": case.peers,
    }


def write_manifest(folder: Path, target: str, entries: Mapping[str, Any]) -> None:
    """Write a bundle's manifest: its cases, the target, and the commit of the checkout."""
    manifest = {"format": FORMAT, "commit": commit(), "target": target, "cases": entries}
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a bundle.

    Raises:
        LegoError: the folder is not a bundle, or one of another format.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        manifest = None
    if not isinstance(manifest, dict):
        raise LegoError(
            f"'{folder}' is not a bundle: it has no {MANIFEST}",
            hint=f"make one with python -m bench build {folder}",
        )
    if manifest.get("format") != FORMAT:
        raise LegoError(
            f"the bundle '{folder}' has format {manifest.get('format')}, this bench reads {FORMAT}",
            hint=f"make it again with python -m bench build {folder}",
        )
    return manifest


def commit() -> str:
    """Return the commit of the checkout, marked `-dirty` if files differ from it."""
    here = Path(__file__).resolve().parent
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def make_folder(folder: Path) -> None:
    """Make a folder and its parents.

    Raises:
        LegoError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise LegoError(f"cannot make the folder '{folder}': {e.strerror}") from None
